"""Counts where workers, callers and the tick crashed."""

from collections import Counter
from typing import Literal

from stepwell_engine.core.declared.definition import Kind
from tests.sim.definitions import ACTIONS, KINDS, WAITS

When = Literal["before", "after"]
# A worker's calls at a step; only actions have attempts, or outlast the lease.
_ANYWHERE = ("claim", "commit", "close", "sleep")
_STEPPING = (*_ANYWHERE, "blob", "hint")
_ATTEMPTING = (*_STEPPING, "extend", "run")
_CALLING = (*_STEPPING, "extend", "create", "cancel")
_NOTIFYING = ("claim", "read", "blob", "deliver", "hint", "mark_notified", "sleep")
# Calls of callers and of the tick, whatever the run's step.
_DELIVERING = ("deliver", "key_entry", "slot", "key", "count")
_OTHERS = ("by_key", "get", "blob", "create", *_DELIVERING, "cancel", "due", "hint", "sleep")
ANY = "any"
COMPENSATION = "compensation"  # a run that is being compensated
NOTIFICATION = "notification"  # a child that has ended; its parent is not notified yet
ENOUGH = 5_000  # seeds: from so many on, a combination that was never hit is an error

_POINTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(ACTIONS, _ATTEMPTING),
    **dict.fromkeys(WAITS, _STEPPING),
    Kind.WAIT_FOR_SIGNAL: (*_STEPPING, "slots"),
    Kind.FANOUT: _ANYWHERE,  # the first step of its run: it is passed with what was before it
    Kind.JOIN: (*_ATTEMPTING, "get"),  # the tasks of a group run the attempts of the children
    Kind.SUBWORKFLOW: _CALLING,
    COMPENSATION: (*_ATTEMPTING, "get"),
    NOTIFICATION: _NOTIFYING,
    ANY: _OTHERS,
}

Point = tuple[str, str, str]


def wanted() -> list[Point]:
    """Every combination of what a run is at, a port's call, and before or after it."""
    pairs = [(str(kind), call) for kind, calls in _POINTS.items() for call in calls]
    return [(kind, call, when) for kind, call in pairs for when in ("before", "after")]


class Coverage:
    """Counts the crashes at each point."""

    def __init__(self) -> None:
        self.hits: Counter[Point] = Counter()

    def hit(self, kind: str, call: str, when: When) -> None:
        """A crash."""
        self.hits[kind, call, when] += 1

    def missed(self) -> list[Point]:
        """The combinations at which nothing crashed."""
        return [point for point in wanted() if not self.hits[point]]

    def line(self) -> str:
        """One line for people."""
        points = wanted()
        missed = self.missed()
        rarest = min(points, key=lambda point: self.hits[point])
        text = (
            f"coverage: {len(KINDS)} kinds of steps × crash points: "
            f"{len(points) - len(missed)} of {len(points)} hit, "
            f"rarest {' '.join(rarest)} ({self.hits[rarest]}×)"
        )
        if missed:
            text += "; never hit: " + ", ".join(" ".join(point) for point in missed)
        return text
