"""The inboxes of runs in memory: each step of a delivery, atomic in itself."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from stepwell_engine import limits
from stepwell_engine.adapters.delivery import KeyEntry, deliver
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind, Slot
from stepwell_engine.core.values.units import EpochMs, RunId
from stepwell_engine.errors import NewerFormat
from stepwell_engine.ports import Delivered, Done, Refused, Written


class MemoryInboxes:
    """The part of the Runs port that is about inboxes, and the steps that it is made of.

    Every condition (`_may_…`) and every transition (`_delivered`, …) is a method of its own.
    """

    known_format = limits.RUN_FORMAT

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heads: dict[str, Head] = {}
        self._blobs: dict[tuple[str, str], bytes] = {}
        self._slots: dict[tuple[str, int], Slot] = {}
        self._delivered_keys: dict[tuple[str, str], KeyEntry] = {}

    # --- conditions ---------------------------------------------------------------------------

    def _may_put_inline(self, head: Head, message_id: str, message: InboxMessage) -> bool:
        room = len(head.inbox) < limits.INLINE_MESSAGES and self._overflow_is_empty(head)
        fits = room or message.kind is not MessageKind.SIGNAL
        return head.live and message_id not in head.inbox and fits

    def _overflow_is_empty(self, head: Head) -> bool:
        return head.overflow_count == 0

    def _may_count(self, head: Head, number: int) -> bool:
        return head.live and head.overflow_last == number - 1

    def _may_count_for(self, head: Head, generation: int) -> bool:
        return head.generation == generation

    def _may_be_quiet(self, head: Head, signal: str) -> bool:
        return not head.wakes_for(signal)

    # --- transitions --------------------------------------------------------------------------

    def _delivered(self, head: Head, message_id: str, message: InboxMessage) -> Head:
        inbox = MappingProxyType({**head.inbox, message_id: message})
        return replace(head, inbox_seq=head.inbox_seq + 1, inbox=inbox)

    def _counted(self, head: Head, number: int) -> Head:
        return replace(
            head,
            inbox_seq=head.inbox_seq + 1,
            overflow_last=number,
            overflow_count=head.overflow_count + 1,
            format=max(head.format, limits.RUN_FORMAT),
        )

    def _woken(self, head: Head, now: EpochMs) -> Head:
        return replace(head, ready_at=0, wake_at=now)

    # --- the port -----------------------------------------------------------------------------

    def deliver(
        self,
        run_id: RunId,
        message_id: str,
        message: InboxMessage,
        now: EpochMs,
        blob: Blob | None,
        key: str | None = None,
        seen: Head | None = None,
    ) -> Delivered | Refused:
        """Put a message into the inbox, in the head or beside it."""
        return deliver(self, run_id, message_id, message, now, blob, key, seen)

    def overflow(self, run_id: RunId, first: int, last: int) -> Mapping[int, Slot]:
        """The slots with these numbers."""
        numbers = range(first, last + 1)
        with self._lock:
            known = self._slots
            return {one: known[run_id, one] for one in numbers if (run_id, one) in known}

    # --- the steps of a delivery --------------------------------------------------------------

    def get(self, run_id: RunId) -> Head | None:
        """The head as it stands."""
        with self._lock:
            return self._read(run_id)

    def key_entry(self, run_id: RunId, key: str) -> KeyEntry | None:
        """What is stored for a key."""
        with self._lock:
            return self._delivered_keys.get((run_id, key))

    def put_body(self, run_id: RunId, blob: Blob) -> None:
        """Put the body of a message."""
        with self._lock:
            self._blobs.setdefault((run_id, blob.name), blob.data)

    def put_inline(
        self, run_id: RunId, message_id: str, message: InboxMessage, now: EpochMs, quiet: bool
    ) -> Written:
        """Put a message into the head."""
        with self._lock:
            head = self._read(run_id)
            if head is None or not self._may_put_inline(head, message_id, message):
                return Refused(head)
            if quiet and not self._may_be_quiet(head, message.name):
                return Refused(head)
            after = self._delivered(head, message_id, message)
            return self._put(after if quiet else self._woken(after, now))

    def put_slot(self, run_id: RunId, number: int, slot: Slot) -> Slot | None:
        """Put a slot, unless there is one."""
        with self._lock:
            there = self._slots.setdefault((run_id, number), slot)
            return None if there is slot else there

    def put_key(
        self, run_id: RunId, key: str, entry: KeyEntry, instead: KeyEntry | None = None
    ) -> KeyEntry | None:
        """Put a key, unless it is there, or in place of one."""
        with self._lock:
            there = self._delivered_keys.get((run_id, key))
            if there is not None and there != instead:
                return there
            self._delivered_keys[run_id, key] = entry
            return None

    def make_void(self, run_id: RunId, number: int) -> None:
        """A slot does not count."""
        with self._lock:
            self._slots[run_id, number] = replace(self._slots[run_id, number], void=True)

    def count(
        self, run_id: RunId, number: int, name: str, now: EpochMs, quiet: bool, generation: int
    ) -> Written:
        """Let a slot count."""
        with self._lock:
            head = self._read(run_id)
            if head is None or not self._may_count(head, number):
                return Refused(head)
            if not self._may_count_for(head, generation):
                return Refused(head)
            if quiet and not self._may_be_quiet(head, name):
                return Refused(head)
            after = self._counted(head, number)
            return self._put(after if quiet else self._woken(after, now))

    def count_void(self, run_id: RunId, number: int) -> Written:
        """Pass over a slot."""
        with self._lock:
            head = self._read(run_id)
            if head is None or not self._may_count(head, number):
                return Refused(head)
            raised = max(head.format, limits.RUN_FORMAT)
            return self._put(replace(head, overflow_last=number, format=raised))

    # --- under the lock -----------------------------------------------------------------------

    def _read(self, run_id: RunId) -> Head | None:
        head = self._heads.get(run_id)
        if head is not None and head.format > self.known_format:
            raise NewerFormat(f"run {run_id}", head.format, self.known_format)
        return head

    def _put(self, head: Head, blobs: Sequence[Blob] = ()) -> Done:
        for blob in blobs:
            self._blobs[head.run_id, blob.name] = blob.data
        self._heads[head.run_id] = head
        return Done(head)
