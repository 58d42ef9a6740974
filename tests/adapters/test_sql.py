"""Steps of the kind sql, on a real PostgreSQL."""

import socket
import threading
from typing import Any

import psycopg
import pytest

from stepwell_engine.adapters.memory.resources import MemoryResources
from stepwell_engine.adapters.postgres import pool
from stepwell_engine.adapters.postgres.cluster import PostgresUnavailable
from stepwell_engine.adapters.postgres.local import LocalPostgres
from stepwell_engine.adapters.postgres.rows import Rows
from stepwell_engine.adapters.postgres.session import Session
from stepwell_engine.adapters.runners.sql import SqlRunner
from stepwell_engine.adapters.secrets.sealed import SealedSecrets
from stepwell_engine.core.run.attempt import Failed, Outcome
from tests.adapters import receivers
from tests.adapters.attempts import StillClock, failure, output, resource
from tests.adapters.receivers import scripted
from tests.adapters.statements import rows, run


def test_what_a_statement_changed_is_counted_and_there(runner: SqlRunner, dsn: str) -> None:
    assert output(run(runner, "create table a (n int)")) == {"rows_affected": 0}
    insert = "insert into a select generate_series(1, 5)"
    assert output(run(runner, insert)) == {"rows_affected": 5}
    assert output(run(runner, "update a set n = 0 where n > 3;")) == {"rows_affected": 2}
    assert output(run(runner, "delete from a where n = 9")) == {"rows_affected": 0}
    with psycopg.connect(dsn) as connection:
        assert connection.execute("select count(*) from a").fetchone() == (5,)


def test_a_percent_sign_is_a_percent_sign(runner: SqlRunner) -> None:
    assert rows(runner, "select 'a%s' like 'a%' as v, 7 % 4 as w, '%(x)s' as x") == [
        {"v": True, "w": 3, "x": "%(x)s"}
    ]


def test_errors_are_in_the_words_of_the_server(runner: SqlRunner) -> None:
    assert run(runner, "update accounts set active = true where id = 42") == Failed(
        'ERROR: relation "accounts" does not exist (SQLSTATE 42P01)'
    )
    assert run(runner, "selct 1") == Failed(
        'ERROR: syntax error at or near "selct" (SQLSTATE 42601)'
    )
    assert run(runner, "select 1/0") == Failed("ERROR: division by zero (SQLSTATE 22012)")
    halfway = "select 1 / (3 - n) from generate_series(1, 5) n"
    assert run(runner, halfway) == Failed("ERROR: division by zero (SQLSTATE 22012)")


def test_a_failed_statement_leaves_nothing_behind(runner: SqlRunner) -> None:
    run(runner, "create table a (n int check (n < 3))")
    assert isinstance(run(runner, "insert into a select generate_series(1, 3)"), Failed)
    assert rows(runner, "select count(*) as n from a") == [{"n": 0}]


def test_a_constraint_that_is_checked_at_the_end_fails_the_step(runner: SqlRunner) -> None:
    run(runner, "create table a (n int unique deferrable initially deferred)")
    failed = failure(run(runner, "insert into a values (1), (1)"))
    assert failed.message.startswith("ERROR: duplicate key value violates unique constraint")
    assert failed.message.endswith("(SQLSTATE 23505)")
    assert rows(runner, "select count(*) as n from a") == [{"n": 0}]


def test_more_than_one_statement_is_refused(runner: SqlRunner) -> None:
    failed = failure(run(runner, "create table a (n int); select 1"))
    assert failed.message == (
        "ERROR: cannot insert multiple commands into a prepared statement (SQLSTATE 42601)"
    )
    assert rows(runner, "select count(*) as n from pg_tables where tablename = 'a'") == [{"n": 0}]


@pytest.mark.parametrize("statement", ["", " ", ";", "-- nothing"])
def test_no_statement_at_all_is_refused(runner: SqlRunner, statement: str) -> None:
    assert run(runner, statement) == Failed("the target contains no statement", retryable=False)


@pytest.mark.parametrize(
    ("statement", "tag"),
    [
        ("commit", "COMMIT"),
        ("COMMIT AND CHAIN", "COMMIT"),
        ("end", "COMMIT"),
        ("rollback", "ROLLBACK"),
        ("abort", "ROLLBACK"),
        ("rollback and chain", "ROLLBACK"),
        ("begin", "BEGIN"),
        ("start transaction", "START TRANSACTION"),
        ("savepoint a", "SAVEPOINT"),
    ],
)
def test_a_step_may_not_manage_transactions(runner: SqlRunner, statement: str, tag: str) -> None:
    failed = failure(run(runner, statement))
    assert failed.message.startswith(f"a step may not manage transactions ({tag})")
    assert not failed.retryable
    assert rows(runner, "select 1 as v") == [{"v": 1}]


