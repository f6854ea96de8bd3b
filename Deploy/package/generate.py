#!/usr/bin/env python3
"""Generates the package's documentation of the commands from their own help texts, so that it stays correct.

    generate.py BINARY FOLDER

writes the settings file (bellhop.yaml), the manual page (bellhop.1) and completions for bash, zsh and fish to FOLDER.
Exits with 1 if the binary rejects the settings file, as written or with every commented setting enabled. Needs only
Python's standard library.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

# Settings of a packaged service that differ from the defaults, with their reasons.
OWN = {
    "host": ("127.0.0.1", "This machine alone: TLS, HTTP/2 and limits by address belong to a proxy in front."),
    "port": ("8080", None),
    "database": (
        "sqlite:/var/lib/bellhop/bellhop.sqlite",
        "The one folder that the unit lets the service write to. A URL with a password belongs into bellhop.env, as "
        "BELLHOP_DATABASE, which wins over this line.",
    ),
    "streamsMax": (
        "54000",
        "Each open stream is a descriptor, of which the unit allows 65,536 (LimitNOFILE); what is left is for 10,000 "
        "connections, files and the database.",
    ),
}
# Their defaults depend on the cores of the machine. The values of the machine that built the package are meaningless.
BY_CORES = {"reactors", "shards", "workers"}
YAML_HEAD = """\
# Settings of the service, as `bellhop serve --help` lists them. A line that begins with # and a name shows a default.
# After a change: systemctl restart bellhop. An unknown or unusable setting stops the start with one line that names it.
# A variable in bellhop.env, or a flag, wins over this file. Secrets belong there: this file may be read by everybody.
"""
SETTING = re.compile(r"  (--[a-z0-9-]+)  \((BELLHOP_[A-Z0-9_]+)\)(?: \[(.*)\])?( secret)?$")
WIDTH = 100


class Wrong(Exception):
    """Output of the binary that this script cannot use."""


def said(binary, *arguments):
    """Returns the output of a command, wide enough that no line of the settings is broken."""
    environment = {"PATH": os.environ.get("PATH", ""), "COLUMNS": "400", "LC_ALL": "C.UTF-8"}
    done = subprocess.run([binary, *arguments], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise Wrong(f"bellhop {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def settings(discussion):
    """Returns the settings in the help of `serve`: group, flag, variable, default, whether it is a secret, and
    description."""
    found, group = [], ""
    for line in discussion.splitlines():
        if matched := SETTING.match(line):
            flag, variable, fallback, secret = matched.groups()
            found.append({"group": group, "flag": flag, "variable": variable, "help": ""})
            found[-1] |= {"fallback": fallback, "is_secret": bool(secret), "name": name_of(flag)}
        elif re.fullmatch(r"[A-Z]+:", line):
            group = line.rstrip(":").capitalize()
        elif found and line.startswith("      "):
            found[-1]["help"] = f"{found[-1]['help']} {line.strip()}".strip()
    if len(found) < 20 or not all(one["help"] and one["group"] for one in found):
        raise Wrong("the help of `serve` does not list the settings as expected")
    return found


def name_of(flag):
    """Converts `--rate-limit-user` to its name in a settings file: `rateLimitUser`, and `--apns-url` to `apnsURL`."""
    first, *rest = flag.removeprefix("--").split("-")
    return first + "".join("URL" if word == "url" else word.capitalize() for word in rest)


def comment(text):
    """Returns a text as lines of a comment."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) > WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return [f"# {line}" for line in lines]


def value_of(text):
    """Returns a YAML value that is read as exactly this text."""
    return text if re.fullmatch(r"[A-Za-z0-9./][A-Za-z0-9./:_,-]*", text or "") else json.dumps(text or "")


def settings_file(known, is_switched_on=False):
    """Returns the settings file: the package's own settings are set, all others are comments."""
    lines, group = [YAML_HEAD.rstrip()], None
    for one in known:
        if one["group"] != group:
            group = one["group"]
            lines += ["", f"## {group}"]
        lines.append("")
        value, reason = OWN.get(one["name"], (None, None))
        lines += comment(one["help"])
        lines += comment(reason) if reason else []
        if value is not None:
            lines.append(f"{one['name']}: {value_of(value)}")
        elif one["is_secret"]:
            lines.append(f"# A secret: {one['variable']} in bellhop.env.")
        else:
            # Empty means unset.
            value = '""  # by the machine\'s cores' if one["name"] in BY_CORES else value_of(one["fallback"])
            lines.append(f"{'' if is_switched_on else '#'}{one['name']}: {value}")
    return "\n".join(lines) + "\n"


def check_settings(binary, known):
    """Checks that the binary accepts the file, as written and with all commented lines enabled."""
    with tempfile.TemporaryDirectory() as folder:
        for is_switched_on in (False, True):
            path = pathlib.Path(folder) / "settings.yaml"
            path.write_text(settings_file(known, is_switched_on))
            database = f"sqlite:{folder}/{is_switched_on}.sqlite"
            said(binary, "migrate", "--config", str(path), "--database", database)


