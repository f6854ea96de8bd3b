#!/usr/bin/env python3
"""Checks the models of this folder exhaustively with Spin.

    Tests/models/check.py [--quick] [--show] [MODEL …]

Each model has a header that says what it covers, what it leaves out, and which source files it stands for. The promise
of a model must hold in each of its configurations. Its switches put a former defect back (`BUG_…`), or lift an
assumption that the service needs (`LIMIT_…`). For each switch, Spin must find a counterexample; a switch that is not
found fails the run.

    --quick   only small configurations
    --show    prints the shortest counterexample of each switch

Needs spin, clang or another C compiler, and 1.4 GB of memory.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
MEMORY_MEGABYTES = 1400
# More than the longest run of any model.
DEPTH_MAX = 100_000
SECONDS_MAX = 900


class Configuration(NamedTuple):
    name: str
    flags: str
    is_quick: bool = True


class Model(NamedTuple):
    file: str
    configurations: list
    # By name: the flags of the configuration in which Spin finds it.
    switches: dict


FAILOVER = "-DCOMMITS=2 -DDISTURBANCES=1 -DKINDS=1"
OTHERS = "-DCOMMITS=2 -DDISTURBANCES=1 -DKINDS=30"
ERASURE = "-DCOMMITS=1 -DDISTURBANCES=2 -DKINDS=33"
CLIENT = "-DCLIENT -DDISTURBANCES=1"
MODELS = [
    Model(
        "log.pml",
        [
            Configuration("a failover", FAILOVER, is_quick=False),
            Configuration("a restart, a failure, a new epoch or pruning", OTHERS),
            Configuration("two failovers of one event", "-DCOMMITS=1 -DDISTURBANCES=2 -DKINDS=1", is_quick=False),
            Configuration("an erasure and a failover", ERASURE, is_quick=False),
            Configuration("an erasure", "-DCOMMITS=2 -DDISTURBANCES=1 -DKINDS=32"),
            Configuration("a client, and an erasure", f"{CLIENT} -DKINDS=32 -DCOMMITS=2 -DJOINS=1"),
            Configuration("a client, and a failover", f"{CLIENT} -DKINDS=1 -DCOMMITS=1"),
            Configuration(
                "a client, and another disturbance", f"{CLIENT} -DCOMMITS=2 -DKINDS=26 -DJOINS=1", is_quick=False),
        ],
        {
            "BUG_B1": "-DCOMMITS=2 -DDISTURBANCES=1 -DKINDS=8", "BUG_B2": FAILOVER, "BUG_B2_DATA": FAILOVER,
            "BUG_TERM": FAILOVER, "BUG_EPOCH": f"{CLIENT} -DKINDS=1 -DCOMMITS=1",
            "BUG_READY": f"{CLIENT} -DCOMMITS=2 -DKINDS=0",
            "BUG_POSITION": f"{CLIENT} -DCOMMITS=2 -DKINDS=0",
            "BUG_ERASED": "-DCOMMITS=2 -DDISTURBANCES=1 -DKINDS=32",
            "BUG_BLANK": f"{CLIENT} -DCOMMITS=2 -DKINDS=32",
        },
    ),
    Model(
        "source.pml",
        [
            Configuration("two disturbances", "-DDISTURBANCES=2"),
            Configuration("three disturbances", "-DDISTURBANCES=3", is_quick=False),
        ],
        {name: "-DDISTURBANCES=2" for name in (
            "BUG_B3", "BUG_TIMELINE", "BUG_END", "BUG_MARK", "BUG_MOVED", "BUG_SLOT", "LIMIT_REGROWN", "LIMIT_PAUSED")},
    ),
    Model(
        "store.pml",
        [
            Configuration("a list", "-DMODE=LIST"),
            Configuration("a state with versions", "-DMODE=VERSIONS"),
            Configuration("rows that the app loads", "-DMODE=ROWS"),
        ],
        {name: "-DMODE=LIST" for name in ("BUG_SINCE", "BUG_COVERED", "BUG_AGAIN", "BUG_OVERFLOW")}
        | {"BUG_VERSION": "-DMODE=VERSIONS"}
        | {name: "-DMODE=ROWS" for name in ("BUG_HEARD", "BUG_CLEARED", "LIMIT_PUT", "LIMIT_FETCH")},
    ),
    Model(
        "outbox.pml",
        [
            Configuration("one disturbance", "-DDISTURBANCES=1"),
            Configuration("two disturbances", "-DDISTURBANCES=2", is_quick=False),
        ],
        {name: "-DDISTURBANCES=1" for name in (
            "BUG_BADGE", "BUG_ROW", "BUG_GONE", "BUG_REST", "BUG_LATE", "BUG_LEASE", "BUG_LANE")}
        | {"BUG_STAMP": "-DDISTURBANCES=2"},
    ),
]


class Failed(Exception):
    """A promise does not hold, or a switch is not found."""


class Run(NamedTuple):
    states: int
    seconds: float
    has_error: bool
    steps: list


def call(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    return done.stdout + done.stderr


def compiler():
    found = shutil.which("clang") or shutil.which("cc")
    if found is None or shutil.which("spin") is None:
        raise Failed("spin and a C compiler are needed: apt-get install spin clang")
    return found


def run(file, flags, is_shortest=False):
    """Explores all states of a model, or all that are needed to find an error.

    - is_shortest: looks for the shortest counterexample.
    """
    flags = flags.split()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(HERE / file, folder)
        complaints = call(["spin", "-a", *flags, file], folder)
        options = ["-O2", "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MEGABYTES}", "-DVECTORSZ=2048"]
        if is_shortest:
            options.append("-DREACH")
        complaints += call([compiler(), *options, "-o", "pan", "pan.c"], folder)
        if not (pathlib.Path(folder) / "pan").exists():
            raise Failed(f"{file} {' '.join(flags)} does not compile:\n{complaints}")
        begin = time.monotonic()
        said = call(["nice", "./pan", f"-m{DEPTH_MAX}", *(["-i"] if is_shortest else [])], folder)
        seconds = time.monotonic() - begin
        states, errors = re.search(r"(\d+) states, stored", said), re.search(r"errors: (\d+)", said)
        if states is None or errors is None or "max search depth too small" in said:
            raise Failed(f"{file} {' '.join(flags)}: the search did not end well:\n{said}")
        has_error = int(errors[1]) > 0
        if not has_error and "Search not completed" in said:
            raise Failed(f"{file} {' '.join(flags)}: the memory is too small for all states:\n{said}")
        return Run(int(states[1]), seconds, has_error, steps(file, flags, folder) if has_error else [])


def steps(file, flags, folder):
    """Returns the steps of the counterexample that was found."""
    said = call(["spin", "-T", "-k", f"{file}.trail", *flags, file], folder)
    lines = [line for line in said.splitlines() if line and not line[0].isspace()]
    return [line for line in lines if not re.match(r"(spin: (trail|/|\w+\.pml)|#proc|\d+ process)", line)]


def report(file, name, found, result):
    print(f"  {file:12} {name:46} {found.states:>10,} states {found.seconds:>6.1f} s  {result}", flush=True)


def check_promise(model, configuration):
    found = run(model.file, configuration.flags)
    report(model.file, configuration.name, found, "BROKEN" if found.has_error else "holds")
    if found.has_error:
        return [f"{model.file}, {configuration.name}: the promise does not hold:\n  " + "\n  ".join(found.steps)]
    return []


def check_switch(model, switch, flags, is_shown):
    found = run(model.file, f"{flags} -D{switch}", is_shortest=True)
    report(model.file, switch, found, f"found in {len(found.steps)} steps" if found.has_error else "NOT FOUND")
    if is_shown:
        print("\n".join(f"      {step}" for step in found.steps), flush=True)
    return [] if found.has_error else [f"{model.file}: {switch} is not found"]


def documented_switches(file):
    """Returns the switches that the header of a model describes."""
    return set(re.findall(r"^ \* ((?:BUG|LIMIT)_\w+):", (HERE / file).read_text(encoding="utf-8"), re.MULTILINE))


def check(model, options):
    problems = []
    if documented_switches(model.file) != set(model.switches):
        difference = documented_switches(model.file) ^ set(model.switches)
        problems.append(f"{model.file}: its header and check.py differ in {', '.join(sorted(difference))}")
    cases = 0
    for configuration in model.configurations:
        if configuration.is_quick or not options.quick:
            problems += check_promise(model, configuration)
            cases += 1
    for switch, flags in model.switches.items():
        problems += check_switch(model, switch, flags, options.show)
        cases += 1
    return cases, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("models", nargs="*", metavar="MODEL")
    options = parser.parse_args()
    os.environ["LC_ALL"] = "C"
    cases, problems = 0, []
    unlisted = {path.name for path in HERE.glob("*.pml")} - {model.file for model in MODELS}
    problems += [f"{name} is not in check.py" for name in sorted(unlisted)]
    for model in MODELS:
        if not options.models or model.file.removesuffix(".pml") in options.models:
            count, found = check(model, options)
            cases, problems = cases + count, problems + found
    print("\n".join(problems), end="\n" if problems else "", file=sys.stderr)
    print(f"cases: {cases}", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as problem:
        sys.exit(str(problem))
