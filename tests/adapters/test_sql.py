"""Steps of the kind sql, on a real PostgreSQL."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from stepwell_engine import limits
from stepwell_engine.adapters.embedded.postgres import LocalPostgres
from stepwell_engine.adapters.embedded.postgres_cluster import PostgresUnavailable
from stepwell_engine.adapters.embedded.sealing import SealedSecrets
from stepwell_engine.adapters.embedded.sql import SqlPerformer
from stepwell_engine.adapters.memory.catalog import MemoryCatalog
from stepwell_engine.core.definition import Kind
from stepwell_engine.core.outcome import Failed, Outcome
from tests.adapters import receivers
from tests.adapters.doing import act, failure, output, resource
from tests.adapters.receivers import scripted


@pytest.fixture
def dsn(postgres: LocalPostgres) -> str:
    """An empty database."""
    dsn = postgres.dsn("sql")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop schema public cascade; create schema public")
        connection.execute("alter role current_user reset all")
    return dsn


@pytest.fixture
def performer(catalog: MemoryCatalog, secrets: SealedSecrets, dsn: str) -> Iterator[SqlPerformer]:
    catalog.put_resource(resource("database", "database", {"embedded": True}))
    performer = SqlPerformer(catalog, secrets, lambda _: dsn)
    yield performer
    performer.close()


def run(performer: SqlPerformer, statement: str, timeout: int = 30_000) -> Outcome:
    return performer.perform(act(Kind.SQL, statement, timeout=timeout))


def rows(performer: SqlPerformer, query: str) -> Any:
    return output(run(performer, query))["rows"]


def test_what_a_statement_changed_is_counted_and_there(performer: SqlPerformer, dsn: str) -> None:
    assert output(run(performer, "create table a (n int)")) == {"rows_affected": 0}
    insert = "insert into a select generate_series(1, 5)"
    assert output(run(performer, insert)) == {"rows_affected": 5}
    assert output(run(performer, "update a set n = 0 where n > 3;")) == {"rows_affected": 2}
    assert output(run(performer, "delete from a where n = 9")) == {"rows_affected": 0}
    with psycopg.connect(dsn) as connection:
        assert connection.execute("select count(*) from a").fetchone() == (5,)


def test_rows_come_as_objects(performer: SqlPerformer) -> None:
    found = output(run(performer, "select n, n * 2 as twice from generate_series(1, 2) n"))
    assert found == {
        "rows_affected": 2,
        "rows": [{"n": 1, "twice": 2}, {"n": 2, "twice": 4}],
    }
    assert output(run(performer, "select 1 where false")) == {"rows_affected": 0}
    run(performer, "create table a (n int)")
    returning = "insert into a values (7) returning n as got"
    assert output(run(performer, returning)) == {"rows_affected": 1, "rows": [{"got": 7}]}


@pytest.mark.parametrize("count", [limits.MAX_ROWS, limits.MAX_ROWS + 1])
def test_at_most_100_rows_are_kept(performer: SqlPerformer, count: int) -> None:
    found = output(run(performer, f"select generate_series(1, {count})"))
    assert found["rows_affected"] == count
    assert len(found["rows"]) == limits.MAX_ROWS
    assert found.get("rows_truncated", False) is (count > limits.MAX_ROWS)


@pytest.mark.parametrize("over", [0, 1])
def test_at_most_32_kib_of_rows_are_kept(performer: SqlPerformer, over: int) -> None:
    size = limits.MAX_ROWS_BYTES - len('[{"column1":""},{"column1":"x"}]') + over
    query = f"values (repeat('y', {size})), ('x')"
    found = output(run(performer, query))
    kept = json.dumps(found["rows"], separators=(",", ":"))
    assert len(kept) == (limits.MAX_ROWS_BYTES if over == 0 else size + len('[{"column1":""}]'))
    assert found.get("rows_truncated", False) is bool(over)


def test_a_first_row_that_is_too_large_leaves_none(performer: SqlPerformer) -> None:
    found = output(run(performer, "select repeat('x', 1000000) as a"))
    assert found == {"rows_affected": 1, "rows": [], "rows_truncated": True}


def test_a_result_of_any_size_is_read_without_being_kept(performer: SqlPerformer) -> None:
    found = output(run(performer, "select n, repeat('x', 500) from generate_series(1, 20000) n"))
    assert found["rows_affected"] == 20_000
    assert found["rows_truncated"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("null::int", None),
        ("true", True),
        ("42::int8", 42),
        ("1.5::float8", 1.5),
        ("'NaN'::float8", "NaN"),
        ("'-Infinity'::float4", "-Infinity"),
        ("12345678901234567890.10::numeric", "12345678901234567890.10"),
        ("'NaN'::numeric", "NaN"),
        ("'é\"\\'::text", 'é"\\'),
        ("'a'::char(3)", "a  "),
        ("date '2026-02-03'", "2026-02-03"),
        ("date 'infinity'", "infinity"),
        ("date '0044-03-15 BC'", "0044-03-15 BC"),
        ("timestamp '2026-02-03 04:05:06.7'", "2026-02-03T04:05:06.7"),
        ("timestamp 'infinity'", "infinity"),
        ("timestamptz '2026-02-03 04:05:06+00' at time zone 'utc'", "2026-02-03T04:05:06"),
        ("timestamp '20260-02-03 04:05:06'", "20260-02-03T04:05:06"),
        ("timestamp '0044-03-15 04:05:06 BC'", "0044-03-15T04:05:06 BC"),
        ("time '04:05:06'", "04:05:06"),
        ("interval '1 month 2 days 3:00'", "1 mon 2 days 03:00:00"),
        ("'0190d5d1-7a1e-7000-8000-000000000001'::uuid", "0190d5d1-7a1e-7000-8000-000000000001"),
        ("'\\x00ff10'::bytea", "AP8Q"),
        ("array[1, null, 3]", [1, None, 3]),
        ("array[[1,2],[3,4]]", [[1, 2], [3, 4]]),
        ("array['a,b', 'c\"d', 'NULL']", ["a,b", 'c"d', "NULL"]),
        ("array[1.10, 2]::numeric[]", ["1.10", "2"]),
        ("array['\\x01'::bytea]", ["AQ=="]),
        ("array[timestamp '2026-02-03 04:05']", ["2026-02-03T04:05:00"]),
        ("array[]::int[]", []),
        ('\'{"a": [1, null, "x"]}\'::json', {"a": [1, None, "x"]}),
        ("'{\"a\": 1.5}'::jsonb", {"a": 1.5}),
        ("'1e999'::json", "Infinity"),
        ("'\"\\ud800\"'::json", '"\\ud800"'),
        ("'null'::jsonb", None),
        ("int4range(1, 5)", "[1,5)"),
        ("int8multirange(int8range(1, 3), int8range(5, 7))", "{[1,3),[5,7)}"),
        ("tstzrange(null, 'infinity')", "(,infinity)"),
        ("'192.168.0.0/24'::cidr", "192.168.0.0/24"),
        ("row(1, 'a b')", '(1,"a b")'),
        ("'(1,2)'::point", "(1,2)"),
        ("b'101'", "101"),
        ("'public'::regnamespace", "public"),
    ],
)
def test_values_become_json(performer: SqlPerformer, expression: str, expected: Any) -> None:
    assert rows(performer, f"select {expression} as v") == [{"v": expected}]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("UTC", "2026-02-03T04:05:06+00:00"),
        ("Asia/Kolkata", "2026-02-03T09:35:06+05:30"),
        ("America/New_York", "2026-02-02T23:05:06-05:00"),
    ],
)
def test_times_with_a_zone_are_iso_8601_whatever_the_role_prefers(
    performer: SqlPerformer, dsn: str, zone: str, expected: str
) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter role current_user set datestyle = 'German'")
        connection.execute(f"alter role current_user set timezone = '{zone}'")
    query = "select timestamptz '2026-02-03 04:05:06+00' as at, date '2026-02-03' as day"
    assert rows(performer, query) == [{"at": expected, "day": "2026-02-03"}]


def test_json_nested_very_deep_stays_text(performer: SqlPerformer) -> None:
    for depth in (150, 500, 5_000):
        text = "[" * depth + "]" * depth
        (row,) = rows(performer, f"select (repeat('[', {depth}) || repeat(']', {depth}))::json v")
        assert row["v"] == (json.loads(text) if depth == 150 else text)


def test_a_percent_sign_is_a_percent_sign(performer: SqlPerformer) -> None:
    assert rows(performer, "select 'a%s' like 'a%' as v, 7 % 4 as w, '%(x)s' as x") == [
        {"v": True, "w": 3, "x": "%(x)s"}
    ]


def test_errors_are_in_the_words_of_the_server(performer: SqlPerformer) -> None:
    assert run(performer, "update accounts set active = true where id = 42") == Failed(
        'ERROR: relation "accounts" does not exist (SQLSTATE 42P01)'
    )
    assert run(performer, "selct 1") == Failed(
        'ERROR: syntax error at or near "selct" (SQLSTATE 42601)'
    )
    assert run(performer, "select 1/0") == Failed("ERROR: division by zero (SQLSTATE 22012)")
    halfway = "select 1 / (3 - n) from generate_series(1, 5) n"
    assert run(performer, halfway) == Failed("ERROR: division by zero (SQLSTATE 22012)")


def test_a_failed_statement_leaves_nothing_behind(performer: SqlPerformer) -> None:
    run(performer, "create table a (n int check (n < 3))")
    assert isinstance(run(performer, "insert into a select generate_series(1, 3)"), Failed)
    assert rows(performer, "select count(*) as n from a") == [{"n": 0}]


def test_a_constraint_that_is_checked_at_the_end_fails_the_step(performer: SqlPerformer) -> None:
    run(performer, "create table a (n int unique deferrable initially deferred)")
    failed = failure(run(performer, "insert into a values (1), (1)"))
    assert failed.message.startswith("ERROR: duplicate key value violates unique constraint")
    assert failed.message.endswith("(SQLSTATE 23505)")
    assert rows(performer, "select count(*) as n from a") == [{"n": 0}]


def test_more_than_one_statement_is_refused(performer: SqlPerformer) -> None:
    failed = failure(run(performer, "create table a (n int); select 1"))
    assert failed.message == (
        "ERROR: cannot insert multiple commands into a prepared statement (SQLSTATE 42601)"
    )
    assert rows(performer, "select count(*) as n from pg_tables where tablename = 'a'") == [
        {"n": 0}
    ]


@pytest.mark.parametrize("statement", ["", " ", ";", "-- nothing"])
def test_no_statement_at_all_is_refused(performer: SqlPerformer, statement: str) -> None:
    assert run(performer, statement) == Failed("the target contains no statement", retryable=False)


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
def test_a_step_may_not_manage_transactions(
    performer: SqlPerformer, statement: str, tag: str
) -> None:
    failed = failure(run(performer, statement))
    assert failed.message.startswith(f"a step may not manage transactions ({tag})")
    assert not failed.retryable
    assert rows(performer, "select 1 as v") == [{"v": 1}]


def test_a_procedure_cannot_commit_halfway(performer: SqlPerformer) -> None:
    run(performer, "create table a (n int)")
    body = "do $$ begin insert into a values (1); commit; insert into a values (2); end $$"
    assert failure(run(performer, body)).message == (
        "ERROR: invalid transaction termination (SQLSTATE 2D000)"
    )
    assert rows(performer, "select count(*) as n from a") == [{"n": 0}]


@pytest.mark.parametrize(
    "statement", ["copy (select 1) to stdout", "copy a from stdin", "COPY a TO STDOUT"]
)
def test_a_stream_to_or_from_the_client_is_refused(performer: SqlPerformer, statement: str) -> None:
    run(performer, "create table a (n int)")
    failed = failure(run(performer, statement))
    assert failed.message.startswith("COPY to or from the client is not supported")
    assert not failed.retryable
    assert rows(performer, "select 1 as v") == [{"v": 1}]


def test_nothing_of_a_session_is_left_for_the_next_step(performer: SqlPerformer) -> None:
    first = rows(performer, "select pg_backend_pid() as pid")
    run(performer, "set search_path = nowhere")
    run(performer, "set statement_timeout = 1")
    run(performer, "create temporary table t (n int)")
    run(performer, "prepare p as select 1")
    run(performer, "select pg_advisory_lock(42)")
    run(performer, "listen channel")
    assert rows(performer, "select pg_backend_pid() as pid") == first  # the very session
    assert rows(performer, "select current_schema() as s") == [{"s": "public"}]
    assert isinstance(run(performer, "select * from t"), Failed)
    assert isinstance(run(performer, "execute p"), Failed)
    assert rows(performer, "select count(*) as n from pg_locks where locktype = 'advisory'") == [
        {"n": 0}
    ]
    assert "rows" in output(run(performer, "select pg_sleep(0.01)"))


def test_a_statement_that_takes_too_long_is_ended_and_the_session_kept(
    performer: SqlPerformer,
) -> None:
    first = rows(performer, "select pg_backend_pid() as pid")
    assert run(performer, "select pg_sleep(600)", 2_000) == Failed(
        "the statement timed out after 2 s", "timeout"
    )
    assert rows(performer, "select pg_backend_pid() as pid") == first


def test_a_statement_cancelled_by_somebody_else_is_no_timeout(
    performer: SqlPerformer, dsn: str
) -> None:
    outcomes: list[Outcome] = []
    thread = threading.Thread(
        target=lambda: outcomes.append(run(performer, "select pg_sleep(600) /* long */"))
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
    performer: SqlPerformer,
) -> None:
    failed = failure(run(performer, "select pg_terminate_backend(pg_backend_pid())"))
    assert failed.message.startswith(
        "the connection to the database broke, and it is not known whether the statement took "
        "effect: "
    )
    assert "terminating connection due to administrator command" in failed.message
    assert failed.retryable
    assert rows(performer, "select 1 as v") == [{"v": 1}]


def test_a_session_that_ended_while_idle_costs_nothing(performer: SqlPerformer, dsn: str) -> None:
    ((pid),) = (row["pid"] for row in rows(performer, "select pg_backend_pid() as pid"))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select pg_terminate_backend(%s, 30000)", [pid])
    assert rows(performer, "select 1 as v") == [{"v": 1}]


def test_sessions_are_shared_by_threads_and_not_mixed_up(performer: SqlPerformer) -> None:
    found: list[Any] = []

    def work(number: int) -> None:
        found.extend(rows(performer, f"select {number} as n")[0]["n"] == number for _ in range(20))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 160


def test_a_dsn_of_the_projects_own_is_used_and_a_new_one_at_once(
    performer: SqlPerformer,
    catalog: MemoryCatalog,
    secrets: SealedSecrets,
    postgres: LocalPostgres,
) -> None:
    query = "select current_database() as d"
    embedded = rows(performer, query)
    for project in ("first", "second"):
        sealed = secrets.seal(postgres.dsn(project), "shop")
        catalog.put_resource(resource("database", "database", {"embedded": False}, sealed))
        assert rows(performer, query) == [{"d": f"project_{project}"}]
    assert embedded != rows(performer, query)


def test_no_database_is_an_unknown_resource(secrets: SealedSecrets) -> None:
    performer = SqlPerformer(MemoryCatalog(), secrets, lambda _: "")
    assert run(performer, "select 1") == Failed(
        "this project has no database: register it with PUT /v1/projects/shop/database",
        code="unknown_resource",
        retryable=False,
    )


def with_dsn(catalog: MemoryCatalog, secrets: SealedSecrets, dsn: str) -> SqlPerformer:
    catalog.put_resource(
        resource("database", "database", {"embedded": False}, secrets.seal(dsn, "shop"))
    )
    return SqlPerformer(catalog, secrets, lambda _: "")


def test_a_database_that_is_not_there_is_a_failure(
    catalog: MemoryCatalog, secrets: SealedSecrets
) -> None:
    performer = with_dsn(catalog, secrets, "postgresql://me:hidden@127.0.0.1:1/shop")
    failed = failure(run(performer, "select 1"))
    assert failed.message.startswith("cannot connect to the database: ")
    assert "refused" in failed.message
    assert "hidden" not in failed.message
    assert failed.retryable


@pytest.mark.parametrize("dsn", ["hidden words", "postgresql://a:hidden@h/d?no_such=1", "a=hidden"])
def test_a_dsn_that_is_none_is_not_quoted(
    catalog: MemoryCatalog, secrets: SealedSecrets, dsn: str
) -> None:
    failed = failure(run(with_dsn(catalog, secrets, dsn), "select 1"))
    assert failed.message.startswith("the DSN of the project's database is not valid")
    assert "hidden" not in failed.message


def test_a_server_that_says_nothing_holds_no_attempt(
    catalog: MemoryCatalog, secrets: SealedSecrets
) -> None:
    with scripted(receivers.silent) as url:
        dsn = url.replace("http://", "postgresql://me@").replace("/hook", "/shop")
        performer = with_dsn(catalog, secrets, dsn)
        assert run(performer, "select 1", 150) == Failed(
            "connecting to the database timed out after 0.15 s", "timeout"
        )


def test_an_embedded_server_that_cannot_start_is_a_failure_of_the_step(
    catalog: MemoryCatalog, secrets: SealedSecrets
) -> None:
    def unavailable(project: str) -> str:
        raise PostgresUnavailable("no PostgreSQL here")

    catalog.put_resource(resource("database", "database", {"embedded": True}))
    assert run(SqlPerformer(catalog, secrets, unavailable), "select 1") == Failed(
        "no PostgreSQL here"
    )


def test_a_sealed_dsn_that_cannot_be_opened_is_a_failure(
    catalog: MemoryCatalog, secrets: SealedSecrets
) -> None:
    sealed = secrets.seal("postgresql://h/d", "other")
    catalog.put_resource(resource("database", "database", {"embedded": False}, sealed))
    failed = failure(run(SqlPerformer(catalog, secrets, lambda _: ""), "select 1"))
    assert "cannot be opened" in failed.message
