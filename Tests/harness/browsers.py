"""The browser of the tests: Debian's Chromium, or the one that CHROMIUM names."""

import os
import shutil


def launch_options(*arguments):
    """Returns the options of playwright's `chromium.launch`."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    return {"executable_path": path, "args": ["--no-sandbox", *arguments]}
