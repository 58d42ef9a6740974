"""A server that speaks the RDS Data API over a real PostgreSQL, on loopback.

Requests, answers and errors have the form of Aurora's; rows come as JSON only.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tools.loopback import Call, Reply, answering

CLUSTER = "arn:aws:rds:eu-west-1:123456789012:cluster:orders"
SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:orders-a1b2c3"
DATABASE = {"cluster": CLUSTER, "secret": SECRET}

JsonObject = dict[str, Any]


class Refused(Exception):
    """An answer that is an error: its code, and its message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class DataApi:
    """The server's end. `before` is called with each operation's name, before it happens."""

    dsn: str
    url: str = ""
    longest: int = 45_000  # ms that a statement may take
    calls: list[str] = field(default_factory=list)
    before: Callable[[str], None] = lambda _: None
    open: dict[str, psycopg.Connection[JsonObject]] = field(default_factory=dict)

    def begin(self, _: Mapping[str, Any]) -> JsonObject:
        connection = psycopg.connect(self.dsn, row_factory=dict_row)
        connection.execute(f"SET statement_timeout = {self.longest}")
        transaction = str(uuid.uuid4())
        self.open[transaction] = connection
        return {"transactionId": transaction}

    def execute(self, request: Mapping[str, Any]) -> JsonObject:
        connection = self._transaction(request)
        # Protocol 3 of PostgreSQL takes one statement at a time, as the Data API does.
        cursor = connection.execute(request["sql"].encode(), prepare=False, binary=False)
        if cursor.description is None:
            return {"numberOfRecordsUpdated": max(0, cursor.rowcount)}
        rows = cursor.fetchall()
        changed = 0 if (cursor.statusmessage or "").startswith("SELECT") else cursor.rowcount
        return {
            "numberOfRecordsUpdated": changed,
            "formattedRecords": json.dumps(rows, default=str),
        }

    def commit(self, request: Mapping[str, Any]) -> JsonObject:
        with self._transaction(request, last=True) as connection:
            connection.commit()
        return {"transactionStatus": "Transaction Committed"}

    def rollback(self, request: Mapping[str, Any]) -> JsonObject:
        with self._transaction(request, last=True) as connection:
            connection.cancel()
            connection.rollback()
        return {"transactionStatus": "Rollback Complete"}

    def _transaction(
        self, request: Mapping[str, Any], last: bool = False
    ) -> psycopg.Connection[JsonObject]:
        name = request["transactionId"]
        found = self.open.pop(name, None) if last else self.open.get(name)
        if found is None:
            raise Refused("TransactionNotFoundException", f"Transaction {name} is not found")
        return found

    def answer(self, path: str, request: Mapping[str, Any]) -> JsonObject:
        """What an operation answers. Refused."""
        operations = {
            "/BeginTransaction": self.begin,
            "/Execute": self.execute,
            "/CommitTransaction": self.commit,
            "/RollbackTransaction": self.rollback,
        }
        self.calls.append(path[1:])
        self.before(path[1:])
        if (request.get("resourceArn"), request.get("secretArn")) != (CLUSTER, SECRET):
            raise Refused(
                "BadRequestException", "there is no such cluster, or it has no such secret"
            )
        try:
            return operations[path](request)
        except psycopg.errors.QueryCanceled as error:
            raise Refused("StatementTimeoutException", "Request timed out") from error
        except psycopg.Error as error:
            diagnosis = error.diag
            position = diagnosis.statement_position
            where = f"; Position: {position}" if position else ""
            raise Refused(
                "DatabaseErrorException",
                f"{diagnosis.severity}: {diagnosis.message_primary}"
                f"{where}; SQLState: {diagnosis.sqlstate}",
            ) from error


@contextmanager
def serving(dsn: str) -> Iterator[DataApi]:
    """Run a server on a free port."""
    api = DataApi(dsn)

    def answer(call: Call) -> Reply:
        try:
            return _reply(200, api.answer(call.path, call.body))
        except Refused as refused:
            return _reply(400, {"message": str(refused)}, {"x-amzn-errortype": refused.code})

    try:
        with answering(answer) as api.url:
            yield api
    finally:
        for connection in api.open.values():
            connection.close()


def _reply(status: int, body: JsonObject, headers: Mapping[str, str] | None = None) -> Reply:
    said = {"content-type": "application/json", **(headers or {})}
    return Reply(status, json.dumps(body).encode(), said)
