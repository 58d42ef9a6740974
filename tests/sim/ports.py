"""The ports as the engine sees them in the simulator: the memory adapters behind a proxy.

Every call is a point at which others may run, and at which the caller may crash, stall, or be
left without an answer. Blobs are put one by one before their head.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn, TypeVar

from stepwell_engine.adapters.memory.hints import MemoryDispatcher
from stepwell_engine.adapters.memory.runs import MemoryRuns
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values.subject import Subject
from stepwell_engine.errors import Unavailable
from stepwell_engine.ports import Commit, Delivered, Done, Due, Refused, Written
from tests.sim.checks import Checks
from tests.sim.coverage import ANY, Coverage, When
from tests.sim.faults import Fate, Faults
from tests.sim.ledger import InHand
from tests.sim.outages import Outages
from tests.sim.scheduler import Actor, Scheduler, Violation

T = TypeVar("T")
NOT_THE_STORES = frozenset({"sleep", "hint"})
# Between a runner's last look at its deadline and the effect, in ms: what the margin of R4 covers
# beside the skew of two clocks. Before that look a worker may stand still for any time.
LONGEST_PAUSE = 950
_PAGE = 2  # entries of due(): small, so that there are several pages
_LATENCY = 12  # of a call and of its answer, each, at most, in ms


class Store(MemoryRuns):
    """The memory adapter, with what a simulator must be able to do beside the port."""

    def put_blob(self, run_id: str, blob: Blob) -> None:
        """Put one blob on its own."""
        self._blobs[run_id, blob.name] = blob.data

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
            scheduler.current.refused = False
        if name not in NOT_THE_STORES and self.outages.refuse(name, scheduler.now):
            scheduler.note(name, run_id, "is refused")
            self.fault()
            self.checks.last_refusal = scheduler.now
            if scheduler.current is not None:
                scheduler.current.refused = True
            raise Unavailable("the store refuses", "an outage")
        if fate is None:
            result = apply()
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
        result = apply()
        scheduler.pause(self.latency())
        if fate is Fate.CRASH_AFTER:
            self.crash(kind, name, "after")
        if fate is Fate.STALL_AFTER:
            self.stall()
        if fate is Fate.LOST_ANSWER:
            raise Unavailable(name)
        return result

    def _haunt(self, name: str, apply: Callable[[], object]) -> None:
        self.scheduler.note("a late", name)
        self.fault()
        apply()


class SimRuns:
    """The Runs port over the memory adapter."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._store = links.store
        self._checks = links.checks
        self._stale: list[Due] = []
        self._holders: dict[str, Actor] = {}
        self._tried: set[tuple[str, str]] = set()  # blobs

    def create(self, head: Head, blobs: Sequence[Blob] = ()) -> Written:
        """Blobs, then the head with its key."""
        self._put_blobs(head.run_id, blobs)

        def apply() -> Written:
            written = self._store.create(head)
            if isinstance(written, Done):
                self._checks.created(written.head)
                if head.parent is not None:
                    self._links.reacts("child start", head.parent)
            return self._noted("create", written)

        return self._links.call("create", head.run_id, apply, ghost=True)

    def get(self, run_id: str) -> Head | None:
        """Read the head."""

        def apply() -> Head | None:
            actor, head = self._links.scheduler.current, self._store.get(run_id)
            if actor is not None and actor.run_id == run_id:
                self._checks.looked(run_id, head)
            return head

        return self._links.call("get", run_id, apply)

    def by_key(self, project: str, workflow: str, key: str) -> Head | None:
        """Read the run of a key."""
        return self._links.call("by_key", None, lambda: self._store.by_key(project, workflow, key))

    def claim(self, run_id: str, token: str, now: int, until: int) -> Written:
        """Take the lease. What the actor does from here on it does with this token."""
        actor = self._links.scheduler.current
        if actor is not None and actor.token != token:
            actor.before, actor.token = actor.token, token
        before = actor.before if actor is not None else ""

        def apply() -> Written:
            old = self._store.peek(run_id)
            written = self._store.claim(run_id, token, now, until)
            if isinstance(written, Done) and old is not None and written.head is not old:
                self._check_host(old, actor)
                self._checks.claimed(old, written.head, before)
            return self._noted("claim", written)

        return self._links.call("claim", run_id, apply, ghost=True)

    def _check_host(self, old: Head, actor: Actor | None) -> None:
        """A process never claims what another of its workers holds. Property 4."""
        holder = self._holders.get(old.run_id)
        if actor is None or actor.host is None:
            return
        other = old.lease_token is not None and holder is not None and holder is not actor
        if other and holder is not None and holder.refused and holder.host is actor.host:
            raise Violation(4, f"{actor.name} claims what {holder.name} of its process holds")
        self._holders[old.run_id] = actor

    def extend(self, run_id: str, token: str, until: int, wake_at: int) -> Written:
        """Move the end of the lease."""

        def apply() -> Written:
            old = self._store.peek(run_id)
            written = self._store.extend(run_id, token, until, wake_at)
            if isinstance(written, Done) and old is not None:
                self._checks.extended(old, written.head, token)
            return self._noted("extend", written)

        return self._links.call("extend", run_id, apply, ghost=True)

    def commit(self, commit: Commit) -> Written:
        """Blobs, then the head."""
        hand = self._checks.in_hand(commit.run_id, commit.lease_token)
        self._put_blobs(commit.run_id, commit.blobs)
        return self._commit_head(commit, hand)

    def _commit_head(self, commit: Commit, hand: InHand) -> Written:
        bare = replace(commit, blobs=())

        def apply() -> Written:
            old = self._store.peek(commit.run_id)
            written = self._store.commit(bare)
            if isinstance(written, Done) and old is not None:
                self._checks.committed(old, written.head, commit, hand)
            return self._noted("commit", written)

        return self._links.call("commit", commit.run_id, apply, ghost=True)

    def deliver(
        self,
        run_id: str,
        message_id: str,
        message: InboxMessage,
        now: int,
        blob: Blob | None,
        key: str | None = None,
    ) -> Delivered | Refused:
        """The blob, then the message."""
        if blob is not None:
            self._put_blobs(run_id, (blob,))

        def apply() -> Delivered | Refused:
            old = self._store.peek(run_id)
            written = self._store.deliver(run_id, message_id, message, now, None, key)
            new = self._store.peek(run_id)
            if old is not None and new is not None and new is not old:
                self._checks.delivered(old, new, message_id)
            self._links.scheduler.note("deliver", written)
            if new is not old:
                self._links.reacts("deliver", run_id)
                self._checks.hints.wrote(run_id)
            return written

        return self._links.call("deliver", run_id, apply, ghost=True)

    def cancel(self, run_id: str, now: int, cascade: bool = False) -> Written:
        """End the run."""
        actor = self._links.scheduler.current
        canceller = actor.run_id if actor is not None else None

        def apply() -> Written:
            old = self._store.peek(run_id)
            written = self._store.cancel(run_id, now, cascade)
            if isinstance(written, Done) and old is not None:
                self._checks.cancelled(old, written.head, canceller)
            return self._noted("cancel", written)

        return self._links.call("cancel", run_id, apply, ghost=True)

    def close(self, run_id: str, token: str, commit: int, journal: bytes) -> Written:
        """Settle a cancelled run."""

        def apply() -> Written:
            old = self._store.peek(run_id)
            written = self._store.close(run_id, token, commit, journal)
            if isinstance(written, Done) and old is not None:
                self._checks.closed(old, written.head)
            return self._noted("close", written)

        return self._links.call("close", run_id, apply, ghost=True)

    def mark_notified(self, run_id: str) -> Written:
        """The parent was notified."""

        def apply() -> Written:
            written = self._store.mark_notified(run_id)
            if isinstance(written, Done):
                self._checks.mark_notified(written.head)
            return self._noted("mark_notified", written)

        return self._links.call("mark_notified", run_id, apply, ghost=True)

    def due(self, before: int, cursor: str | None, limit: int) -> tuple[list[Due], str | None]:
        """A page of the index: some entries not there yet, or as it was at an earlier look."""
        faults = self._links.faults

        def apply() -> tuple[list[Due], str | None]:
            page, following = self._store.due(before, cursor, min(limit, _PAGE))
            found = page
            if faults.happens(faults.profile.due_stale):
                page = self._stale
                self._links.fault()
            if page and faults.happens(faults.profile.due_missed):
                page = page[1:]
                self._links.fault()
            self._stale = found
            return page, following

        return self._links.call("due", None, apply)

    def list(
        self, project: str, workflow: str, before: str | None, limit: int, status: Status | None
    ) -> list[Head]:
        """Read the runs of a workflow."""
        return self._store.list(project, workflow, before, limit, status)

    def blob(self, run_id: str, name: str) -> bytes | None:
        """Read a blob."""
        return self.blobs(run_id, [name]).get(name)

    def blobs(self, run_id: str, names: Sequence[str]) -> Mapping[str, bytes]:
        """Several blobs."""
        return self._links.call("read", run_id, lambda: self._store.blobs(run_id, names))

    def _put_blobs(self, run_id: str, blobs: Sequence[Blob]) -> None:
        for blob in blobs:
            first = (run_id, blob.name) not in self._tried
            self._tried.add((run_id, blob.name))
            if first and blob.name.startswith("p."):
                self._links.reacts("page", run_id)
            call = "blob" if first else "blob again"  # a worker repeats a write: faults are rarer
            self._links.call(call, run_id, partial(self._put, run_id, blob), ghost=True)

    def _put(self, run_id: str, blob: Blob) -> None:
        self._checks.blob_put(run_id, blob)
        self._store.put_blob(run_id, blob)
        self._links.scheduler.note("blob", run_id, blob.name)

    def _noted(self, name: str, written: Written) -> Written:
        self._links.scheduler.note(name, written)
        if isinstance(written, Done):
            self._links.reacts(name, written.head.run_id)
            if name not in ("claim", "extend"):
                self._checks.hints.wrote(written.head.run_id)
        return written


