"""Steps of the kind sql on an Aurora cluster, over the RDS Data API.

Begin, the statement, commit: three calls, so that a statement whose answer does not come in time
is not committed behind the step's back.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from stepwell_engine import limits
from stepwell_engine.adapters.aws_clients import (
    ERRORS,
    LOST,
    TIMED_OUT,
    TIMEOUT,
    Clients,
    code_of,
    message_of,
)
from stepwell_engine.adapters.runners.attempts import deferred, find, timed_out
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.run.attempt import Attempt, Failed, Outcome, Succeeded
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.ports import Clock, Resource, Resources

MAX_TIMEOUT: Final = 45 * limits.SECOND  # when the Data API itself ends a call

_WHAT: Final = "the statement"
_REGION: Final = 3  # arn:aws:rds:REGION:account:cluster:name
_ROLLBACK_SECONDS: Final = 1
_TOO_SLOW: Final = "StatementTimeoutException"
# `ERROR: relation "a" does not exist; Position: 15; SQLState: 42P01`
_SQLSTATE: Final = re.compile(r";?\s*SQLState:\s*([0-9A-Z]{5})")
_POSITION: Final = re.compile(r"[;\s]*Position:\s*[0-9]+")
_COMMENTS: Final = re.compile(r"\s*(--[^\n]*(\n|\Z)|/\*.*?\*/)", re.S)
_FIRST_WORD: Final = re.compile(r"\s*([A-Za-z]+)")
# They would end the transaction of the step, or open another.
_OF_TRANSACTIONS: Final = frozenset(
    {"ABORT", "BEGIN", "COMMIT", "END", "RELEASE", "ROLLBACK", "SAVEPOINT", "START"}
)


class DataApiRunner:
    """Runs the target on the resource `database`.

    The output is `{"rows_affected": n}`, with `rows` (a list of objects) if it returned any, and
    `"rows_truncated": true` if not all are there.
    """

    def __init__(self, resources: Resources, clients: Clients, clock: Clock) -> None:
        self._resources = resources
        self._clients = clients
        self._clock = clock

    def run(self, attempt: Attempt) -> Outcome:
        """Run the statement once."""
        deadline = Deadline.of(attempt, self._clock)
        resource = find(self._resources, attempt, deadline, "database", "database")
        if not isinstance(resource, Resource):
            return resource
        config = jsonvalue.decode(resource.config)
        violation = _fault(attempt, config)
        if violation is not None:
            return Failed(violation, retryable=False)
        client = self._clients.get(
            "rds-data", attempts=1, region=config["cluster"].split(":")[_REGION]
        )
        if deadline.passed():
            return deferred(deadline)
        return _Transaction(client, config, attempt.target, deadline).run()


class _Transaction:
    """One statement in a transaction of its own, within a deadline for all calls."""

    def __init__(
        self, client: Any, config: dict[str, str], statement: str, deadline: Deadline
    ) -> None:
        self._client = client
        self._statement = statement
        self._deadline = deadline
        self._cluster = {"resourceArn": config["cluster"], "secretArn": config["secret"]}
        self._database = {"database": config["database"]} if "database" in config else {}

    def run(self) -> Outcome:
        try:
            begun = self._client.begin_transaction(**self._cluster, **self._database, **self._left)
        except TimeoutError:
            return timed_out(_WHAT, self._deadline)
        except TIMED_OUT:
            return timed_out("connecting to the database", self._deadline)
        except ERRORS as error:
            return Failed(f"the database could not be reached: {message_of(error)}")
        transaction = begun["transactionId"]
        try:
            answer = self._client.execute_statement(
                **self._cluster,
                **self._database,
                **self._left,
                transactionId=transaction,
                sql=self._statement,
                formatRecordsAs="JSON",
            )
        except (TimeoutError, *TIMED_OUT):
            self._rollback(transaction)
            return timed_out(_WHAT, self._deadline)
        except ERRORS as error:
            self._rollback(transaction)
            if code_of(error) == _TOO_SLOW:
                return timed_out(_WHAT, self._deadline)
            return Failed(_error(error))
        return self._commit(transaction) or Succeeded(_output(answer))

    def _commit(self, transaction: str) -> Failed | None:
        try:
            self._client.commit_transaction(
                resourceArn=self._cluster["resourceArn"],
                secretArn=self._cluster["secretArn"],
                transactionId=transaction,
                **self._left,
            )
        except TimeoutError:
            self._rollback(transaction)
            return timed_out(_WHAT, self._deadline)
        except LOST as error:
            return Failed(
                "the connection to the database broke, and it is not known whether the statement "
                f"took effect: {error}"
            )
        except ERRORS as error:
            return Failed(_error(error))
        return None

    def _rollback(self, transaction: str) -> None:
        """Let go of the locks at once; without it the Data API does after some minutes."""
        try:
            self._client.rollback_transaction(
                **self._cluster, transactionId=transaction, **{TIMEOUT: _ROLLBACK_SECONDS}
            )
        except ERRORS:
            return

    @property
    def _left(self) -> dict[str, float]:
        """The time that the next call may take. TimeoutError if there is none."""
        if self._deadline.passed():
            raise TimeoutError
        return {TIMEOUT: self._deadline.seconds}


def _fault(attempt: Attempt, config: dict[str, str]) -> str | None:
    """Why the statement cannot be run at all."""
    if "cluster" not in config:
        return (
            "the project's database is none of this installation's kind: set it again with "
            f'"cluster" and "secret", PUT /v1/projects/{attempt.project}/database'
        )
    if attempt.timeout > MAX_TIMEOUT:
        return (
            f"timeout_seconds of the step is {attempt.timeout / limits.SECOND:g}, "
            "but a statement over the RDS Data API ends after "
            f"{MAX_TIMEOUT // limits.SECOND} s: allow it at most that"
        )
    statement = attempt.target
    while comment := _COMMENTS.match(statement):
        statement = statement[comment.end() :]
    word = _FIRST_WORD.match(statement)
    if word is not None and word[1].upper() in _OF_TRANSACTIONS:
        return (
            f"a step may not manage transactions ({word[1].upper()}): each runs in one of its own, "
            "which is committed when its statement succeeds"
        )
    return None


def _output(answer: dict[str, Any]) -> bytes:
    rows: Sequence[Any] = jsonvalue.decode(answer.get("formattedRecords") or "[]")
    shown: list[bytes] = []
    size = len(b"[]")
    for row in rows[: limits.MAX_ROWS]:
        text = jsonvalue.encode(row)
        size += len(text) + (1 if shown else 0)
        if size > limits.MAX_ROWS_BYTES:
            break
        shown.append(text)
    parts = [b'{"rows_affected":%d' % (answer.get("numberOfRecordsUpdated") or len(rows))]
    if rows:
        parts.append(b',"rows":[' + b",".join(shown) + b"]")
    if len(shown) < len(rows):
        parts.append(b',"rows_truncated":true')
    return b"".join(parts) + b"}"


def _error(error: Exception) -> str:
    """In the words of the server: `ERROR: relation "a" does not exist (SQLSTATE 42P01)`."""
    text = message_of(error)
    state = _SQLSTATE.search(text)
    if state is None:
        return f"{code_of(error)}: {text}" if code_of(error) else text
    words = _POSITION.sub("", _SQLSTATE.sub("", text)).strip()
    return f"{words} (SQLSTATE {state[1]})"
