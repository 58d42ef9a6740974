"""Answers of a store, remembered until it changes.

Only for a process that is the only one on its database, as the embedded host is: it hears of
every change, since every change goes through it.
"""

import threading
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
_MOST: Final = 1_000  # answers; all are dropped when they are more
_NOTHING: Final = object()


class Answers:
    """What one store answered. A change drops every answer remembered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changes = 0
        self._answers: dict[tuple[str, ...], object] = {}

    def ask(self, question: tuple[str, ...], read: Callable[[], T]) -> T:
        """The answer remembered, or else that of `read`; None is not remembered."""
        answer = self._answers.get(question, _NOTHING)
        if answer is not _NOTHING:
            return answer  # type: ignore[return-value]  # what this very read returned
        changes = self._changes
        found = read()
        with self._lock:
            # A change since may have made it old, before it was even remembered.
            if changes == self._changes and found is not None:
                if len(self._answers) >= _MOST:
                    self._answers = {}
                self._answers[question] = found
        return found

    def change(self, write: Callable[[], T]) -> T:
        """Write, and remember nothing from before."""
        try:
            return write()
        finally:  # also a write that failed may have happened
            with self._lock:
                self._changes += 1
                self._answers = {}
