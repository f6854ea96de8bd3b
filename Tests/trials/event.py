#!/usr/bin/env python3
"""Adds an invented event to a list store, in a copy of the tree, and counts the files that are edited by hand.

    event.py [--keep FOLDER]    keeps the copy, for a look or to run its Swift tests

The copy gets the event `request:expired`, which removes a request from its list. The contract says the event's form and what it
does, and a vector shows it. Both clients are then generated, and the vector passes in JavaScript. Before the contract says what
the event does, the same vector fails. The service that publishes the event is not part of this trial."""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES_MAX = 4
EVENT = "request:expired"
REQUEST = {
    "id": "r1", "kind": "friend", "fromUserId": "ben", "toUserId": "ada", "fromName": None, "aboutId": None, "status": "open",
    "createdAt": "2026-01-10T09:00:00.000Z", "answeredAt": None,
}
VECTOR = {
    "row": "trial", "name": "an expired request leaves the list",
    "steps": [
        {"input": {"type": "start", "connection": "live", "user": "ada"}},
        {"input": {"type": "answer", "as": "list", "status": 200, "body": {"items": [REQUEST], "next": None}},
         "state": {"items": [{"id": "r1"}]}},
        {"input": {"type": "event", "event": {"name": EVENT, "data": REQUEST, "id": "e-1"}}, "actions": [],
         "state": {"items": []}},
    ],
}


class Tree:
    """A copy of the tracked files, whose edits are counted."""

    def __init__(self, folder):
        self.folder, self.edited = folder, set()
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    def edit(self, name, change):
        path = self.folder / name
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
        self.edited.add(name)

    def run(self, *command):
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True)

    def generate(self):
        for command in ([sys.executable, ".ci/client-models"], [".ci/bundle", "--package"]):
            done = self.run(*command)
            if done.returncode:
                sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")

    def passes(self):
        """Returns whether all vectors pass in JavaScript."""
        done = self.run("node", "--test", "Sources/bellhop.js/test/vectors.test.js")
        if "# fail 0" not in done.stdout and VECTOR["name"] not in done.stdout:
            sys.exit(done.stdout[-4000:])
        return done.returncode == 0


def with_vector(text):
    file = json.loads(text)
    file["cases"].append(VECTOR)
    return json.dumps(file, ensure_ascii=False, indent=2) + "\n"


def trial(tree):
    tree.edit("Sources/Contract/events/requests.yaml",
              lambda text: f"{text}'{EVENT}': {{$ref: '#/components/schemas/UserRequest'}}\n")
    tree.edit("Tests/Fixtures/Client/requests.json", with_vector)
    tree.generate()
    if tree.passes():
        sys.exit("The vector passes before the contract says what the event does.")
    tree.edit("Sources/Contract/stores/requests.yaml",
              lambda text: text.replace("  writes:\n", f"    '{EVENT}': {{do: remove, by: id}}\n  writes:\n"))
    tree.generate()
    if not tree.passes():
        sys.exit("The vector fails.")
    print(f"{EVENT}: {len(tree.edited)} files edited by hand: {', '.join(sorted(tree.edited))}")
    if len(tree.edited) > FILES_MAX:
        sys.exit(f"These are more than {FILES_MAX}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=pathlib.Path)
    keep = parser.parse_args().keep
    if keep:
        keep.mkdir(parents=True)
        return trial(Tree(keep))
    with tempfile.TemporaryDirectory() as folder:
        return trial(Tree(pathlib.Path(folder)))


if __name__ == "__main__":
    main()