class SimDispatcher:
    """The Dispatcher port: hints get lost, come twice, late, in another order.

    `arrives` is called whenever a hint is due.
    """

    def __init__(self, links: Links, hints: MemoryDispatcher, arrives: Callable[[], None]) -> None:
        self._links = links
        self._hints = hints
        self._arrives = arrives

    def hint(self, subject: Subject, delay: int = 0) -> None:
        """Send a hint."""
        self._links.call("hint", subject.id, lambda: self.send(subject, delay))

    def send(self, subject: Subject, delay: int) -> None:
        """Put a hint on its way, unless it gets lost."""
        scheduler, faults = self._links.scheduler, self._links.faults
        scheduler.note("hint", subject.id, "in", delay)
        if scheduler.current is not None and scheduler.current.name.startswith("worker"):
            self._links.checks.hints.sent(subject.id, self._links.store.peek(subject.id))
        if faults.happens(faults.profile.hint_lost):
            scheduler.note("lost")
            self._links.fault()
            return
        for _ in range(2 if faults.happens(faults.profile.hint_doubled) else 1):
            late = 0
            if faults.happens(faults.profile.hint_late):
                late = faults.lateness()
                self._links.fault()
            self._hints.hint(subject, delay)
            scheduler.at(scheduler.now + delay + late + self._links.latency(), self._arrives)
