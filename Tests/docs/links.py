#!/usr/bin/env python3
"""Checks that links of the Markdown pages lead to files and headings of this repository. Prints their number."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def anchors(text):
    """Returns the anchors that a forge gives to the headings of a page."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", without_code(text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        number, name = 0, anchor
        while name in found:
            number += 1
            name = f"{anchor}-{number}"
        found.add(name)
    return found


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def main():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True,
        check=True).stdout
    count, wrong = 0, []
    for name in listed.split():
        page = ROOT / name
        if not page.exists():
            continue
        text = page.read_text(encoding="utf-8")
        for target in LINK.findall(re.sub(r"`[^`\n]*`", "code", without_code(text))):
            if re.match(r"[a-z]+:", target) or target.startswith("doc:"):
                continue
            count += 1
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists():
                wrong.append(f"{name}: {target}: there is no such file")
            elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
                wrong.append(f"{name}: {target}: the page has no such heading")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"cases: {count}")


if __name__ == "__main__":
    main()
