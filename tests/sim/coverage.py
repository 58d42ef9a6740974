"""Where the workers, the callers and the tick were made to crash."""

from collections import Counter
from typing import Literal

from tests.sim.workload import ACTIONS, KINDS

When = Literal["before", "after"]
# A worker's calls, at every kind of step; only an action is performed or outlasts its lease.
_EVERYWHERE = ("claim", "blob", "commit", "close", "hint", "sleep")
_ACTING = ("extend", "perform")
# Calls of callers and of the tick, whatever the run's step.
_OTHERS = ("by_key", "get", "blob", "create", "deliver", "cancel", "due", "hint", "sleep")
ANY = "any"
ENOUGH = 5_000  # seeds: from so many on, a combination that was never hit is an error

Point = tuple[str, str, str]


def wanted() -> list[Point]:
    """Every combination of a kind of step, a port's call, and before or after it."""
    pairs = [(str(kind), call) for kind in KINDS for call in _EVERYWHERE]
    pairs += [(str(kind), call) for kind in ACTIONS for call in _ACTING]
    pairs += [(ANY, call) for call in _OTHERS]
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
