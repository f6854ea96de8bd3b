"""Judges whether a history is linearizable: whether each operation can have taken effect at one moment between its call and
its answer, so that every answer is that of a service that performs one operation after the other.

The search is that of Wing and Gong (Testing and verifying concurrent objects, 1993), with the memory of Lowe (Testing for
linearizability, 2017): a set of performed operations that led to the same state is searched once. Each key is judged by
itself (Herlihy and Wing 1990: linearizability is local).
"""

from .history import NEVER, UNKNOWN

# More states than any history of the tests needs. A search beyond it is not judged, and fails.
STATES_MAX = 2_000_000


class Undecided(Exception):
    """The search is too long to judge a history."""


class Verdict:
    """The judgement of one key.

    - order: the order in which the operations can have taken effect; None if there is none.
    - longest: the longest order that was found, if there is none for all operations.
    """

    def __init__(self, order, longest, states):
        self.order, self.longest, self.states = order, longest, states

    @property
    def is_linearizable(self):
        return self.order is not None


def judge(specification, operations):
    """Judges the operations of one key.

    - specification: an object with `initial`, and with `apply(state, operation)`, which returns the next state, or None if
      the operation's value is not possible in this state. States can be hashed. A value that is UNKNOWN is possible always.
    """
    # A read without an answer says nothing.
    operations = [one for one in operations if one.name != "read" or one.value != UNKNOWN]
    operations.sort(key=lambda operation: operation.called)
    certain = sum(1 << place for place, operation in enumerate(operations) if operation.answered != NEVER)
    seen, longest, states = set(), (0, ()), 0
    # Each entry: the performed operations as bits, the state, and the order so far as a chain from its last operation.
    stack = [(0, specification.initial, ())]
    while stack:
        done, state, order = stack.pop()
        if done & certain == certain:
            return Verdict(_listed(order, operations), [], states)
        if done.bit_count() > longest[0]:
            longest = (done.bit_count(), order)
        for place, operation in _candidates(operations, done):
            following = specification.apply(state, operation)
            if following is None:
                continue
            configuration = (done | 1 << place, following)
            if configuration in seen:
                continue
            seen.add(configuration)
            states += 1
            if states > STATES_MAX:
                raise Undecided(f"{operation.key}: more than {STATES_MAX} states")
            stack.append((*configuration, (place, order)))
    return Verdict(None, _listed(longest[1], operations), states)


def _candidates(operations, done):
    """Returns the operations that can come next: no other one that is not performed was answered before their call. The
    first to be answered comes last, so that the search tries it first. Operations without an answer are tried last."""
    waiting = [(place, operation) for place, operation in enumerate(operations) if not done >> place & 1]
    first = min(operation.answered for _, operation in waiting)
    possible = [(place, operation) for place, operation in waiting if operation.called <= first]
    return sorted(possible, key=lambda one: -one[1].answered)


def _listed(order, operations):
    """Returns the operations of an order, which is a chain from its last place to its first."""
    places = []
    while order:
        place, order = order
        places.append(place)
    return [operations[place] for place in reversed(places)]


def explain(verdict, operations):
    """Returns a text that says why a history is not linearizable."""
    placed = set(map(id, verdict.longest))
    left = [operation for operation in operations if id(operation) not in placed and operation.value != UNKNOWN]
    lines = ["the longest possible order is:", *(f"  {operation}" for operation in verdict.longest[-12:]),
             "none of these can follow:", *(f"  {operation}" for operation in left[:8])]
    return "\n".join(lines)


def judge_all(specifications, history):
    """Judges all keys of a history. Returns the number of operations and of states, and the problems as texts.

    - specifications: a function that returns the specification of a key.
    """
    states, problems = 0, []
    for key, operations in sorted(history.by_key().items()):
        try:
            verdict = judge(specifications(key), operations)
        except Undecided as problem:
            problems.append(str(problem))
            continue
        states += verdict.states
        if not verdict.is_linearizable:
            problems.append(f"{key} is not linearizable: {explain(verdict, operations)}")
    return len(history.operations), states, problems
