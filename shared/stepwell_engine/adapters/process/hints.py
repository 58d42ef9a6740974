"""Hints in the process: what is to be looked at, and from when, handed to worker threads on time.

They live in memory only. The truth is `wake_at` in the store: after a crash the tick finds from
it what was forgotten here.
"""

import heapq
import threading
from typing import Final, NamedTuple

from stepwell_engine.core.values.subject import Subject
from stepwell_engine.core.values.units import EpochMs, Ms
from stepwell_engine.limits import MAX_HINT_DELAY
from stepwell_engine.ports import Clock

_LOOK: Final = 1_000  # ms between two looks at the clock
_SPARE: Final = 64  # outdated entries that the heap may always hold


class Hint(NamedTuple):
    """Somebody should look at it from `at` (ms since the epoch) on."""

    at: EpochMs
    subject: Subject


class ProcessDispatcher:
    """The Dispatcher port, and the threads' end of it.

    At most one hint per subject is pending: the earliest. A subject that was handed out is not
    handed out again before `done`; a hint that comes meanwhile waits for that. This saves useless
    claims; the lease protocol does not depend on it.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._pending: dict[Subject, Hint] = {}
        self._taken: set[Subject] = set()
        # May hold outdated entries: one counts if it is the pending hint of a subject not taken.
        self._heap: list[Hint] = []
        # The one thread that waits for the next due time; the others wait to be called.
        self._watcher: int | None = None
        self._closed = False

    def hint(
        self,
        subject: Subject,
        delay: Ms = 0,
        *,
        alone: bool = False,  # noqa: ARG002  this home has no such lane
    ) -> None:
        """Keep a hint. ValueError for a delay outside 0 to MAX_HINT_DELAY."""
        if not 0 <= delay <= MAX_HINT_DELAY:
            raise ValueError(f"a hint's delay must be 0 to {MAX_HINT_DELAY} ms, not {delay}")
        hint = Hint(self._clock.now() + delay, subject)
        with self._changed:
            known = self._pending.get(subject)
            if known is None or hint.at < known.at:
                self._pending[subject] = hint
                if subject not in self._taken:
                    self._push(hint)
            elif delay == 0 and subject not in self._taken:
                # The clock jumped ahead and the watcher sleeps through a due time.
                self._call_one()

    def take(self) -> Hint | None:
        """Wait for the next due hint; its subject is the caller's until `done`; None if closed."""
        with self._changed:
            while not self._closed:
                now = self._clock.now()
                hint = self._pop(now)
                if hint is not None:
                    if self._heap and self._watcher is None:
                        self._changed.notify()  # somebody must watch for the next one
                    return hint
                if self._watcher is not None or not self._heap:
                    self._changed.wait()
                else:
                    self._watch(self._heap[0].at - now)
            return None

    def take_due(self) -> Hint | None:
        """Take a hint that is due now, without waiting; None if there is none."""
        with self._changed:
            return self._pop(self._clock.now())

    def done(self, subject: Subject) -> None:
        """Give back what was taken."""
        with self._changed:
            self._taken.discard(subject)
            hint = self._pending.get(subject)
            if hint is not None:
                self._push(hint)

    @property
    def taken(self) -> int:
        """How many subjects are handed out."""
        return len(self._taken)

    def next_at(self) -> EpochMs | None:
        """When the earliest hint of a subject that is not taken is due; None if there is none."""
        with self._changed:
            self._drop_outdated()
            return self._heap[0].at if self._heap else None

    def close(self) -> None:
        """Hand out nothing any more: every `take` returns None."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # --- under the lock -----------------------------------------------------------------------

    def _push(self, hint: Hint) -> None:
        heapq.heappush(self._heap, hint)
        if len(self._heap) > 2 * len(self._pending) + _SPARE:
            self._heap = [one for one in self._heap if self._counts(one)]
            heapq.heapify(self._heap)
        # If the clock jumped, the watcher sleeps through an earlier one that is due by now.
        if self._heap[0] is hint or self._heap[0].at <= self._clock.now():
            self._call_one()

    def _pop(self, now: EpochMs) -> Hint | None:
        self._drop_outdated()
        if not self._heap or self._heap[0].at > now:
            return None
        hint = heapq.heappop(self._heap)
        del self._pending[hint.subject]
        self._taken.add(hint.subject)
        return hint

    def _drop_outdated(self) -> None:
        while self._heap and not self._counts(self._heap[0]):
            heapq.heappop(self._heap)

    def _counts(self, hint: Hint) -> bool:
        return self._pending.get(hint.subject) is hint and hint.subject not in self._taken

    def _call_one(self) -> None:
        self._watcher = None
        self._changed.notify()

    def _watch(self, ms: Ms) -> None:
        """Wait, but not for long: the clock may jump, and what counts a wait may stand still."""
        me = self._watcher = threading.get_ident()
        try:
            self._changed.wait(min(ms, _LOOK) / 1000)
        finally:
            if self._watcher == me:
                self._watcher = None
