"""Joins the parts of the contract (Sources/Contract) into one document."""
import json
import pathlib
import re

import yaml

NOTE = "# Written by .ci/client-models from Sources/Contract: change that, and run it.\n"
PLACE = re.compile(r"^( *)\$parts: (.+)$", re.MULTILINE)
EXAMPLES = re.compile(r"^( *)(.*) \{\$examples: (.+)\}$", re.MULTILINE)
ALTERNATIVES = re.compile(r"^( *)\$alternatives$", re.MULTILINE)
# The prefix of events between replicas, which no stream delivers. Apps cannot use it either.
INTERNAL = "bellhop"


def joined(folder):
    """Returns openapi.yaml of the folder. These are replaced:

    - `$parts: paths/*` by the files of a folder: those with the name of a tag in the order of the tags, then the others.
    - `{$examples: config/*}` by the example of each name at the top of these files.
    - `$alternatives` by the form of each event."""
    folder = pathlib.Path(folder)
    top = (folder / "openapi.yaml").read_text()
    tags = re.findall(r"^  - (?:\{name: |name: )(\w+)", top[top.index("\ntags:"):top.index("\npaths:")], re.MULTILINE)
    unused = set(folder.rglob("*.yaml")) - {folder / "openapi.yaml"}

    def files(pattern):
        found = sorted(folder.glob(f"{pattern}.yaml"), key=lambda path: (place_of(path.stem), path.stem))
        if not found:
            raise SystemExit(f"client-models: no file is {pattern}.yaml")
        return found

    def place_of(name):
        return tags.index(name) if name in tags else len(tags)

    def members(pattern):
        return {name: value for path in files(pattern) for name, value in yaml.safe_load(path.read_text()).items()}

    def part(path, indent):
        if path not in unused:
            raise SystemExit(f"client-models: {path} is used twice")
        unused.remove(path)
        return re.sub("^(?=.)", indent, replaced(path.read_text()), flags=re.MULTILINE)

    def parts(found):
        return "".join(part(path, found[1]) for path in files(found[2])).removesuffix("\n")

    def examples(found):
        lines = [f"{found[1]}  {name}: {json.dumps(value['example'])}" for name, value in members(found[3]).items()]
        return "\n".join([found[1] + found[2], *lines])

    def replaced(text):
        return PLACE.sub(parts, EXAMPLES.sub(examples, text))

    text = NOTE + replaced(top)
    if unused:
        raise SystemExit(f"client-models: no `$parts` takes {sorted(map(str, unused))}")
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
