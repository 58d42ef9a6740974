"""Two versions of the engine over one store: which host is older, and what it leaves alone (R19).

The newer version is the engine with a format that it does not have yet: to that it raises a head at
random, as if it had written something new. The older one is the engine as it is.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Self, TypeVar

from stepwell_engine.adapters.memory.runs import MemoryRuns
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.status import Status
from stepwell_engine.limits import RUN_FORMAT
from stepwell_engine.ports import Commit, Done
from tests.sim.ledger import Ledger
from tests.sim.scheduler import EPOCH, Actor, Violation

R = TypeVar("R", bound="VersionedRuns")
_SHARE = 0.2  # of the worlds have two versions
_NEWER = RUN_FORMAT + 1
_LOG = (3.0, 5.8)  # of the length of a phase in ms: a second to 10 minutes
_RISES = (0.0, 0.0, 0.05, 0.3)
_DISTURBS = (0.1, 0.3, 0.6)
_PAUSE_LOG = (0.0, 4.5)  # in ms: a lease is at work that long


class VersionedRuns(MemoryRuns):
    """The memory adapter, which versions of the engine may share."""

    def __init__(self) -> None:
        super().__init__()
        self._rises: Callable[[], bool] = lambda: False
        self._lets_go = False

    def of(self, known_format: int, rises: Callable[[], bool] = lambda: False) -> Self:
        """The same runs as a version sees them that reads up to a format, and may write it."""
        other = copy.copy(self)
        other.known_format, other._rises = known_format, rises
        return other

    def write_something_new(self, run_id: str) -> Head:
        """As a request does to a newer version, say, which is no business of the lease's holder."""
        head = self._heads[run_id]
        return self._put(replace(head, format=max(head.format, _NEWER))).head

    def let_go(self, commit: Commit) -> bool:
        """The only write to a head of a newer format."""
        self._lets_go = True
        try:
            return super().let_go(commit)
        finally:
            self._lets_go = False

    def _put(self, head: Head, blobs: Sequence[Blob] = ()) -> Done:
        old = self._heads.get(head.run_id)
        if old is not None:
            self._check_write(old, head)
        if self._rises():
            head = replace(head, format=max(head.format, self.known_format))
        return super()._put(head, blobs)

    def _check_write(self, old: Head, new: Head) -> None:
        """No write lowers the format, and an older version only ever lets go. Property 1."""
        if new.format < old.format:
            raise Violation(1, f"format {old.format} of {old.run_id} became {new.format}")
        if old.format <= self.known_format:
            return
        known = f"a version that reads up to format {self.known_format}"
        if not self._lets_go:
            raise Violation(1, f"{known} wrote {old.run_id}, which has format {old.format}")
        if new.status not in (old.status, Status.PENDING) or new.live != old.live:
            raise Violation(1, f"{known} made {new.status} of {old.run_id}, which is {old.status}")
        if (new.inbox, new.overflow_count) != (old.inbox, old.overflow_count):
            raise Violation(6, f"{known} consumed messages of {old.run_id}")
        if new.live and new.lease_token is not None:
            raise Violation(4, f"{known} keeps the lease of {old.run_id}")


@dataclass
class LeftAlone:
    """The runs that older hosts left to newer ones: these may come later.

    `at` is when one last did so, of each run; `tokens` are those of leases let go of; `mixed`:
    there are two versions in this world.
    """

    mixed: bool = False
    at: dict[str, int] = field(default_factory=dict)
    last: int = 0
    tokens: set[str] = field(default_factory=set)

    def note(self, run_id: str | None, now: int) -> None:
        """An older host leaves a run alone, or what that stands in need of."""
        if run_id is not None:
            self.at[run_id] = self.last = now

    def met(self, run_id: str | None, actor: Actor | None, now: int) -> None:
        """An older host could not read a run, which it came for or which it needed."""
        self.note(run_id, now)
        if actor is not None:
            self.note(actor.run_id, now)
            actor.met_newer = True

    def lets_go(self, run_id: str, token: str, now: int) -> bool:
        """A worker lets go of a run; whether two versions share the store."""
        self.tokens.add(token)
        if self.mixed:
            self.note(run_id, now)  # it may wait for another run, which was left alone
        return self.mixed

    def passed_over(self, ledgers: Iterable[Ledger], now: int) -> None:
        """An older host made a tick: it found none of the runs that it cannot read."""
        for ledger in ledgers:
            if ledger.head.format > RUN_FORMAT and not ledger.done:
                self.note(ledger.head.run_id, now)

    def since(self, run_id: str) -> int:
        """When an older host last left the run alone."""
        return self.at.get(run_id, 0)


def check_let_go(actor: Actor, head: Head | None) -> None:
    """A worker that met a newer format has gone: it has let go of its run. Property 4.

    If it knew that it held it: a lease whose claim was never answered runs out.
    """
    if actor.met_newer and head is not None and head.live and head.lease_token == actor.claimed:
        raise Violation(4, f"{actor.name} met a newer format, and keeps its lease of {head.run_id}")


@dataclass(frozen=True)
class Formats:
    """Which hosts are older in a seed: the numbers of those, from each time on."""

    phases: Sequence[tuple[int, frozenset[int]]]
    rises: float = 0.0  # how often a write of a newer host raises the format
    often: float = 0.0  # how often a newer host writes to a run that somebody works at
    random: Random = field(default_factory=Random)

    def versions(self, store: R) -> Sequence[R]:
        """The store as the newer and, where there is one, the older version sees it."""
        if not self.phases:
            return (store,)
        newer = store.of(_NEWER, lambda: self.random.random() < self.rises)
        return newer, store.of(RUN_FORMAT)

    def disturbs(self, what: str) -> int | None:
        """In how many ms a newer host writes to a run that somebody worked at just now."""
        held = what in ("claim", "commit", "attempt")
        if not (held and self.phases) or self.random.random() >= self.often:
            return None
        return int(10 ** self.random.uniform(*_PAUSE_LOG))

    def is_older(self, host: int, now: int) -> bool:
        """Whether a host is of the older version now."""
        older: frozenset[int] = frozenset()
        for begins, hosts in self.phases:
            older = hosts if begins <= now else older
        return host in older

    def any_newer(self, hosts: int, now: int) -> bool:
        """Whether there are newer hosts now."""
        return any(not self.is_older(host, now) for host in range(hosts))


def draw_formats(seed: int, hosts: int) -> Formats:
    """One version, or two: side by side, an upgrade, one that is rolled back and tried again.

    In the last phase there are newer hosts: every run can end.
    """
    random = Random(f"formats {seed}")
    if random.random() >= _SHARE:
        return Formats(())
    everyone, nobody = frozenset(range(hosts)), frozenset[int]()
    some = frozenset(random.sample(range(hosts), random.randrange(1, hosts)))
    rest = everyone - some
    sequence = random.choice(
        (
            (some,),
            (some, rest),
            (everyone, some, nobody),
            (everyone, nobody),
            (nobody, some, everyone, rest),
            (some, everyone, some),
            (everyone, nobody, everyone, nobody),
            (everyone, some, nobody, rest, everyone, some, nobody),
        )
    )
    phases, begins = [], EPOCH
    for older in sequence:
        phases.append((begins, older))
        begins += int(10 ** random.uniform(*_LOG))
    return Formats(phases, random.choice(_RISES), random.choice(_DISTURBS), random)
