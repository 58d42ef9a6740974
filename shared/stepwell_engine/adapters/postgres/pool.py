"""Connection pool: idle connections for the next step, and new ones within a deadline."""

import errno
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from stepwell_engine.adapters.postgres.rows import Conversions
from stepwell_engine.adapters.postgres.session import Session
from stepwell_engine.adapters.runners.attempts import NO_THREAD

_MAX_IDLE: Final = 32  # of all databases together
_MAX_IDLE_SECONDS: Final = 120.0

# SQLSTATE 53300 and 57P03: libpq passes on the words alone. A server that says so in another
# language costs an attempt.
_NO_PLACE: Final = (
    "too many clients already",
    "too many connections for",
    "remaining connection slots are reserved",
    "the database system is starting up",
    "the database system is not yet accepting connections",
)

Key = tuple[str, str | None]  # project, sealed DSN


class CannotConnect(Exception):
    """No connection; the message is one sentence without the DSN, which holds a password."""


class NoPlace(CannotConnect):
    """The server has no connection to give now: all are taken, or it is only starting."""


class ServerNotReady(Exception):
    """The time is over, and nobody knows the DSN yet: the server is still being made ready."""


@dataclass(slots=True)
class _Opening:
    """A connection that a thread of its own opens: name resolution has no deadline."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    done: threading.Event = field(default_factory=threading.Event)
    dials: bool = False  # the DSN is known
    connection: psycopg.Connection[Any] | None = None
    error: Exception | None = None
    given_up: bool = False


@dataclass(frozen=True, slots=True)
class _Idle:
    key: Key
    session: Session
    since: float


class Pool:
    """Sessions by project and DSN, so that a new DSN of a project takes effect at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Idle] = []  # the one that was idle longest first
        self._timer: threading.Timer | None = None  # while there are idle sessions
        self._closed = False
        self._conversions = Conversions()

    def take(self, key: Key) -> Session | None:
        """An idle session, the one used last; None if there is none."""
        with self._lock:
            old = self._take_old()
            found = next((one for one in reversed(self._idle) if one.key == key), None)
            if found is not None:
                self._idle.remove(found)
        for one in old:
            one.session.close()
        if found is None:
            return None
        if found.session.is_stale:
            found.session.close()
            return self.take(key)
        return found.session

    def give(self, key: Key, session: Session) -> None:
        """Keep a clean session; once the pool is closed, close it."""
        with self._lock:
            self._idle.append(_Idle(key, session, time.monotonic()))
            most = 0 if self._closed else _MAX_IDLE
            surplus = self._idle.pop(0) if len(self._idle) > most else None
            if self._timer is None:
                self._start_timer()
        if surplus is not None:
            surplus.session.close()

    def open(self, dsn: Callable[[], str], deadline: float) -> Session:
        """A new session. TimeoutError, ServerNotReady, CannotConnect, and what `dsn` raises;
        OSError if the host is short of descriptors or threads.
        """
        opening = _Opening()
        left = deadline - time.monotonic()
        try:
            threading.Thread(
                target=self._connect, args=(opening, dsn, left), name="connect", daemon=True
            ).start()
        except RuntimeError as error:
            raise OSError(errno.EAGAIN, NO_THREAD) from error
        if not opening.done.wait(left):
            with opening.lock:
                opening.given_up = opening.connection is None
            if opening.given_up:
                raise TimeoutError if opening.dials else ServerNotReady
            opening.done.wait()
        if opening.error is not None:
            raise opening.error
        if opening.connection is None:
            raise AssertionError("a connection or an error")
        return Session(opening.connection)

    def close(self) -> None:
        """Close the idle sessions now, and those in use when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            if self._timer is not None:
                self._timer.cancel()
        for one in idle:
            one.session.close()

    def _take_old(self) -> list[_Idle]:
        oldest = time.monotonic() - _MAX_IDLE_SECONDS
        old = [one for one in self._idle if one.since <= oldest]
        del self._idle[: len(old)]
        return old

    def _start_timer(self) -> None:
        """Have the idle sessions closed in time, also if no step takes one any more."""
        self._timer = None
        if not self._idle:
            return
        left = self._idle[0].since + _MAX_IDLE_SECONDS - time.monotonic()
        timer = threading.Timer(max(0.0, left), self._close_old)
        timer.daemon = True
        with suppress(RuntimeError):  # no thread to be had: the next step closes them
            timer.start()
            self._timer = timer

    def _close_old(self) -> None:
        with self._lock:
            old = self._take_old()
            self._start_timer()
        for one in old:
            one.session.close()

    def _connect(self, opening: _Opening, dsn: Callable[[], str], seconds: float) -> None:
        try:
            known = dsn()
            opening.dials = True
            connection = self._connected(known, seconds)
        except Exception as error:  # noqa: BLE001  raised again by the thread that waits
            opening.error = error
        else:
            with opening.lock:
                if opening.given_up:
                    connection.close()
                else:
                    opening.connection = connection
        opening.done.set()

    def _connected(self, dsn: str, seconds: float) -> psycopg.Connection[Any]:
        try:
            return psycopg.connect(
                dsn,
                autocommit=True,
                context=self._conversions,
                connect_timeout=max(2, round(seconds)),
                client_encoding="UTF8",
                application_name="stepwell",
            )
        except psycopg.OperationalError as error:
            # Short of descriptors, libpq gives no reason; any socket shows it.
            socket.socket().close()
            reason = " / ".join(line.strip() for line in str(error).splitlines() if line.strip())
            refused = NoPlace if any(words in reason for words in _NO_PLACE) else CannotConnect
            raise refused(f"cannot connect to the database: {reason}") from error
        except psycopg.Error as error:
            raise CannotConnect(
                "the DSN of the project's database is not valid: it must be like "
                "postgresql://user:password@host:5432/name"
            ) from error
