"""SQL statements as steps."""

from typing import Any

from stepwell_engine.adapters.embedded.sql import SqlPerformer
from stepwell_engine.core.definition import Kind
from stepwell_engine.core.outcome import Outcome
from tests.adapters.doing import act, output


def run(performer: SqlPerformer, statement: str, timeout: int = 30_000) -> Outcome:
    return performer.perform(act(Kind.SQL, statement, timeout=timeout))


def rows(performer: SqlPerformer, query: str) -> Any:
    return output(run(performer, query))["rows"]
