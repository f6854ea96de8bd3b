"""The browsers of the tests: Debian's Chromium, or the one that CHROMIUM names; and Debian's Firefox."""

import os
import shutil


def launch_options(*arguments):
    """Returns the options of playwright's `chromium.launch`."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    return {"executable_path": path, "args": ["--no-sandbox", *arguments]}


def is_firefox():
    """Whether the tests run in Firefox, as BROWSER=firefox asks for."""
    return os.environ.get("BROWSER") == "firefox"


def launch(playwright, *arguments):
    """Starts the browser. Arguments are for Chromium alone."""
    if is_firefox():
        # By WebDriver BiDi: Debian's Firefox has no driver of playwright's own.
        return playwright.firefox.launch(channel="moz-firefox", executable_path=shutil.which("firefox-esr"))
    return playwright.chromium.launch(**launch_options(*arguments))
