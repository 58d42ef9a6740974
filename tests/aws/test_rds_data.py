"""Steps of the kind sql over the RDS Data API: a server of its form over a real PostgreSQL."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from stepwell_engine.adapters.memory.resources import MemoryResources
from stepwell_engine.adapters.postgres.local import LocalPostgres
from stepwell_engine.adapters.runners.sql_data_api import DataApiRunner
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Outcome
from stepwell_engine.settings.aws import AwsSettings
from tests.adapters.attempts import StillClock, attempt, failure, output, resource
from tests.aws.installation import clients, endpoint
from tests.e2e.data_api import DATABASE, DataApi, serving

Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    postgres = LocalPostgres(tmp_path_factory.mktemp("postgres"))
    yield postgres.dsn("shop")
    postgres.stop()


@pytest.fixture
def api(dsn: str, settings: AwsSettings) -> Iterator[DataApi]:
    with psycopg.connect(dsn) as connection:
        connection.execute("DROP TABLE IF EXISTS accounts")
        connection.execute("CREATE TABLE accounts (id int PRIMARY KEY, active boolean)")
        connection.execute("INSERT INTO accounts SELECT n, false FROM generate_series(1, 150) n")
    with serving(dsn) as api, endpoint("rds-data", api.url):
        yield api


@pytest.fixture
def run(api: DataApi) -> Run:
    resources = MemoryResources()
    resources.put(resource("database", "database", DATABASE))
    runner = DataApiRunner(resources, clients(), StillClock())

    def run(statement: str, timeout: int = 20_000) -> Outcome:
        return runner.run(attempt(Kind.SQL, statement, timeout=timeout))

    return run


def actives(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT count(*) FROM accounts WHERE active").fetchone()
    assert row is not None
    return int(row[0])


def test_a_statement_tells_how_many_rows_it_changed(run: Run, api: DataApi, dsn: str) -> None:
    outcome = run("update accounts set active = true where id <= 3")
    assert output(outcome) == {"rows_affected": 3}
    assert actives(dsn) == 3
    assert api.calls == ["BeginTransaction", "Execute", "CommitTransaction"]


def test_rows_are_part_of_the_output(run: Run) -> None:
    assert output(run("select id, active from accounts where id < 3 order by id")) == {
        "rows_affected": 2,
        "rows": [{"id": 1, "active": False}, {"id": 2, "active": False}],
    }
    returned = run("update accounts set active = true where id = 1 returning id, 'é' as name")
    assert output(returned) == {"rows_affected": 1, "rows": [{"id": 1, "name": "é"}]}


def test_a_statement_without_rows_affects_none(run: Run) -> None:
    assert output(run("create temporary table a (b int)")) == {"rows_affected": 0}
    assert output(run("select 1 where false")) == {"rows_affected": 0}


def test_a_hundred_rows_are_shown_and_more_are_cut(run: Run) -> None:
    whole = output(run("select id from accounts where id <= 100"))
    assert (len(whole["rows"]), "rows_truncated" in whole) == (100, False)
    cut = output(run("select id from accounts where id <= 101"))
    assert (cut["rows_affected"], len(cut["rows"]), cut["rows_truncated"]) == (101, 100, True)


def test_rows_are_cut_at_their_size_too(run: Run) -> None:
    size = 32 * 1024 - len('[{"a":""}]')
    assert "rows_truncated" not in output(run(f"select repeat('x', {size}) as a"))
    assert output(run(f"select repeat('x', {size + 1}) as a")) == {
        "rows_affected": 1,
        "rows": [],
        "rows_truncated": True,
    }


def test_an_error_is_told_in_the_words_of_the_database(run: Run, api: DataApi) -> None:
    failed = failure(run("update nothing set a = 1"))
    assert failed.message == 'ERROR: relation "nothing" does not exist (SQLSTATE 42P01)'
    assert failed.retryable
    assert api.calls[-1] == "RollbackTransaction"
    assert failure(run("update accounts set id = 1")).message == (
        'ERROR: duplicate key value violates unique constraint "accounts_pkey" (SQLSTATE 23505)'
    )


def test_a_failed_statement_leaves_nothing_behind(run: Run, dsn: str) -> None:
    failure(run("update accounts set active = true, id = 1"))
    assert actives(dsn) == 0


@pytest.mark.parametrize(
    "statement",
    ["commit", " BEGIN", "-- why\nrollback", "/* a */ /* b */ Savepoint x", "start transaction"],
)
def test_a_step_may_not_manage_transactions(run: Run, api: DataApi, statement: str) -> None:
    failed = failure(run(statement))
    assert failed.message.startswith("a step may not manage transactions (")
    assert (failed.retryable, api.calls) == (False, [])


def test_the_longest_time_is_taken_and_more_is_refused(run: Run, api: DataApi) -> None:
    assert output(run("select 1 as a", timeout=45_000))["rows"] == [{"a": 1}]
    failed = failure(run("select 1 as a", timeout=45_001))
    assert failed.message == (
        "timeout_seconds of the step is 45.001, but a statement over the RDS Data API ends after "
        "45 s: allow it at most that"
    )
    assert not failed.retryable


def test_a_statement_that_takes_too_long_takes_no_effect(run: Run, api: DataApi, dsn: str) -> None:
    slow = "update accounts set active = true from pg_sleep(30) where id = 1"
    failed = failure(run(slow, timeout=1_000))
    assert (failed.code, failed.message) == ("timeout", "the statement timed out after 1 s")
    assert actives(dsn) == 0
    assert api.calls == ["BeginTransaction", "Execute", "RollbackTransaction"]


def test_a_statement_that_the_data_api_ends_is_timed_out(run: Run, api: DataApi) -> None:
    api.longest = 50
    failed = failure(run("select pg_sleep(30)", timeout=45_000))
    assert (failed.code, failed.message) == ("timeout", "the statement timed out after 45 s")


def test_a_commit_whose_answer_is_lost_is_told_to_be_unknown(run: Run, api: DataApi) -> None:
    def break_off(operation: str) -> None:
        if operation == "CommitTransaction":
            raise ConnectionAbortedError

    api.before = break_off
    failed = failure(run("update accounts set active = true where id = 1"))
    assert "it is not known whether the statement took effect" in failed.message
    assert failed.retryable


def test_a_database_that_cannot_be_reached_is_a_failed_attempt(
    run: Run, api: DataApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources = MemoryResources()
    foreign = {**DATABASE, "secret": DATABASE["secret"] + "x"}
    resources.put(resource("database", "database", foreign))
    failed = failure(
        DataApiRunner(resources, clients(), StillClock()).run(attempt(Kind.SQL, "select 1"))
    )
    assert failed.message.startswith("the database could not be reached: there is no such cluster")
    assert failed.retryable


def test_the_database_of_the_resource_is_named(run: Run, api: DataApi) -> None:
    resources = MemoryResources()
    resources.put(resource("database", "database", {**DATABASE, "database": "shop"}))
    named: list[object] = []
    client = clients().get("rds-data", attempts=1, region="eu-west-1")
    client.meta.events.register("before-parameter-build", lambda params, **_: named.append(params))
    DataApiRunner(resources, clients(), StillClock()).run(attempt(Kind.SQL, "select 1"))
    begun, executed, committed = [dict(one) for one in named if isinstance(one, dict)]
    assert (begun["database"], executed["database"]) == ("shop", "shop")
    assert "database" not in committed


def test_without_a_database_the_step_fails_at_once() -> None:
    runner = DataApiRunner(MemoryResources(), clients(), StillClock())
    failed = failure(runner.run(attempt(Kind.SQL, "select 1")))
    assert (failed.code, failed.retryable) == ("unknown_resource", False)


def test_a_database_of_another_home_is_refused() -> None:
    resources = MemoryResources()
    resources.put(resource("database", "database", {"embedded": True}))
    failed = failure(
        DataApiRunner(resources, clients(), StillClock()).run(attempt(Kind.SQL, "select 1"))
    )
    assert 'set it again with "cluster" and "secret", PUT /v1/projects/shop/database' in (
        failed.message
    )
    assert not failed.retryable
