"""What a SQL step returns: rows of a real PostgreSQL as JSON."""

import json
import tracemalloc
from typing import Any

import psycopg
import pytest

from stepwell_engine import limits
from stepwell_engine.adapters.runners.sql import SqlRunner
from tests.adapters.attempts import output
from tests.adapters.statements import rows, run


def test_rows_come_as_objects(runner: SqlRunner) -> None:
    found = output(run(runner, "select n, n * 2 as twice from generate_series(1, 2) n"))
    assert found == {
        "rows_affected": 2,
        "rows": [{"n": 1, "twice": 2}, {"n": 2, "twice": 4}],
    }
    assert output(run(runner, "select 1 where false")) == {"rows_affected": 0}
    run(runner, "create table a (n int)")
    returning = "insert into a values (7) returning n as got"
    assert output(run(runner, returning)) == {"rows_affected": 1, "rows": [{"got": 7}]}


@pytest.mark.parametrize("count", [limits.MAX_ROWS, limits.MAX_ROWS + 1])
def test_at_most_100_rows_are_kept(runner: SqlRunner, count: int) -> None:
    found = output(run(runner, f"select generate_series(1, {count})"))
    assert found["rows_affected"] == count
    assert len(found["rows"]) == limits.MAX_ROWS
    assert found.get("rows_truncated", False) is (count > limits.MAX_ROWS)


@pytest.mark.parametrize("over", [0, 1])
def test_at_most_32_kib_of_rows_are_kept(runner: SqlRunner, over: int) -> None:
    size = limits.MAX_ROWS_BYTES - len('[{"column1":""},{"column1":"x"}]') + over
    query = f"values (repeat('y', {size})), ('x')"
    found = output(run(runner, query))
    kept = json.dumps(found["rows"], separators=(",", ":"))
    assert len(kept) == (limits.MAX_ROWS_BYTES if over == 0 else size + len('[{"column1":""}]'))
    assert found.get("rows_truncated", False) is bool(over)


def test_a_first_row_that_is_too_large_leaves_none(runner: SqlRunner) -> None:
    found = output(run(runner, "select repeat('x', 1000000) as a"))
    assert found == {"rows_affected": 1, "rows": [], "rows_truncated": True}


def test_columns_of_one_name_are_all_kept(runner: SqlRunner) -> None:
    query = "select 1 as a, 2 as a, 3 as a_2, 4 as a, 5 as b, 6 as b"
    assert rows(runner, query) == [{"a": 1, "a_3": 2, "a_2": 3, "a_4": 4, "b": 5, "b_2": 6}]


@pytest.mark.parametrize("statement", ["show timezone", "explain select 1"])
def test_rows_that_the_server_does_not_count_are_counted(runner: SqlRunner, statement: str) -> None:
    found = output(run(runner, statement))
    assert found["rows_affected"] == len(found["rows"]) == 1


def test_a_huge_row_is_not_copied(runner: SqlRunner) -> None:
    run(runner, "select 1")
    tracemalloc.start()
    found = output(run(runner, "select 7 as n, repeat('x', 20000000) as a"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == {"rows_affected": 1, "rows": [], "rows_truncated": True}
    assert peak < 1_000_000


def test_a_session_that_has_read_a_huge_row_gives_its_memory_back(runner: SqlRunner) -> None:
    pid = "select pg_backend_pid() as pid"
    first = rows(runner, pid)
    run(runner, "select repeat('x', 1000000)")
    assert rows(runner, pid) == first
    run(runner, "select repeat('x', 1048577)")
    assert rows(runner, pid) != first


def test_a_result_of_any_size_is_read_without_being_kept(runner: SqlRunner) -> None:
    found = output(run(runner, "select n, repeat('x', 500) from generate_series(1, 20000) n"))
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
def test_values_become_json(runner: SqlRunner, expression: str, expected: Any) -> None:
    assert rows(runner, f"select {expression} as v") == [{"v": expected}]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("UTC", "2026-02-03T04:05:06+00:00"),
        ("Asia/Kolkata", "2026-02-03T09:35:06+05:30"),
        ("America/New_York", "2026-02-02T23:05:06-05:00"),
    ],
)
def test_times_with_a_zone_are_iso_8601_whatever_the_role_prefers(
    runner: SqlRunner, dsn: str, zone: str, expected: str
) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter role current_user set datestyle = 'German'")
        connection.execute(f"alter role current_user set timezone = '{zone}'")
    query = "select timestamptz '2026-02-03 04:05:06+00' as at, date '2026-02-03' as day"
    assert rows(runner, query) == [{"at": expected, "day": "2026-02-03"}]


def test_json_nested_very_deep_stays_text(runner: SqlRunner) -> None:
    for depth in (150, 500, 5_000):
        text = "[" * depth + "]" * depth
        (row,) = rows(runner, f"select (repeat('[', {depth}) || repeat(']', {depth}))::json v")
        assert row["v"] == (json.loads(text) if depth == 150 else text)
