"""Joins the parts of the contract (Sources/Contract) into one document."""
import pathlib
import re

import yaml

NOTE = "# Written by .ci/client-models from Sources/Contract: change that, and run it.\n"
PLACE = re.compile(r"^( *)\$parts: \[([^\]]*)\]$", re.MULTILINE)
ALTERNATIVES = re.compile(r"^( *)\$alternatives$", re.MULTILINE)
# The prefix of events between replicas, which no stream delivers. Apps cannot use it either.
INTERNAL = "bellhop"


def joined(folder):
    """Returns openapi.yaml of the folder, with each `$parts` replaced by the files that it lists, and `$alternatives`
    by the form of each event."""
    folder = pathlib.Path(folder)
    unused = set(folder.rglob("*.yaml")) - {folder / "openapi.yaml"}

    def part(path, indent):
        if path not in unused:
            raise SystemExit(f"client-models: {path} is missing or used twice")
        unused.remove(path)
        return re.sub("^(?=.)", indent, PLACE.sub(place, path.read_text()), flags=re.MULTILINE)

    def place(found):
        indent, names = found.groups()
        parts = [part(folder / f"{name}.yaml", indent) for name in re.split(r",\s+", names)]
        return "\n".join(parts).removesuffix("\n")

    text = NOTE + PLACE.sub(place, (folder / "openapi.yaml").read_text())
    if unused:
        raise SystemExit(f"client-models: no `$parts` lists {sorted(map(str, unused))}")
    described = yaml.safe_load(ALTERNATIVES.sub("", text))["paths"]["/v1/stream"]["get"]["x-events"]
    text = ALTERNATIVES.sub(lambda found: re.sub("^", found[1], alternatives(described), flags=re.MULTILINE), text)
    if cut := list(cut_texts(yaml.safe_load(text))):
        raise SystemExit(f"client-models: quote the text before the comma: {cut}")
    return text


def cut_texts(node, place=""):
    """Returns the names without a value: an unquoted text in braces ends at its first comma, and the rest is a name."""
    if isinstance(node, list):
        node = dict(enumerate(node))
    if not isinstance(node, dict):
        return
    for name, value in node.items():
        if value is None and isinstance(name, str):
            yield f"{place}/{name}"
        elif name not in ("example", "examples"):
            yield from cut_texts(value, f"{place}/{name}")


def alternatives(described):
    """Returns the forms of a stream's event as YAML: one of an app, or one of the service's events."""
    own = "|".join(sorted({name.split(":")[0] for name in described} | {INTERNAL}))
    lines = ["oneOf:", "  - description: An event that an app publishes.", "    properties:", "      event:", "        not:",
             f"          pattern: '^({own})(:|$)'"]
    for name, schema in described.items():
        target = schema["$ref"] if list(schema) == ["$ref"] else f"#/paths/~1v1~1stream/get/x-events/{name}"
        lines += ["  - properties:", f"      event: {{const: '{name}'}}", f"      data: {{contentSchema: {{$ref: '{target}'}}}}"]
    return "\n".join(lines)


def event_tags(folder):
    """Returns the tag of each event, which is the name of the file that describes it."""
    files = sorted(pathlib.Path(folder).glob("events/*.yaml"))
    return {name: path.stem for path in files for name in yaml.safe_load(path.read_text())}
