#!/usr/bin/env python3
"""Tests of the checker: histories that are linearizable and histories that are not, written as lines and made at random.

    Tests/histories/test_checker.py [--seed 1] [--rounds 300]

A line is `client name argument = value @ call answer`; the value `?` and the answer `-` stand for a lost answer.
"""

import argparse
import itertools
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

# pylint: disable=wrong-import-position
from histories import checker
from histories.history import NEVER, UNKNOWN, History, NeverSent, Operation
from histories.specifications import Count, Slot, Votes

COUNTS_GOOD = {
    "one after the other": "a add 1 = None @ 1 2\n b read = 1 @ 3 4",
    "a read beside a write sees either": "a add 1 = None @ 1 4\n b read = 0 @ 2 3\n c read = 1 @ 2 3",
    "a lost answer that took effect": "a add 1 = ? @ 1 -\n b read = 1 @ 2 3",
    "a lost answer that never took effect": "a add 1 = ? @ 1 -\n b read = 0 @ 2 3",
    "a lost answer that takes effect late": "a add 1 = ? @ 1 -\n b read = 0 @ 2 3\n b read = 1 @ 4 5",
    "a repetition counts once": "a add 1 = ? @ 1 -\n a add 1 = None @ 3 4\n b read = 1 @ 5 6",
    "writes beside each other": "a add 1 = None @ 1 6\n b add 2 = None @ 1 6\n c read = 1 @ 2 3\n c read = 2 @ 4 5",
}
COUNTS_BAD = {
    "an acknowledged write is lost": "a add 1 = None @ 1 2\n b read = 0 @ 3 4",
    "a repetition counts twice": "a add 1 = ? @ 1 -\n a add 1 = None @ 3 4\n b read = 2 @ 5 6",
    "a count goes back": "a add 1 = None @ 1 6\n b read = 1 @ 2 3\n c read = 0 @ 4 5",
    "a count of nothing": "b read = 1 @ 1 2",
    "a write is seen before its call": "b read = 1 @ 1 2\n a add 1 = None @ 3 4",
    "a lost answer takes effect and is undone": "a add 1 = ? @ 1 -\n b read = 1 @ 2 3\n b read = 0 @ 4 5",
}
SLOTS_GOOD = {
    "the first has it": "a book a = booked @ 1 2\n b book b = taken @ 3 4\n c read = a @ 5 6",
    "nobody has it yet": "c read = None @ 1 2\n a book a = booked @ 3 4",
    "the later call comes first": "a book a = taken @ 1 6\n b book b = booked @ 2 3",
    "a lost booking takes it": "a book a = ? @ 1 -\n b book b = taken @ 2 3\n c read = a @ 4 5",
    "a repetition": "a book a = ? @ 1 -\n a book a = booked @ 2 3",
}
SLOTS_BAD = {
    "taken twice": "a book a = booked @ 1 4\n b book b = booked @ 2 3",
    "refused, and free": "a book a = taken @ 1 2\n c read = None @ 3 4",
    "refused by a later one": "a book a = taken @ 1 2\n b book b = booked @ 3 4",
    "lost after it was acknowledged": "a book a = booked @ 1 2\n c read = None @ 3 4",
    "it changes hands": "a book a = ? @ 1 -\n b book b = ? @ 1 -\n c read = a @ 2 3\n c read = b @ 4 5",
}
VOTES_GOOD = {
    "one for each user": "a vote up = 1,0 @ 1 2\n b vote down = 1,1 @ 3 4\n a vote none = 0,1 @ 5 6",
    "a vote is changed": "a vote up = 1,0 @ 1 2\n a vote down = 0,1 @ 3 4\n c read = 0,1 @ 5 6",
    "a repeated vote": "a vote up = ? @ 1 -\n a vote up = 1,0 @ 2 3",
    "beside each other": "a vote up = 2,0 @ 1 4\n b vote up = 1,0 @ 2 5",
}
VOTES_BAD = {
    "counted twice": "a vote up = 1,0 @ 1 2\n a vote up = 2,0 @ 3 4",
    "lost": "a vote up = 1,0 @ 1 2\n c read = 0,0 @ 3 4",
    "both are first": "a vote up = 1,0 @ 1 4\n b vote up = 1,0 @ 2 5",
    "the former vote stays": "a vote up = 1,0 @ 1 2\n a vote down = 1,1 @ 3 4",
}


