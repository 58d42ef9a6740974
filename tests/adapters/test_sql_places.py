"""A database that has no connection to give costs no attempt; and nothing is sent too late."""

import socket
import threading

import psycopg
import pytest

from stepwell_engine.adapters.memory.resources import MemoryResources
from stepwell_engine.adapters.postgres.session import Session
from stepwell_engine.adapters.runners.sql import SqlRunner
from stepwell_engine.adapters.secrets.sealed import SealedSecrets
from stepwell_engine.core.run.attempt import Deferred, Outcome
from tests.adapters.attempts import StillClock, failure, resource
from tests.adapters.receivers import Script, scripted
from tests.adapters.statements import run


def refusing(message: str) -> Script:
    """A PostgreSQL that lets nobody in, for this reason."""

    def script(sock: socket.socket, over: threading.Event) -> None:
        sock.recv(1_000)
        fields = b"".join(
            kind + value.encode() + b"\0" for kind, value in ((b"S", "FATAL"), (b"M", message))
        )
        body = fields + b"\0"
        sock.sendall(b"E" + (len(body) + 4).to_bytes(4, "big") + body)

    return script


def connected(message: str, resources: MemoryResources, secrets: SealedSecrets) -> Outcome:
    with scripted(refusing(message)) as url:
        dsn = url.replace("http://", "postgresql://me@").replace("/hook", "/shop?sslmode=disable")
        sealed = secrets.seal(dsn, "shop")
        resources.put(resource("database", "database", {"embedded": False}, sealed))
        return run(SqlRunner(resources, secrets, lambda _: "", StillClock()), "select 1")


@pytest.mark.parametrize(
    "message",
    [
        "sorry, too many clients already",
        'too many connections for role "me"',
        'too many connections for database "shop"',
        "remaining connection slots are reserved for roles with the SUPERUSER attribute",
        "the database system is starting up",
        "the database system is not yet accepting connections",
    ],
)
def test_a_server_without_a_place_defers_the_attempt(
    message: str, resources: MemoryResources, secrets: SealedSecrets
) -> None:
    outcome = connected(message, resources, secrets)
    assert isinstance(outcome, Deferred), outcome
    assert outcome.message.startswith("cannot connect to the database: ")
    assert message in outcome.message


def test_any_other_refusal_is_a_failed_attempt(
    resources: MemoryResources, secrets: SealedSecrets
) -> None:
    failed = failure(connected("the database system is shutting down", resources, secrets))
    assert failed.retryable


def test_nothing_is_sent_after_the_deadline(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        session = Session(connection)
        with pytest.raises(TimeoutError):
            session.command("create table a (n int)", deadline=0.0)
        with pytest.raises(TimeoutError):
            session.statement("create table b (n int)", deadline=0.0)
        assert session.is_idle
        found = connection.execute("select to_regclass('a'), to_regclass('b')").fetchone()
        assert found == (None, None)
