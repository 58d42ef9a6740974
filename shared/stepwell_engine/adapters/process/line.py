"""One place for several: first come, first served."""

import threading

from stepwell_engine.core.values.subject import Subject


class Line:
    """The place, and who stands in line for it; threads may share it.

    A free place is kept for the first in line, who has to come or to be forgotten.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: dict[Subject, None] = {}

    def enter(self, one: Subject) -> bool:
        """Take the place, if it is free and nobody came before; else stand in line, once."""
        with self._lock:
            if self._taken or next(iter(self._waiting), one) != one:
                self._waiting.setdefault(one)
                return False
            self._waiting.pop(one, None)
            self._taken = True
            return True

    def leave(self) -> Subject | None:
        """Give the place back; whose turn it is now."""
        with self._lock:
            self._taken = False
            return next(iter(self._waiting), None)

    def turn(self) -> Subject | None:
        """Whose turn it is, if the place is free."""
        with self._lock:
            return None if self._taken else next(iter(self._waiting), None)

    def forget(self, one: Subject) -> Subject | None:
        """Take one out of the line; whose turn it is now, if it was that one's."""
        with self._lock:
            first = next(iter(self._waiting), None)
            self._waiting.pop(one, None)
            return next(iter(self._waiting), None) if first == one and not self._taken else None
