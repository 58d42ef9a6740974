"""The ports as the engine sees them in the simulator: the memory adapters behind a proxy.

Every call is a point at which others may run, and at which the caller may crash, stall, or be
left without an answer. Blobs are put one by one before their head.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Self

from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values.subject import Subject
from stepwell_engine.limits import MAX_HINT_DELAY
from stepwell_engine.ports import Commit, Done, Due, Revival, Written
from tests.sim.inbox_ports import SimInboxes
from tests.sim.ledger import InHand
from tests.sim.links import Links, Store
from tests.sim.scheduler import Actor, Violation

_PAGE = 2  # entries of due(): small, so that there are several pages


class SimRuns(SimInboxes):
    """The Runs port over the memory adapter."""

    def __init__(self, links: Links) -> None:
        super().__init__(links)
        self._stale: list[Due] = []
        self._holders: dict[str, Actor] = {}
        self._tried: set[tuple[str, str]] = set()  # blobs

    def of(self, store: Store) -> Self:
        """The same runs as the hosts of one version see them."""
        other = copy.copy(self)
        other._store = store
        return other

    def create(self, head: Head, blobs: Sequence[Blob] = ()) -> Written:
        """Blobs, then the head with its key."""
        head = self._links.endings.with_deadline(head)
        self._put_blobs(head.run_id, blobs)

        def apply() -> Written:
            written = self._store.create(head)
            if isinstance(written, Done):
                self._checks.created(written.head)
                if head.parent is not None:
                    self._links.reacts("child start", head.parent)
            return self._noted("create", written)

        return self._links.call("create", head.run_id, apply, ghost=True)

    def by_key(self, project: str, workflow: str, key: str) -> Head | None:
        """Read the run of a key."""
        return self._links.call("by_key", None, lambda: self._store.by_key(project, workflow, key))

    def claim(
        self, run_id: str, token: str, now: int, until: int, lane: Lane = Lane.HOST
    ) -> Written:
        """Take the lease. What the actor does from here on it does with this token."""
        actor = self._links.scheduler.current
        if actor is not None and actor.token != token:
            actor.before, actor.token = actor.token, token
        before = actor.before if actor is not None else ""

        def apply() -> Written:
            old = self._store.peek(run_id)
            written = self._store.claim(run_id, token, now, until, lane)
            if isinstance(written, Done) and old is not None and written.head is not old:
                self._check_host(old, actor)
                self._checks.claimed(old, written.head, before, lane)
            return self._noted("claim", written)

        claimed = self._links.call("claim", run_id, apply, ghost=True)
        if actor is not None and isinstance(claimed, Done):
            actor.claimed = token
        return claimed

    def _check_host(self, old: Head, actor: Actor | None) -> None:
        """A process never claims what another of its workers holds. Property 4."""
        holder = self._holders.get(old.run_id)
        if actor is None or actor.host is None:
            return
        other = old.lease_token is not None and holder is not None and holder is not actor
        recently = self._links.scheduler.now - 20_000  # one that waits calls again in a few seconds
        if other and holder is not None and holder.refused > recently and holder.host is actor.host:
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
            self._overtake(commit.run_id, commit.lease_token)
            old = self._store.peek(commit.run_id)
            written = self._store.commit(bare)
            if isinstance(written, Done) and old is not None:
                self._checks.committed(old, written.head, commit, hand)
            return self._noted("commit", written)

        return self._links.call("commit", commit.run_id, apply, ghost=True)

    def let_go(self, commit: Commit) -> bool:
        """Blobs, then the head, whatever its format."""
        hand = self._checks.in_hand(commit.run_id, commit.lease_token)
        self._put_blobs(commit.run_id, commit.blobs)
        bare = replace(commit, blobs=())

        def apply() -> bool:
            old = self._store.peek(commit.run_id)
            done = self._store.let_go(bare)
            new = self._store.peek(commit.run_id)
            now = self._links.scheduler.now
            if self._checks.left_alone.lets_go(commit.run_id, commit.lease_token, now) and done:
                self._checks.hints.wrote(commit.run_id)
            if done and old is not None and new is not None:
                self._checks.committed(old, new, commit, hand, lets_go=True)
                self._links.reacts("commit", commit.run_id)
            self._links.scheduler.note("let go", done)
            return done

        return self._links.call("commit", commit.run_id, apply, ghost=True)

    def cancel(self, run_id: str, now: int, cascade: bool = False, generation: int = 0) -> Written:
        """End the run."""
        actor = self._links.scheduler.current
        canceller = actor.run_id if actor is not None else None

        def apply() -> Written:
            old = self._store.peek(run_id)
            written = self._store.cancel(run_id, now, cascade, generation)
            if isinstance(written, Done) and old is not None:
                self._checks.cancelled(old, written.head, canceller)
            return self._noted("cancel", written)

        return self._links.call("cancel", run_id, apply, ghost=True)

    def time_out(self, run_id: str, now: int, generation: int) -> Written:
        """End the run at its deadline."""

        def apply() -> Written:
            old = self._store.peek(run_id)
            written = self._store.time_out(run_id, now, generation)
            if isinstance(written, Done) and old is not None:
                self._checks.timed_out(old, written.head)
            return self._noted("time_out", written)

        return self._links.call("time_out", run_id, apply, ghost=True)

    def revive(self, revival: Revival) -> Written:
        """Let a run that has ended go on."""
        run_id = revival.run_id
        self._put_blobs(run_id, revival.blobs)

        return self._links.call("revive", run_id, lambda: self._revive(revival), ghost=True)

    def close(self, run_id: str, token: str, commit: int, journal: bytes) -> Written:
        """Settle a cancelled run."""

        def apply() -> Written:
            old = self._store.peek(run_id)
            written = self._store.close(run_id, token, commit, journal)
            if isinstance(written, Done) and old is not None:
                self._checks.closed(old, written.head)
            return self._noted("close", written)

        return self._links.call("close", run_id, apply, ghost=True)

    def mark_notified(self, run_id: str, generation: int = 0) -> Written:
        """The parent was notified."""

        def apply() -> Written:
            written = self._store.mark_notified(run_id, generation)
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

    `arrives` is called with each hint as it arrives, and whether it is for the lane ALONE.
    """

    def __init__(self, links: Links, arrives: Callable[[Subject, bool], None]) -> None:
        self._links = links
        self._arrives = arrives

    def hint(self, subject: Subject, delay: int = 0, *, alone: bool = False) -> None:
        """Send a hint."""
        self._links.call("hint", subject.id, lambda: self.send(subject, delay, alone))

    def send(self, subject: Subject, delay: int, alone: bool) -> None:
        """Put a hint on its way, unless it gets lost."""
        scheduler, faults = self._links.scheduler, self._links.faults
        if not 0 <= delay <= MAX_HINT_DELAY:
            raise Violation(0, f"a hint in {delay} ms")
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
            when = scheduler.now + delay + late + self._links.latency()
            scheduler.at(when, partial(self._arrives, subject, alone))