def escaped(text):
    """Escapes text for troff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def prose(text):
    """Formats a discussion: paragraphs are wrapped, indented text is unchanged."""
    lines = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        if part.startswith("  "):
            verbatim = [escaped(line.removeprefix("  ")) for line in part.splitlines()]
            lines += [".PP", ".RS", ".nf", *verbatim, ".fi", ".RE"]
        else:
            lines += [".PP", "\n.br\n".join(escaped(line) for line in part.splitlines())]
    return lines


def options(command):
    """Returns the arguments of a command, without those that all commands have."""
    lines = []
    for one in command.get("arguments", []):
        names = [("--" if name["kind"] == "long" else "-") + name["name"] for name in one.get("names") or []]
        if not one.get("shouldDisplay", True) or "--help" in names or "--version" in names:
            continue
        value = one.get("valueName", "value")
        value = "" if one["kind"] == "flag" else value if value.startswith("--") else f"<{value}>"
        default = f" Default: {one['defaultValue']}." if one.get("defaultValue") else ""
        lines += [".TP", f".B {escaped(' '.join([', '.join(names), value]).strip())}"]
        lines.append(escaped((one.get("abstract") or "") + default))
    return lines


def subcommands(command, path=""):
    """Returns a section for each command and its subcommands."""
    lines = []
    for one in command.get("subcommands", []):
        name = f"{path} {one['commandName']}".strip()
        if one["commandName"] == "help":
            continue
        lines += [f".SS {escaped('bellhop ' + name)}", escaped(one.get("abstract", ""))]
        discussion = one.get("discussion", "")
        if name == "serve":
            discussion = discussion[: discussion.index("A setting is read")]
        lines += prose(discussion) + options(one) + subcommands(one, name)
    return lines


def manual(root, version, known):
    """Returns the manual page."""
    day = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    lines = [f'.TH BELLHOP 1 {day} "bellhop {version}" "User Commands"', ".nh", ".SH NAME"]
    lines += [f"bellhop \\- {escaped(root['abstract'])}", ".SH SYNOPSIS", ".B bellhop", r"\fIcommand\fR [\fIoptions\fR]"]
    lines += [".SH DESCRIPTION", *prose(root["discussion"]), ".SH COMMANDS", *subcommands(root)]
    lines += [".SH SETTINGS", "From a flag, else a variable, else the file of \\fB\\-\\-config\\fR, else the default."]
    for one in known:
        fallback = "" if one["fallback"] is None or one["name"] in BY_CORES else f" Default: {one['fallback'] or 'none'}."
        lines += [".TP", rf"\fB{escaped(one['flag'])}\fR, \fB{one['variable']}\fR", escaped(one["help"] + fallback)]
    lines += [".SH EXIT STATUS"]
    for code, meaning in {
        "0": "Done; the service was stopped cleanly.",
        "1": "It failed, with one line that says why.",
        "64": "The command line is wrong.",
        "75": "The service cannot start for something that may pass: the database is away, or another process has the port "
        "or the database file. Start it again.",
        "78": "A setting is wrong, or something else that only an operator can correct.",
    }.items():
        lines += [".TP", f".B {code}", escaped(meaning)]
    lines += [".SH FILES"]
    for path, meaning in {
        "/etc/bellhop/bellhop.yaml": "Settings of the packaged service.",
        "/etc/bellhop/bellhop.env": "Its secrets, as variables.",
        "/var/lib/bellhop": "Its database, where that is SQLite.",
        "/usr/share/doc/bellhop": "What there is to read, and examples.",
    }.items():
        lines += [".TP", f".I {path}", escaped(meaning)]
    return "\n".join(lines) + "\n"


def main():
    """Writes all files, or reports the error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("folder", type=pathlib.Path)
    given = parser.parse_args()
    binary, folder = os.path.abspath(given.binary), given.folder
    try:
        root = json.loads(said(binary, "--experimental-dump-help"))["command"]
        (serve,) = (one for one in root["subcommands"] if one["commandName"] == "serve")
        known = settings(serve["discussion"])
        check_settings(binary, known)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "bellhop.yaml").write_text(settings_file(known))
        (folder / "bellhop.1").write_text(manual(root, said(binary, "--version").strip(), known))
        for shell in ("bash", "zsh", "fish"):
            # The shell sources the script, so the interpreter line is removed.
            script = re.sub(r"\A#!.*\n", "", said(binary, "--generate-completion-script", shell))
            (folder / f"bellhop.{shell}").write_text(script)
    except (Wrong, KeyError, ValueError) as wrong:
        sys.exit(f"generate: {wrong!r}" if not isinstance(wrong, Wrong) else f"generate: {wrong}")


if __name__ == "__main__":
    main()
