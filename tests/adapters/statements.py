"""SQL statements as steps."""

from typing import Any

from stepwell_engine.adapters.runners.sql import SqlRunner
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Outcome
from tests.adapters.attempts import attempt, output


def run(runner: SqlRunner, statement: str, timeout: int = 30_000) -> Outcome:
    return runner.run(attempt(Kind.SQL, statement, timeout=timeout))


def rows(runner: SqlRunner, query: str) -> Any:
    return output(run(runner, query))["rows"]
