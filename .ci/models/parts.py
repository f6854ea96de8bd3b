"""Joins the parts of the contract (Sources/Contract) into one document."""
import pathlib
import re

NOTE = "# Written by .ci/client-models from Sources/Contract: change that, and run it.\n"
PLACE = re.compile(r"^( *)\$parts: \[([^\]]*)\]$", re.MULTILINE)


def joined(folder):
    """Returns openapi.yaml of the folder, with each `$parts` replaced by the files that it lists."""
    folder = pathlib.Path(folder)
    unused = set(folder.rglob("*.yaml")) - {folder / "openapi.yaml"}

    def part(path, indent):
        if path not in unused:
            raise SystemExit(f"client-models: {path} is missing or used twice")
        unused.remove(path)
        return re.sub("^(?=.)", indent, path.read_text(), flags=re.MULTILINE)

    def place(found):
        indent, names = found.groups()
        parts = [part(folder / f"{name}.yaml", indent) for name in re.split(r",\s+", names)]
        return "\n".join(parts).removesuffix("\n")

    text = NOTE + PLACE.sub(place, (folder / "openapi.yaml").read_text())
    if unused:
        raise SystemExit(f"client-models: no `$parts` lists {sorted(map(str, unused))}")
    return text
