"""What goes wrong, and how often: drawn once for each seed."""

from dataclasses import dataclass
from enum import Enum
from random import Random

from stepwell_engine.core.declared.definition import Kind
from tests.sim.coverage import ANY, COMPENSATION, NOTIFICATION


class Fate(Enum):
    """What becomes of one call of a port."""

    CRASH_BEFORE = "crashes before"
    CRASH_AFTER = "crashes after"
    LOST_CALL = "is never made"
    LOST_ANSWER = "is made, its answer lost"
    GHOST = "will be made much later"
    STALL_BEFORE = "stalls before"
    STALL_AFTER = "stalls after"


# Calls that are made seldom crash, or come late, more often, so that every crash point is seen; at
# a step that parks, at which no worker stays for long, even more so.
_WORKERS = {"blob": 0.1, "commit": 0.02, "extend": 0.15, "close": 0.8, "sleep": 0.1, "hint": 0.06}
_PARKING = {**_WORKERS, "blob": 0.85, "claim": 0.2, "commit": 0.15, "sleep": 0.2}
_CALLING = {**_PARKING, "blob": 0.2, "create": 0.1, "cancel": 0.3, "extend": 0.9}
_CROWD = {**_WORKERS, "get": 0.05}
_NOTIFYING = {
    "claim": 0.05,
    "read": 0.1,
    "blob": 0.2,
    "deliver": 0.05,
    "hint": 0.06,
    "mark_notified": 0.05,
}
_OTHERS = {"cancel": 0.02, "sleep": 0.02, "slot": 0.05, "key": 0.05, "count": 0.05}
_MORE = {
    ANY: _OTHERS,
    NOTIFICATION: {**_NOTIFYING, "sleep": 0.1},
    COMPENSATION: {**_CROWD, "get": 0.9},
    Kind.FANOUT: _PARKING,
    Kind.JOIN: _CROWD,
    Kind.SLEEP: _PARKING,
    Kind.SUBWORKFLOW: _CALLING,
    Kind.WAIT_FOR_SIGNAL: {**_PARKING, "slots": 0.1},
}
# Calls that always answer.
_SURE = frozenset({"sleep", "hint", "run"})
_UNANSWERED = frozenset({Fate.LOST_CALL, Fate.LOST_ANSWER, Fate.GHOST})
_CRASHES = (Fate.CRASH_BEFORE, Fate.CRASH_AFTER)
_ALMOST_NEVER, _OFTEN = 0.002, 0.06  # of a call


@dataclass(frozen=True)
class Profile:
    """Probabilities of a seed. Of each call: `fates`; of each hint, attempt, page entry, tick …

    `ends` is when faults stop, in ms after the start; a calm seed has none at all.
    """

    calm: bool
    ends: int
    fates: tuple[tuple[Fate, float], ...]
    hint_lost: float
    hint_doubled: float
    hint_late: float
    hint_again: float  # of a crash or an unanswered call: the queue delivers the hint once more
    attempt_crash: float
    attempt_stall: float
    due_missed: float
    due_stale: float
    tick_late: float
    clock_jump: float


def draw_profile(random: Random) -> Profile:
    """A calm world, or one in which some things go wrong and others do not."""
    calm = random.random() < 0.2

    def chance(most: float) -> float:
        if calm or random.random() < 0.35:
            return 0.0
        return float(most * random.random() ** 2)

    total = 0.0
    fates = []
    for fate in Fate:
        if not calm and random.random() < 0.65:
            often = 3 * _OFTEN if fate is Fate.GHOST else _OFTEN
            total += _ALMOST_NEVER + often * random.random() ** 2
            fates.append((fate, total))
    return Profile(
        calm=calm,
        ends=random.choice((30_000, 300_000, 1_800_000, 14_400_000)),
        fates=tuple(fates),
        hint_lost=chance(0.5),
        hint_doubled=chance(0.5),
        hint_late=chance(0.4),
        hint_again=chance(1.0),
        attempt_crash=chance(0.3),
        attempt_stall=chance(0.2),
        due_missed=chance(0.4),
        due_stale=chance(0.4),
        tick_late=chance(0.5),
        clock_jump=chance(0.1),
    )


class Faults:
    """Draws from a profile; nothing goes wrong once `active` is False."""

    def __init__(self, profile: Profile, random: Random) -> None:
        self.profile = profile
        self.active = not profile.calm
        self._random = random
        possible = {fate for fate, _ in profile.fates}
        self._telling = [
            *(_CRASHES if possible.intersection(_CRASHES) else ()),
            *possible.intersection({Fate.GHOST}),
        ]
        self._total = profile.fates[-1][1] if profile.fates else 0.0

    def fate(self, call: str, kind: str) -> Fate | None:
        """What becomes of a call at a kind of step; None: it is made and answered."""
        if not self.active:
            return None
        drawn = self._random.random()
        more = _MORE.get(kind, _WORKERS).get(call, 0.0)
        if drawn < more and self._telling:
            found = self._telling[int(drawn / more * len(self._telling))]
            return None if found in _UNANSWERED and call in _SURE else found
        if drawn >= self._total:
            return None
        found = next(fate for fate, bound in self.profile.fates if drawn < bound)
        return None if found in _UNANSWERED and call in _SURE else found

    def happens(self, probability: float) -> bool:
        """Whether a fault of this probability happens now."""
        return self.active and probability > 0 and self._random.random() < probability

    def stall(self) -> int:
        """How long a process stands still, in ms: seldom longer than a lease of ten minutes."""
        return int(10 ** (2 + 3.8 * self._random.random()))

    def lateness(self) -> int:
        """How late a ghost's write or a delayed hint comes, in ms."""
        return int(10 ** (2 + 3.3 * self._random.random()))
