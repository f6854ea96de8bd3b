"""How the service must behave if it performed one operation after the other."""

from .history import UNKNOWN


class Count:
    """A number that only grows: `add` adds one, and `read` returns it. A repeated `add` with the same argument adds nothing."""

    initial = (0, frozenset())

    @staticmethod
    def apply(state, operation):
        number, added = state
        if operation.name == "add":
            known = operation.argument in added
            return state if known else (number + 1, added | {operation.argument})
        return state if operation.value in (number, UNKNOWN) else None


class Slot:
    """A time of a barber: the first `book` takes it, and each later one of somebody else is refused. `read` returns who has
    it, or None."""

    FREE = "free"
    initial = FREE

    @classmethod
    def apply(cls, state, operation):
        if operation.name == "book":
            outcome = "taken" if state not in (cls.FREE, operation.argument) else "booked"
            if operation.value not in (outcome, UNKNOWN):
                return None
            return operation.argument if outcome == "booked" else state
        shown = None if state == cls.FREE else state
        return state if operation.value in (shown, UNKNOWN) else None


class Votes:
    """The votes on one track: each user has at most one. `vote` sets it to up, down or none, and returns the numbers of
    votes up and down; `read` returns them."""

    initial = ()

    @staticmethod
    def apply(state, operation):
        votes = dict(state)
        if operation.name == "vote":
            votes.pop(operation.client, None)
            if operation.argument != "none":
                votes[operation.client] = operation.argument
        counted = (list(votes.values()).count("up"), list(votes.values()).count("down"))
        return tuple(sorted(votes.items())) if operation.value in (counted, UNKNOWN) else None
