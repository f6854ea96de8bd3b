#!/usr/bin/env python3
"""Checks that the image can be built: creates the folder that .dockerignore and the Dockerfile's COPY lines produce,
and checks that it contains everything that the package names.

    context.py [--root FOLDER]

It takes a second, while a build of the image takes minutes. Compiler errors are left to `make image-test`."""
import argparse
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile


def rules(root):
    """Returns the lines of .dockerignore, each with whether it includes its matches."""
    with open(os.path.join(root, ".dockerignore")) as file:
        lines = [line.strip() for line in file]
    return [(line.lstrip("!").strip("/"), line.startswith("!")) for line in lines if line and not line.startswith("#")]


def matches(path, pattern):
    """Returns whether a pattern matches the path or a folder above it, by Docker's rules."""
    parts = path.split("/")
    heads = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    if pattern.startswith("**/"):
        return any(fnmatch.fnmatchcase(part, pattern[3:]) for part in parts)
    return any(head.count("/") == pattern.count("/") and fnmatch.fnmatchcase(head, pattern) for head in heads)


def is_included(path, rules):
    """Applies the last matching rule."""
    decision = True
    for pattern, lets_through in rules:
        if matches(path, pattern):
            decision = lets_through
    return decision


def tracked(root):
    """Returns the files of a clone, plus those that would be committed next."""
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted(name for name in names if name and os.path.lexists(os.path.join(root, name)))


def copies(root):
    """Returns the COPY lines of the Dockerfile's first stage: sources, and target below /context."""
    with open(os.path.join(root, "Dockerfile")) as file:
        text = file.read().replace("\\\n", " ")
    found = []
    for line in text.splitlines():
        words = line.split()
        if not words or words[0] != "COPY" or any(word.startswith("--from") for word in words):
            continue
        target = re.sub(r"^(/context|/src|\.)/?", "", words[-1])
        found.append((words[1:-1], target))
    return found


def make_context(root, folder):
    """Copies the included files, and links as links."""
    ignored = rules(root)
    files = [name for name in tracked(root) if is_included(name, ignored)]
    for sources, target in copies(root):
        for source in (source.strip("/") for source in sources):
            for name in files:
                if name == source:
                    place = os.path.join(target, os.path.basename(name))
                elif name.startswith(source + "/"):
                    place = os.path.join(target, os.path.relpath(name, source))
                else:
                    continue
                place = os.path.join(folder, place)
                os.makedirs(os.path.dirname(place), exist_ok=True)
                shutil.copy2(os.path.join(root, name), place, follow_symlinks=False)


def dangling(folder):
    """Returns links whose target is not included."""
    for parent, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(parent, name)
            if os.path.islink(path) and not os.path.exists(path):
                yield f"{os.path.relpath(path, folder)} is a link to {os.readlink(path)}, which is not there"


def named(folder):
    """Returns the paths that Package.swift and the C sources name, each with a message for the case that it is missing."""
    command = ["swift", "package", "--package-path", folder, "dump-package"]
    package = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for target in package["targets"]:
        default = "Tests" if target["type"] == "test" else "Sources"
        path = target.get("path") or f"{default}/{target['name']}"
        yield f"the target {target['name']} has no folder {path}", os.path.join(folder, path)
    source = os.path.join(folder, "Sources/CResources/resources.c")
    with open(source, encoding="utf-8") as lines:
        for embedded in re.findall(r'^#embed "(.*)"$', lines.read(), re.MULTILINE):
            place = os.path.join(os.path.dirname(source), embedded)
            yield f"CResources embeds {embedded}, which is not there", place


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), "..", ".."))
    root = os.path.abspath(parser.parse_args().root)
    with tempfile.TemporaryDirectory() as folder:
        make_context(root, folder)
        wanted = list(named(folder))
        missing = [*dangling(folder), *(line for line, path in wanted if not os.path.exists(path))]
        count = sum(len(files) for _, _, files in os.walk(folder))
    for line in missing:
        print(f"image context: {line}", file=sys.stderr)
    if missing:
        sys.exit("The image cannot be built: see .dockerignore and the COPY lines of the Dockerfile.")
    print(f"image context: {count} files get through, and the package names nothing else")
    print(f"cases: {len(wanted)}")


if __name__ == "__main__":
    main()