def test_a_procedure_cannot_commit_halfway(runner: SqlRunner) -> None:
    run(runner, "create table a (n int)")
    body = "do $$ begin insert into a values (1); commit; insert into a values (2); end $$"
    assert failure(run(runner, body)).message == (
        "ERROR: invalid transaction termination (SQLSTATE 2D000)"
    )
    assert rows(runner, "select count(*) as n from a") == [{"n": 0}]


@pytest.mark.parametrize(
    "statement", ["copy (select 1) to stdout", "copy a from stdin", "COPY a TO STDOUT"]
)
def test_a_stream_to_or_from_the_client_is_refused(runner: SqlRunner, statement: str) -> None:
    run(runner, "create table a (n int)")
    failed = failure(run(runner, statement))
    assert failed.message.startswith("COPY to or from the client is not supported")
    assert not failed.retryable
    assert rows(runner, "select 1 as v") == [{"v": 1}]


def test_nothing_of_a_session_is_left_for_the_next_step(runner: SqlRunner) -> None:
    first = rows(runner, "select pg_backend_pid() as pid")
    run(runner, "set search_path = nowhere")
    run(runner, "set statement_timeout = 1")
    run(runner, "create temporary table t (n int)")
    run(runner, "prepare p as select 1")
    run(runner, "select pg_advisory_lock(42)")
    run(runner, "listen channel")
    assert rows(runner, "select pg_backend_pid() as pid") == first  # the very session
    assert rows(runner, "select current_schema() as s") == [{"s": "public"}]
    assert isinstance(run(runner, "select * from t"), Failed)
    assert isinstance(run(runner, "execute p"), Failed)
    assert rows(runner, "select count(*) as n from pg_locks where locktype = 'advisory'") == [
        {"n": 0}
    ]
    assert "rows" in output(run(runner, "select pg_sleep(0.01)"))


def test_a_statement_that_takes_too_long_is_ended_and_the_session_kept(
    runner: SqlRunner,
) -> None:
    first = rows(runner, "select pg_backend_pid() as pid")
    assert run(runner, "select pg_sleep(600)", 2_000) == Failed(
        "the statement timed out after 2 s", "timeout"
    )
    assert rows(runner, "select pg_backend_pid() as pid") == first


