"""Inboxes as the engine sees them in the simulator: every step of a delivery is a call."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from stepwell_engine import limits
from stepwell_engine.adapters.delivery import KeyEntry, deliver
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage, Slot
from stepwell_engine.errors import Unavailable
from stepwell_engine.ports import Delivered, Done, Refused, Revival, Written
from tests.sim.links import Links
from tests.sim.scheduler import Violation


class SimInboxes:
    """The part of the Runs port that is about inboxes."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._store = links.store
        self._checks = links.checks

    def deliver(
        self,
        run_id: str,
        message_id: str,
        message: InboxMessage,
        now: int,
        blob: Blob | None,
        key: str | None = None,
        seen: Head | None = None,
    ) -> Delivered | Refused:
        """Step by step, as on DynamoDB; an older version leaves a newer head alone."""
        old = self._store.peek(run_id)
        plain = old is not None and old.format == limits.BASE_RUN_FORMAT
        if message.kind == "signal" and plain and self._store.older():
            return self._deliver_as_before(run_id, message_id, message, now, blob, key)
        return deliver(self, run_id, message_id, message, now, blob, key, seen)

    def _deliver_as_before(
        self,
        run_id: str,
        message_id: str,
        message: InboxMessage,
        now: int,
        blob: Blob | None,
        key: str | None,
    ) -> Delivered | Refused:
        if blob is not None:
            self.put_body(run_id, blob)

        def apply() -> Delivered | Refused:
            old = self._store.peek(run_id)
            if old is None or old.format > limits.BASE_RUN_FORMAT:
                raise Unavailable("a newer version wrote this run")
            delivered = self._store.deliver_as_before(run_id, message_id, message, now, key)
            self._links.scheduler.note("deliver as before", delivered)
            new = self._store.peek(run_id)
            if new is not None and new is not old:
                self._checks.delivered(old, new, (message_id, message))
                self._links.reacts("deliver", run_id)
                self._checks.hints.wrote(run_id)
            return delivered

        return self._links.call("deliver", run_id, apply)

    def overflow(self, run_id: str, first: int, last: int) -> Mapping[int, Slot]:
        """Read slots."""
        apply = lambda: self._store.overflow(run_id, first, last)  # noqa: E731 - a plain call
        return self._links.call("slots", run_id, apply)

    def get(self, run_id: str) -> Head | None:
        """Read the head."""

        def apply() -> Head | None:
            actor, head = self._links.scheduler.current, self._store.get(run_id)
            if actor is not None and actor.run_id == run_id:
                self._checks.looked(run_id, head)
            return head

        return self._links.call("get", run_id, apply)

    def key_entry(self, run_id: str, key: str) -> KeyEntry | None:
        """Read a key."""
        return self._links.call("key_entry", run_id, lambda: self._store.key_entry(run_id, key))

    def put_body(self, run_id: str, blob: Blob) -> None:
        """Put the body of a message."""

        def apply() -> None:
            self._store.put_body(run_id, blob)
            self._links.scheduler.note("body", run_id, blob.name)

        self._links.call("blob", run_id, apply, ghost=True)

    def put_inline(
        self, run_id: str, message_id: str, message: InboxMessage, now: int, quiet: bool
    ) -> Written:
        """Put a message into the head."""

        def apply() -> Written:
            old = self._store.peek(run_id)
            written = self._store.put_inline(run_id, message_id, message, now, quiet)
            if isinstance(written, Done) and old is not None:
                self._checks.delivered(old, written.head, (message_id, message))
            return self._delivered("deliver", run_id, written)

        return self._links.call("deliver", run_id, apply, ghost=True)

    def put_slot(self, run_id: str, number: int, slot: Slot) -> Slot | None:
        """Put a slot."""

        def apply() -> Slot | None:
            self._links.scheduler.note("slot", number, slot.message.name, slot.id)
            return self._store.put_slot(run_id, number, slot)

        return self._links.call("slot", run_id, apply, ghost=True)

    def put_key(
        self, run_id: str, key: str, entry: KeyEntry, instead: KeyEntry | None = None
    ) -> KeyEntry | None:
        """Put a key."""
        put = partial(self._store.put_key, run_id, key, entry, instead)
        return self._links.call("key", run_id, put, ghost=True)

    def make_void(self, run_id: str, number: int) -> None:
        """A slot does not count."""
        self._links.call("void", run_id, lambda: self._store.make_void(run_id, number), ghost=True)

    def count(
        self, run_id: str, number: int, name: str, now: int, quiet: bool, generation: int
    ) -> Written:
        """Let a slot count."""

        def apply() -> Written:
            self._overtake(run_id, None)
            old = self._store.peek(run_id)
            written = self._store.count(run_id, number, name, now, quiet, generation)
            if isinstance(written, Done) and old is not None:
                slot = self._store.overflow(run_id, number, number)[number]
                if slot.generation != old.generation:
                    raise Violation(6, f"slot {number} of an earlier generation counts")
                self._checks.delivered(old, written.head, (slot.id, slot.message), number)
            return self._delivered("count", run_id, written)

        return self._links.call("count", run_id, apply, ghost=True)

    def count_void(self, run_id: str, number: int) -> Written:
        """Pass over a slot."""
        return self._links.call(
            "count_void", run_id, lambda: self._store.count_void(run_id, number), ghost=True
        )

    # --- revivals -------------------------------------------------------------------------------

    def _overtake(self, run_id: str, token: str | None) -> None:
        """A revival comes right before a write that its writer began before: see Endings."""
        endings, ledger = self._links.endings, self._checks.ledgers[run_id]
        readable = ledger.head.format <= self._store.known_format
        if not (readable and endings.overtakes(ledger, token)):
            return
        now = self._links.scheduler.now
        revival = endings.revival(ledger, ledger.head, now, self._checks.is_live)
        if revival is not None:
            self._revive(revival)
            self._links.fault()  # nobody hints it

    def _revive(self, revival: Revival) -> Written:
        run_id = revival.run_id
        old = self._store.peek(run_id)
        written = self._store.revive(replace(revival, blobs=()))
        self._links.scheduler.note("revive", written)
        if isinstance(written, Done) and old is not None:
            self._checks.revived(old, written.head)
            self._links.reacts("revive", run_id)
            self._checks.hints.wrote(run_id)
        return written

    def _delivered(self, name: str, run_id: str, written: Written) -> Written:
        self._links.scheduler.note(name, written)
        if isinstance(written, Done):
            self._links.reacts("deliver", run_id)
            self._checks.hints.wrote(run_id)
        return written
