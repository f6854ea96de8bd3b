"""The settings of the pages of Docs/providers, as a reader copies them."""

import json
import pathlib
import re
import secrets

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "Docs/providers"
KEY = secrets.token_hex(32)
SETTING = re.compile(r"(BELLHOP_[A-Z_]+)=(.*)")


def of_page(name):
    """Returns the settings in all `ini` blocks of a page."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```ini\n(.*?)^ *```", text.replace("OUTPUT-OF-openssl-rand-hex-32", KEY), re.MULTILINE | re.DOTALL)
    return dict(SETTING.fullmatch(line.strip()).groups() for block in blocks for line in block.splitlines())


def of_row(name):
    """Returns the settings in a row of the table of other providers, and the service key that the page shows for all."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return of_page("README") | dict(SETTING.fullmatch(part).groups() for part in row.split(" | ")[1].strip("`").split(" "))


def names():
    """Returns the pages, and the rows with settings."""
    pages = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "README")
    rows = re.findall(r"^\| ([^|]+) \| `BELLHOP", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    return pages, rows


def settings(name):
    return of_page(name) if (FOLDER / f"{name}.md").exists() else of_row(name)


def examples(name):
    """Returns the payloads that a page shows, without those of abbreviated ids."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    return [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]


def is_backend(payload):
    """Whether a page shows this payload for a backend."""
    return "worker" in (payload["sub"].partition("@")[0], payload.get("azp"))
