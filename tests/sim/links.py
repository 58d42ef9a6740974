"""Every call of a port goes through here: a point at which the caller may crash or stall, or get
no answer, and at which others may run.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from stepwell_engine import limits
from stepwell_engine.adapters.delivery import KeyEntry
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage, Slot
from stepwell_engine.errors import NewerFormat, Unavailable
from stepwell_engine.ports import Delivered, Refused
from tests.sim.checks import Checks
from tests.sim.coverage import ANY, Coverage, When
from tests.sim.endings import Endings
from tests.sim.faults import Fate, Faults
from tests.sim.formats import VersionedRuns
from tests.sim.outages import Outages
from tests.sim.scheduler import Scheduler

T = TypeVar("T")
NOT_THE_STORES = frozenset({"sleep", "hint"})
# Between a runner's last look at its deadline and the effect, in ms: what the margin of R4 covers
# beside the skew of two clocks. Before that look a worker may stand still for any time.
LONGEST_PAUSE = 950
_LATENCY = 12  # of a call and of its answer, each, at most, in ms


class Store(VersionedRuns):
    """The memory adapter, with what a simulator must be able to do beside the port."""

    def put_blob(self, run_id: str, blob: Blob) -> None:
        """Put one blob on its own."""
        self._blobs[run_id, blob.name] = blob.data

    def __init__(self) -> None:
        super().__init__()
        self.older: Callable[[], bool] = lambda: False  # whether an older version delivers now

    def deliver_as_before(
        self, run_id: str, message_id: str, message: InboxMessage, now: int, key: str | None
    ) -> Delivered | Refused:
        """As a version did it that knew no overflow: all into the head, a key in a transaction."""
        with self._lock:
            head, before = self._heads.get(run_id), self._delivered_keys.get((run_id, key or ""))
            if key is not None and before is not None:
                if before.number is not None:
                    raise Unavailable("a key that an older version cannot read")
                return Delivered(head, before.at)
            if head is None or not head.live:
                return Refused(head)
            if message_id in head.inbox:
                return Delivered(head, head.inbox[message_id].at)
            if len(head.inbox) >= limits.MAX_PENDING_SIGNALS:
                return Refused(head)
            if key is not None:
                self._delivered_keys[run_id, key] = KeyEntry(None, message.at)
            after = self._woken(self._delivered(head, message_id, message), now)
            return Delivered(self._put(after).head, message.at)

    @property
    def slots(self) -> dict[tuple[str, int], Slot]:
        """The slots of all overflows."""
        return self._slots

    def peek(self, run_id: str) -> Head | None:
        """The head."""
        return self._heads.get(run_id)

    def peek_blob(self, run_id: str, name: str) -> bytes | None:
        """A blob's data."""
        return self._blobs.get((run_id, name))

    def earliest(self) -> int | None:
        """The smallest wake_at."""
        found = [head.wake_at for head in self._heads.values() if head.wake_at is not None]
        return min(found, default=None)


@dataclass(frozen=True)
class Links:
    """What every proxy needs."""

    scheduler: Scheduler
    faults: Faults
    checks: Checks
    coverage: Coverage
    store: Store
    reacts: Callable[[str, str], None]  # called with what happened, and to which run
    outages: Outages
    endings: Endings

    def latency(self) -> int:
        """How long one way takes, in ms."""
        return 1 + int(self.scheduler.random.random() * _LATENCY)

    def fault(self) -> None:
        """Something went wrong just now."""
        self.checks.last_fault = self.scheduler.now

    def stall(self) -> None:
        """The process stands still."""
        ms = self.faults.stall()
        self.scheduler.note("stalls for", ms, "ms")
        self.scheduler.pause(ms)
        self.fault()

    def kind(self) -> str:
        """The kind of step at which the run of the calling worker stands."""
        actor = self.scheduler.current
        ledger = self.checks.ledgers.get(actor.run_id or "") if actor is not None else None
        return ledger.kind if ledger is not None else ANY

    def crash(self, kind: str, call: str, when: When) -> NoReturn:
        """The process dies at this point."""
        self.fault()
        self.coverage.hit(kind, call, when)
        self.scheduler.note("crashes", when, call)
        actor = self.scheduler.current
        if actor is not None and actor.run_id in self.checks.ledgers:
            self.reacts("crash", actor.run_id)
        self.scheduler.die()

    def call(self, name: str, run_id: str | None, apply: Callable[[], T], ghost: bool = False) -> T:
        """One call of a port; `ghost`: it may also happen long after the caller gave up."""
        scheduler = self.scheduler
        kind = self.kind()
        fate = self.faults.fate(name, kind)
        scheduler.pause(self.latency())
        if name not in NOT_THE_STORES and scheduler.current is not None:
            scheduler.current.refused = 0
        if name not in NOT_THE_STORES and self.outages.refuse(name, scheduler.now):
            scheduler.note(name, run_id, "is refused")
            self.fault()
            self.checks.last_refusal = scheduler.now
            if scheduler.current is not None:
                scheduler.current.refused = scheduler.now
            raise Unavailable("the store refuses", "an outage")
        if fate is None:
            result = self._apply(run_id, apply)
            scheduler.pause(self.latency())
            return result
        scheduler.note(name, run_id, fate.value)
        self.fault()
        if fate is Fate.CRASH_BEFORE:
            self.crash(kind, name, "before")
        if fate is Fate.STALL_BEFORE:
            self.stall()
        if fate is Fate.GHOST and ghost:
            scheduler.at(scheduler.now + self.faults.lateness(), lambda: self._haunt(name, apply))
        if fate is Fate.GHOST or fate is Fate.LOST_CALL:
            raise Unavailable(name)
        result = self._apply(run_id, apply)
        scheduler.pause(self.latency())
        if fate is Fate.CRASH_AFTER:
            self.crash(kind, name, "after")
        if fate is Fate.STALL_AFTER:
            self.stall()
        if fate is Fate.LOST_ANSWER:
            raise Unavailable(name)
        return result

    def _apply(self, run_id: str | None, apply: Callable[[], T]) -> T:
        try:
            return apply()
        except NewerFormat:
            self.scheduler.note("is older than", run_id)
            self.checks.left_alone.met(run_id, self.scheduler.current, self.scheduler.now)
            raise

    def _haunt(self, name: str, apply: Callable[[], object]) -> None:
        self.scheduler.note("a late", name)
        self.fault()
        with suppress(NewerFormat):
            apply()
