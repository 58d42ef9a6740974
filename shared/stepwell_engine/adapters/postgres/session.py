"""One connection to a PostgreSQL, on which nothing waits beyond a deadline.

psycopg's cursors have no deadline, and send a statement without parameters in the protocol that
takes several statements at once; so this uses libpq through `psycopg.pq`.
"""

import select
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import psycopg
from psycopg import pq

_CANCEL_SECONDS: Final = 2.0
_COPIES: Final = frozenset({pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH})


class SessionLost(Exception):
    """The connection broke, or the server ended it."""


class CopyUnsupported(Exception):
    """The statement wants to send or receive a stream of data."""


class Session:
    """A connection that is used by one thread at a time. Deadlines are monotonic time in s.

    All methods raise SessionLost and TimeoutError; the session is of no more use then.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        """`connection`: in autocommit mode."""
        self.connection = connection
        # libpq keeps the room of the largest row that it has read.
        self.is_bloated = False
        self._libpq = connection.pgconn
        self._descriptor = connection.fileno()
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLIN)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open and has not failed."""
        return self._libpq.transaction_status == pq.TransactionStatus.INTRANS

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open."""
        return self._libpq.transaction_status == pq.TransactionStatus.IDLE

    @property
    def is_stale(self) -> bool:
        """Whether something happened while nobody waited: mostly that the server hung up."""
        self._poll.modify(self._descriptor, select.POLLIN)
        return bool(self._poll.poll(0))

    def command(self, text: str, deadline: float) -> pq.abc.PGresult:
        """Run commands of the engine's own; the result of the last, or of the one that failed."""
        _check(deadline)
        with _as_lost():
            self._libpq.send_query(text.encode())
        *_, last = self._results(deadline)
        return last

    def statement(self, text: str, deadline: float) -> Iterator[pq.abc.PGresult]:
        """Run one statement of the user's; its rows one by one, then its last result.

        CopyUnsupported; the session is of no more use then.
        """
        _check(deadline)
        with _as_lost():
            self._libpq.send_query_params(text.encode(), None)
            self._libpq.set_single_row_mode()
        return self._results(deadline)

    def _results(self, deadline: float) -> Iterator[pq.abc.PGresult]:
        while self._flush():
            self._wait(select.POLLIN | select.POLLOUT, deadline)
        while (result := self._next(deadline)) is not None:
            if result.status in _COPIES:
                raise CopyUnsupported
            yield result
        if self._libpq.status != pq.ConnStatus.OK:
            raise SessionLost(self._libpq.get_error_message().strip())

    def _flush(self) -> bool:
        with _as_lost():
            return self._libpq.flush() != 0

    def _next(self, deadline: float) -> pq.abc.PGresult | None:
        while self._libpq.is_busy():
            self._wait(select.POLLIN, deadline)
        with _as_lost():
            return self._libpq.get_result()

    def _wait(self, events: int, deadline: float) -> None:
        left = deadline - time.monotonic()
        self._poll.modify(self._descriptor, events)
        if left <= 0 or not self._poll.poll(left * 1000):
            raise TimeoutError
        with _as_lost():
            self._libpq.consume_input()

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back by the server."""
        self.connection.close()

    def abandon(self) -> None:
        """Have the server stop what it is doing, then close; without waiting for either."""
        threading.Thread(target=self._cancel, name="cancel statement", daemon=True).start()

    def _cancel(self) -> None:
        try:
            self.connection.cancel_safe(timeout=_CANCEL_SECONDS)
        except psycopg.Error:
            pass  # the server cannot be reached; it will notice that we have gone
        finally:
            self.connection.close()


def _check(deadline: float) -> None:
    """Nothing is sent after the deadline, a COMMIT least of all."""
    if deadline <= time.monotonic():
        raise TimeoutError


class _as_lost:  # noqa: N801  used like a function
    """Turns libpq's errors into SessionLost."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, psycopg.Error):
            raise SessionLost(str(error).strip()) from error