def test_a_statement_cancelled_by_somebody_else_is_no_timeout(runner: SqlRunner, dsn: str) -> None:
    outcomes: list[Outcome] = []
    thread = threading.Thread(
        target=lambda: outcomes.append(run(runner, "select pg_sleep(600) /* long */"))
    )
    thread.start()
    cancel = (
        "select pg_cancel_backend(pid) from pg_stat_activity "
        "where query like '%/* long */' and pid <> pg_backend_pid() and state = 'active'"
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        while connection.execute(cancel).fetchone() is None:
            pass
    thread.join()
    assert outcomes == [Failed("ERROR: canceling statement due to user request (SQLSTATE 57014)")]


def test_a_statement_in_a_lost_session_fails_and_says_what_is_not_known(
    runner: SqlRunner,
) -> None:
    failed = failure(run(runner, "select pg_terminate_backend(pg_backend_pid())"))
    assert failed.message.startswith(
        "the connection to the database broke, and it is not known whether the statement took "
        "effect: "
    )
    assert "terminating connection due to administrator command" in failed.message
    assert failed.retryable
    assert rows(runner, "select 1 as v") == [{"v": 1}]


def test_a_session_that_ended_while_idle_costs_nothing(runner: SqlRunner, dsn: str) -> None:
    ((pid),) = (row["pid"] for row in rows(runner, "select pg_backend_pid() as pid"))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select pg_terminate_backend(%s, 30000)", [pid])
    assert rows(runner, "select 1 as v") == [{"v": 1}]


def test_sessions_are_shared_by_threads_and_not_mixed_up(runner: SqlRunner) -> None:
    found: list[Any] = []

    def work(number: int) -> None:
        found.extend(rows(runner, f"select {number} as n")[0]["n"] == number for _ in range(20))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 160


def test_a_dsn_of_the_projects_own_is_used_and_a_new_one_at_once(
    runner: SqlRunner,
    resources: MemoryResources,
    secrets: SealedSecrets,
    postgres: LocalPostgres,
) -> None:
    query = "select current_database() as d"
    embedded = rows(runner, query)
    for project in ("first", "second"):
        sealed = secrets.seal(postgres.dsn(project), "shop")
        resources.put(resource("database", "database", {"embedded": False}, sealed))
        assert rows(runner, query) == [{"d": f"project_{project}"}]
    assert embedded != rows(runner, query)


def test_no_database_is_an_unknown_resource(secrets: SealedSecrets) -> None:
    runner = SqlRunner(MemoryResources(), secrets, lambda _: "", StillClock())
    assert run(runner, "select 1") == Failed(
        "this project has no database: register it with PUT /v1/projects/shop/database",
        code="unknown_resource",
        retryable=False,
    )


def with_dsn(resources: MemoryResources, secrets: SealedSecrets, dsn: str) -> SqlRunner:
    resources.put(resource("database", "database", {"embedded": False}, secrets.seal(dsn, "shop")))
    return SqlRunner(resources, secrets, lambda _: "", StillClock())


def test_a_database_that_is_not_there_is_a_failure(
    resources: MemoryResources, secrets: SealedSecrets
) -> None:
    runner = with_dsn(resources, secrets, "postgresql://me:hidden@127.0.0.1:1/shop")
    failed = failure(run(runner, "select 1"))
    assert failed.message.startswith("cannot connect to the database: ")
    assert "refused" in failed.message
    assert "hidden" not in failed.message
    assert failed.retryable


@pytest.mark.parametrize("dsn", ["hidden words", "postgresql://a:hidden@h/d?no_such=1", "a=hidden"])
def test_a_dsn_that_is_none_is_not_quoted(
    resources: MemoryResources, secrets: SealedSecrets, dsn: str
) -> None:
    failed = failure(run(with_dsn(resources, secrets, dsn), "select 1"))
    assert failed.message.startswith("the DSN of the project's database is not valid")
    assert "hidden" not in failed.message


def test_a_server_that_says_nothing_holds_no_attempt(
    resources: MemoryResources, secrets: SealedSecrets
) -> None:
    with scripted(receivers.silent) as url:
        dsn = url.replace("http://", "postgresql://me@").replace("/hook", "/shop")
        runner = with_dsn(resources, secrets, dsn)
        assert run(runner, "select 1", 150) == Failed(
            "connecting to the database timed out after 0.15 s", "timeout"
        )


def hanging_up(sock: socket.socket, over: threading.Event) -> None:
    """A PostgreSQL that lets everybody in, and hangs up upon the first statement."""
    sock.recv(1_000)
    sock.sendall(b"R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I")
    sock.recv(1_000)


def test_a_new_session_that_breaks_at_once_is_a_failure(
    resources: MemoryResources, secrets: SealedSecrets
) -> None:
    with scripted(hanging_up) as url:
        dsn = url.replace("http://", "postgresql://me@").replace("/hook", "/shop?sslmode=disable")
        failed = failure(run(with_dsn(resources, secrets, dsn), "select 1"))
    assert failed.message.startswith("the connection to the database broke: ")


def test_a_session_is_closed_upon_a_defect(
    runner: SqlRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = watch(monkeypatch)

    def defect(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Rows, "add", defect)
    with pytest.raises(ZeroDivisionError):
        run(runner, "select 1")
    assert [session.connection.closed for session in made] == [True]


def test_a_session_that_is_in_use_at_the_end_is_closed_after_it(
    runner: SqlRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = watch(monkeypatch)
    add = Rows.add

    def close(self: Rows, *arguments: Any) -> None:
        runner.close()
        add(self, *arguments)

    monkeypatch.setattr(Rows, "add", close)
    assert rows(runner, "select 1 as v") == [{"v": 1}]
    assert [session.connection.closed for session in made] == [True]


def test_an_idle_session_is_closed_although_no_step_follows(
    runner: SqlRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = watch(monkeypatch)
    monkeypatch.setattr(pool, "_MAX_IDLE_SECONDS", 0.2)
    closed = threading.Event()
    close = Session.close

    def noted(self: Session) -> None:
        close(self)
        closed.set()

    monkeypatch.setattr(Session, "close", noted)
    assert rows(runner, "select 1 as v") == [{"v": 1}]
    assert closed.wait(60)
    assert [session.connection.closed for session in made] == [True]
    assert rows(runner, "select 2 as v") == [{"v": 2}]


def watch(monkeypatch: pytest.MonkeyPatch) -> list[Session]:
    """The sessions that are made from now on."""
    made: list[Session] = []
    begin = Session.__init__

    def noted(self: Session, *arguments: Any) -> None:
        begin(self, *arguments)
        made.append(self)

    monkeypatch.setattr(Session, "__init__", noted)
    return made


def test_an_embedded_server_that_cannot_start_is_a_failure_of_the_step(
    resources: MemoryResources, secrets: SealedSecrets
) -> None:
    def unavailable(project: str) -> str:
        raise PostgresUnavailable("no PostgreSQL here")

    resources.put(resource("database", "database", {"embedded": True}))
    assert run(SqlRunner(resources, secrets, unavailable, StillClock()), "select 1") == Failed(
        "no PostgreSQL here"
    )


def test_a_sealed_dsn_that_cannot_be_opened_is_a_failure(
    resources: MemoryResources, secrets: SealedSecrets
) -> None:
    sealed = secrets.seal("postgresql://h/d", "other")
    resources.put(resource("database", "database", {"embedded": False}, sealed))
    failed = failure(run(SqlRunner(resources, secrets, lambda _: "", StillClock()), "select 1"))
    assert "cannot be opened" in failed.message
