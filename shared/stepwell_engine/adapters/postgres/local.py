"""The embedded PostgreSQL: a server of our own, with a database for each project."""

import hashlib
import hmac
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from stepwell_engine.adapters.postgres.cluster import (
    HOST,
    SUPERUSER,
    Cluster,
    PostgresUnavailable,
    prepare,
)

_START_SECONDS: Final = 60.0  # recovery after a crash included
_STOP_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.02
_LONGEST_NAME: Final = 63  # of a database or role


class LocalPostgres:
    """Starts upon first use; a server that a killed host left behind is used again."""

    def __init__(self, folder: Path) -> None:
        """`folder`: its own folder within the data folder, which one host at a time uses."""
        self._cluster = Cluster(folder.absolute())
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0
        self._port = 0
        self._ready: set[str] = set()

    def dsn(self, project: str) -> str:
        """Connects to the project's own database, as a role that sees no other's.

        Starts the server and creates the database first, if need be: seconds.
        PostgresUnavailable, one sentence.
        """
        with self._lock:
            try:
                self._ensure_running()
                name = _name(project)
                if project not in self._ready:
                    self._create(name)
                    self._ready.add(project)
                return self._conninfo(name, name, self._password_of(name))
            except (OSError, subprocess.SubprocessError) as error:
                raise PostgresUnavailable(
                    f"the embedded PostgreSQL cannot be used: {error}"
                ) from error
            except psycopg.Error as error:
                reason = str(error).strip().replace("\n", " / ")
                raise PostgresUnavailable(f"the embedded PostgreSQL failed: {reason}") from error

    def stop(self) -> None:
        """Stop the server, also one that an earlier host left behind. Returns when it is gone."""
        with self._lock:
            if self._pid == 0:
                left = self._cluster.left_running()
                if left is None:
                    return
                self._pid = left[0]
            # Fast: connections are closed, everything is written; else at once, which is safe too.
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
                if self._end(number):
                    break
            self._process, self._pid, self._port = None, 0, 0

    def _ensure_running(self) -> None:
        if self._pid and self._runs():
            return
        prepare(self._cluster.folder)
        self._cluster.make()
        deadline = time.monotonic() + _START_SECONDS
        while True:
            left = self._cluster.left_running()
            if left is not None:
                self._process, (self._pid, self._port) = None, left
            else:
                self._process, self._port = self._cluster.start()
                self._pid = self._process.pid
            if self._answers(deadline):
                return
            self._pid = 0
            if time.monotonic() > deadline or not self._is_in_the_way():
                raise PostgresUnavailable(
                    f"the embedded PostgreSQL did not start: {self._cluster.said()}"
                )

    def _answers(self, deadline: float) -> bool:
        """Wait until the server takes connections; False if it ended before."""
        while self._runs() and time.monotonic() < deadline:
            try:
                self._connect().close()
            except psycopg.OperationalError as error:
                if "password authentication failed" in str(error):
                    raise PostgresUnavailable(
                        "the embedded PostgreSQL was set up with another password than the one in "
                        f"{self._cluster.password_file}: put that file back from a copy"
                    ) from error
                time.sleep(_POLL_SECONDS)  # not yet
            else:
                return True
        return False

    def _is_in_the_way(self) -> bool:
        """Whether the start failed since what is left of a killed server is still ending."""
        said = self._cluster.said()
        return "lock file" in said or "shared memory block" in said

    def _runs(self) -> bool:
        if self._process is not None:
            return self._process.poll() is None
        return self._cluster.serves(self._pid)

    def _end(self, number: signal.Signals) -> bool:
        deadline = time.monotonic() + _STOP_SECONDS
        try:
            os.kill(self._pid, number)
        except ProcessLookupError:
            return True
        while self._runs():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _create(self, name: str) -> None:
        """The role and the database of a project, what is missing of them."""
        role = sql.Identifier(name)
        with self._connect() as connection:
            if not _has(connection, "select 1 from pg_roles where rolname = %s", name):
                connection.execute(
                    sql.SQL("create role {} login password {}").format(
                        role, sql.Literal(self._password_of(name))
                    )
                )
            if not _has(connection, "select 1 from pg_database where datname = %s", name):
                connection.execute(sql.SQL("create database {} owner {}").format(role, role))
            for database in (role, sql.Identifier("postgres"), sql.Identifier("template1")):
                connection.execute(
                    sql.SQL("revoke all on database {} from public").format(database)
                )

    def _connect(self) -> psycopg.Connection[Any]:
        conninfo = self._conninfo(SUPERUSER, "postgres", self._cluster.password())
        return psycopg.connect(conninfo, autocommit=True, connect_timeout=2)

    def _conninfo(self, user: str, database: str, password: str) -> str:
        return psycopg.conninfo.make_conninfo(
            host=HOST, port=self._port, user=user, dbname=database, password=password
        )

    def _password_of(self, role: str) -> str:
        key = self._cluster.password().encode()
        return hmac.new(key, role.encode(), hashlib.sha256).hexdigest()


def _has(connection: psycopg.Connection[Any], query: str, name: str) -> bool:
    return connection.execute(query, [name]).fetchone() is not None


def _name(project: str) -> str:
    """The project's database and role. Readable, but for very long refs."""
    name = f"project_{project}"
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    return "long_" + hashlib.sha256(project.encode()).hexdigest()[:48]