def read(text):
    """Returns the operations of a text."""
    operations = []
    for line in text.splitlines():
        action, outcome = line.split(" = ")
        client, name, *arguments = action.split()
        value, times = outcome.split(" @ ")
        called, answered = times.split()
        operations.append(Operation(
            client, "key", name, arguments[0] if arguments else None, read_value(value), float(called),
            NEVER if answered == "-" else float(answered)))
    return operations


def read_value(text):
    if text == "?":
        return UNKNOWN
    if "," in text:
        return tuple(map(int, text.split(",")))
    return None if text == "None" else int(text) if text.isdigit() else text


def written(specification, good, bad):
    """Judges the written histories."""
    for texts, is_expected in ((good, True), (bad, False)):
        for name, text in texts.items():
            verdict = checker.judge(specification, read(text))
            assert verdict.is_linearizable == is_expected, f"“{name}” should {'' if is_expected else 'not '}be linearizable"
            if not is_expected:
                assert "none of these can follow" in checker.explain(verdict, read(text))
    return len(good) + len(bad)


def by_permutation(specification, operations):
    """Judges a short history by trying all orders: slow, and obviously right."""
    lost = [operation for operation in operations if operation.answered == NEVER]
    for count in range(len(lost) + 1):
        for dropped in itertools.combinations(lost, count):
            kept = [operation for operation in operations if operation not in dropped]
            if any(is_order(specification, order) for order in itertools.permutations(kept)):
                return True
    return False


def is_order(specification, order):
    state = specification.initial
    for place, operation in enumerate(order):
        if any(later.answered < operation.called for later in order[place + 1:]):
            return False
        state = specification.apply(state, operation)
        if state is None:
            return False
    return True


def random_history(choices):
    """Returns a history of counts of which about half are linearizable."""
    operations, times = [], list(range(12))
    choices.shuffle(times)
    for number in range(choices.randint(2, 5)):
        called, answered = sorted((times.pop(), times.pop()))
        is_lost = choices.random() < 0.25
        name, argument, value = ("add", choices.randint(1, 3), None)
        if choices.random() < 0.5:
            name, argument, value = "read", None, choices.randint(0, 2)
        operations.append(Operation(
            f"c{number}", "key", name, argument, UNKNOWN if is_lost else value, called, NEVER if is_lost else answered))
    return operations


def compared(seed, rounds):
    """Compares the checker with the slow one on random histories."""
    choices, outcomes = random.Random(seed), {True: 0, False: 0}
    for _ in range(rounds):
        operations = random_history(choices)
        expected = by_permutation(Count, operations)
        outcomes[expected] += 1
        told = checker.judge(Count, operations).is_linearizable
        assert told == expected, f"seed {seed}: {told}, not {expected}:\n" + "\n".join(map(str, operations))
    assert min(outcomes.values()) > rounds / 10, f"the random histories are too alike: {outcomes}"
    return 1


def recorded():
    """The recorder notes answers, and operations that ended without one."""
    times = iter(range(10))
    history = History(clock=lambda: next(times))
    with history.operation("a", "k", "add", 1) as answer:
        answer(None)
    try:
        with history.operation("b", "k", "read"):
            raise ConnectionResetError
    except ConnectionResetError:
        pass
    try:
        with history.operation("b", "k", "read"):
            raise NeverSent
    except NeverSent:
        pass
    assert [(one.value, one.called, one.answered) for one in history.operations] == [(None, 0, 1), (UNKNOWN, 2, NEVER)]
    assert checker.judge_all(lambda _: Count, history)[2] == []
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    cases = written(Count, COUNTS_GOOD, COUNTS_BAD)
    cases += written(Slot, SLOTS_GOOD, SLOTS_BAD)
    cases += written(Votes, VOTES_GOOD, VOTES_BAD)
    cases += recorded() + compared(options.seed, options.rounds)
    print(f"histories: seed {options.seed}; the checker judges {cases - 2} written histories, and {options.rounds} random ones")
    print(f"cases: {cases}")


if __name__ == "__main__":
    main()
