"""How a message comes into a run's inbox: the steps that every store takes, in this order.

A few messages stand in the head; signals beyond them, those with an idempotency key, and those that
would make the head dear to write, stand beside it in numbered slots, the overflow. No transaction
is needed, for a slot counts only once the head's `overflow_last` has reached its number, and that
is a write of the head alone:

1. Put the slot of the next number, if there is none. Whoever finds one there, anybody's, first
   finishes it, by 2 and 3: its writer may be gone.
2. If it has a key, put the key with that number, if there is none. One with another number was
   delivered before: then the slot is void.
3. Count: `overflow_last` becomes the number if it is the one before. Refused with that number or a
   later one, somebody else has counted it.

A key means a delivered signal only once its number counts. A slot is for one generation of its
run: one that was put and not counted when the run ended is void once the run is revived, for its
sender was told that the run has ended; the same key then goes to another slot. Nothing goes into
the head while anything is pending in the overflow: what is in the head is older, always.

A delivery is quiet, and leaves the times alone, unless the run may wait for that very signal. The
write itself requires that, so one that is no longer true is tried again as a loud one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import starmap
from typing import Final, Protocol

from stepwell_engine import limits
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind, Slot
from stepwell_engine.core.values.units import EpochMs, RunId
from stepwell_engine.errors import Unavailable
from stepwell_engine.ports import Delivered, Done, Refused, Written

_OF_A_MESSAGE: Final = 30  # bytes of a message that are the same for all
_ROOM: Final = limits.KIB - 120  # for what differs: the rest is names, numbers and times
TURNS: Final = 200  # slots of others, and changes of the head, that one delivery gets over


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """An idempotency key: the number of its slot (None: it was delivered without), and when."""

    number: int | None
    at: EpochMs


class InboxStore(Protocol):
    """The inboxes of runs in a store. Every method is one call, atomic in itself."""

    def get(self, run_id: RunId) -> Head | None:
        """The head as it stands."""
        ...

    def key_entry(self, run_id: RunId, key: str) -> KeyEntry | None:
        """What is stored for a key."""
        ...

    def put_body(self, run_id: RunId, blob: Blob) -> None:
        """Put the body of a message, if there is none of that name."""
        ...

    def put_inline(
        self, run_id: RunId, message_id: str, message: InboxMessage, now: EpochMs, quiet: bool
    ) -> Written:
        """Put a message into the head, inbox_seq + 1; unless `quiet` also ready_at and wake_at.

        Conditions: live, no message of this id; of a signal also: fewer than INLINE_MESSAGES are
        there, the overflow is empty, and, if `quiet`, the head does not `wakes_for` it.
        """
        ...

    def put_slot(self, run_id: RunId, number: int, slot: Slot) -> Slot | None:
        """Put a slot if there is none of this number; else the one that is there."""
        ...

    def overflow(self, run_id: RunId, first: int, last: int) -> Mapping[int, Slot]:
        """The slots with these numbers that are there."""
        ...

    def put_key(
        self, run_id: RunId, key: str, entry: KeyEntry, instead: KeyEntry | None = None
    ) -> KeyEntry | None:
        """Put a key if it is not there, or is `instead`; else what is there."""
        ...

    def make_void(self, run_id: RunId, number: int) -> None:
        """Say of a slot that it does not count."""
        ...

    def count(
        self, run_id: RunId, number: int, name: str, now: EpochMs, quiet: bool, generation: int
    ) -> Written:
        """Let the slot `number` count, a signal `name`; the head's format rises to RUN_FORMAT.

        overflow_last = number, overflow_count + 1, inbox_seq + 1; unless `quiet` also ready_at and
        wake_at. Conditions: live, of this generation, overflow_last = number - 1, and, if `quiet`,
        the head does not `wakes_for` it.
        """
        ...

    def count_void(self, run_id: RunId, number: int) -> Written:
        """overflow_last = number. Conditions: live, overflow_last = number - 1."""
        ...


def deliver(
    inboxes: InboxStore,
    run_id: RunId,
    message_id: str,
    message: InboxMessage,
    now: EpochMs,
    blob: Blob | None,
    key: str | None,
    seen: Head | None,
) -> Delivered | Refused:
    """Deliver a message, as the port says; `seen` is the head as it was read before."""
    delivery = _Delivery(inboxes, run_id, message_id, message, now, blob, key)
    if message.kind is MessageKind.SIGNAL:
        return delivery.signal(seen)
    return delivery.end_of_child()


class _Delivery:
    """One call of `deliver`. `wakes`: it counted what somebody should look at."""

    def __init__(
        self,
        inboxes: InboxStore,
        run_id: RunId,
        message_id: str,
        message: InboxMessage,
        now: EpochMs,
        blob: Blob | None,
        key: str | None,
    ) -> None:
        self._inboxes = inboxes
        self._run_id = run_id
        self._id = message_id
        self._message = message
        self._now = now
        self._blob = blob
        self._key = key
        self._wakes = False

    def end_of_child(self) -> Delivered | Refused:
        """Into the head, whatever is there."""
        if self._blob is not None:
            head = self._inboxes.get(self._run_id)
            if head is None or not head.live or self._id in head.inbox:
                return self._met(head)
            self._put_blob()
        written = self._inboxes.put_inline(
            self._run_id, self._id, self._message, self._now, quiet=False
        )
        if isinstance(written, Done):
            return Delivered(written.head, self._message.at)
        return self._met(written.head)

    def signal(self, head: Head | None) -> Delivered | Refused:
        """Into the head or beside it, by what the head says; once more if it has changed."""
        head = head or self._inboxes.get(self._run_id)
        for _ in range(TURNS):
            # After the head: what is counted there has its key by now.
            entry = None if self._key is None else self._inboxes.key_entry(self._run_id, self._key)
            if head is not None and entry is not None and self._stands(head, entry):
                known = self._known(head, entry)
                if isinstance(known, Delivered) or known.head is None or not known.head.live:
                    return known
                head = known.head  # revived since it was read
                continue
            if head is None or not head.live or self._id in head.inbox:
                return self._met(head)
            if head.pending >= limits.MAX_PENDING_SIGNALS:
                return Refused(head)
            self._put_blob()
            if self._key is None and _fits(head, self._id, self._message):
                quiet = not head.wakes_for(self._message.name)
                written = self._inboxes.put_inline(
                    self._run_id, self._id, self._message, self._now, quiet
                )
                if isinstance(written, Done):
                    return Delivered(written.head, self._message.at, self._wakes or not quiet)
                head = written.head
                continue
            number = head.overflow_last + 1
            mine = Slot(self._id, self._message, self._key, generation=head.generation)
            there = self._inboxes.put_slot(self._run_id, number, mine)
            head, at = self._finish(head, number, there or mine)
            if at is not None and (there is None or there.id == self._id):
                return Delivered(head, at, self._wakes)
        raise Unavailable(f"an inbox changed {TURNS} times during one call")

    def _met(self, head: Head | None) -> Delivered | Refused:
        """What a head that takes no message says: it has that one already, or it cannot."""
        there = None if head is None else head.inbox.get(self._id)
        return Refused(head) if there is None else Delivered(head, there.at)

    def _known(self, head: Head, entry: KeyEntry) -> Delivered | Refused:
        """The key is there: its slot counts, or does so now, or never will."""
        if entry.number is None or entry.number <= head.overflow_last:
            return Delivered(head, entry.at)
        after, counts = self._count(head, entry.number, None, head.generation)
        return Delivered(after, entry.at) if counts else Refused(after)

    def _stands(self, head: Head, entry: KeyEntry) -> bool:
        """Whether the slot of a key counts, or may yet; not if an earlier generation left it."""
        if entry.number is None or head.generation == 0:
            return True
        slot = self._slot(entry.number)
        if slot is None:  # consumed
            return True
        counted = entry.number <= head.overflow_last
        return not slot.void and (counted or slot.generation == head.generation)

    def _put_blob(self) -> None:
        if self._blob is not None:
            self._inboxes.put_body(self._run_id, self._blob)
            self._blob = None

    def _finish(self, head: Head, number: int, slot: Slot) -> tuple[Head | None, EpochMs | None]:
        """Bring a slot to count; the head then, and when its message came first.

        None: it does not count, for the run has ended, or was revived since the slot was put.
        """
        at = slot.message.at
        if slot.generation > head.generation:
            return self._inboxes.get(self._run_id), None
        if slot.generation < head.generation:
            return self._pass_over(head, number), None
        if slot.key is not None:
            entry = self._put_key(head, slot.key, KeyEntry(number, at))
            if entry is not None and entry.number != number:
                return self._pass_over(head, number), entry.at
        after, counts = self._count(head, number, slot.message.name, slot.generation)
        return after, at if counts else None

    def _put_key(self, head: Head, key: str, entry: KeyEntry) -> KeyEntry | None:
        """Put a key, also in place of one whose slot an earlier generation left."""
        there = self._inboxes.put_key(self._run_id, key, entry)
        if there is None or there.number == entry.number or self._stands(head, there):
            return there
        return self._inboxes.put_key(self._run_id, key, entry, there)

    def _pass_over(self, head: Head, number: int) -> Head | None:
        self._inboxes.make_void(self._run_id, number)
        return self._count(head, number, None, None)[0]

    def _is_void(self, number: int) -> bool:
        """Whether a number that is passed counts for nobody: a consumed slot may be gone."""
        slot = self._slot(number)
        return slot is not None and slot.void

    def _slot(self, number: int) -> Slot | None:
        return self._inboxes.overflow(self._run_id, number, number).get(number)

    def _count(
        self, head: Head, number: int, name: str | None, generation: int | None
    ) -> tuple[Head | None, bool]:
        """Let a slot count; the head then, and whether it does. No `name`: wake in any case.

        `generation` of the run that the slot is for; None: the slot is void.
        """
        found: Head | None = head
        for _ in range(TURNS):
            if found is not None and found.overflow_last >= number:
                self._wakes = True  # whoever counted it may be gone
                return found, generation in (None, found.generation) or not self._is_void(number)
            if found is None or not found.live or generation not in (None, found.generation):
                return found, False
            if generation is None:
                written = self._inboxes.count_void(self._run_id, number)
                quiet = True
            else:
                quiet = name is not None and not found.wakes_for(name)
                written = self._inboxes.count(
                    self._run_id, number, name or "", self._now, quiet, generation
                )
            found = written.head
            if isinstance(written, Done):
                self._wakes = self._wakes or not quiet
                return found, True
        raise Unavailable(f"an inbox changed {TURNS} times during one call")


def _fits(head: Head, message_id: str, message: InboxMessage) -> bool:
    """Whether a signal goes into the head, which then still costs one write unit on DynamoDB.

    The journal grows until a signal is taken that the run does not wait for yet.
    """
    if head.overflow_count > 0 or len(head.inbox) >= limits.INLINE_MESSAGES:
        return False
    journal = len(head.journal)
    if not head.wakes_for(message.name):
        journal = max(journal, limits.PAGE_ABOVE)
    texts = (head.project, head.workflow, head.idempotency_key or "", head.parent or "")
    size = journal + len(head.input or b"") + sum(map(len, texts))
    return size + sum(starmap(_size, [*head.inbox.items(), (message_id, message)])) <= _ROOM


def _size(message_id: str, message: InboxMessage) -> int:
    """About how many bytes of a head a message takes; its id stands there twice."""
    content = len(message.body or b"") + len(message.blob or "")
    return 2 * len(message_id) + len(message.name) + content + _OF_A_MESSAGE
