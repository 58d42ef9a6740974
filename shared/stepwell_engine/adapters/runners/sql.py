"""Steps of the kind sql: one statement on the project's database, in a transaction of its own."""

import math
import time
from collections.abc import Callable
from typing import Final

from psycopg import pq

from stepwell_engine import limits
from stepwell_engine.adapters.postgres.cluster import PostgresUnavailable
from stepwell_engine.adapters.postgres.pool import (
    CannotConnect,
    Key,
    NoPlace,
    Pool,
    ServerNotReady,
)
from stepwell_engine.adapters.postgres.rows import Rows
from stepwell_engine.adapters.postgres.session import CopyUnsupported, Session, SessionLost
from stepwell_engine.adapters.runners.attempts import find, is_shortage, timed_out, unseal
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.run.attempt import Attempt, Deferred, Failed, Outcome, Succeeded
from stepwell_engine.ports import Clock, Resource, Resources, Secrets

_WHAT: Final = "the statement"
_DSN: Final = "the DSN of the project's database"
_STARTING: Final = "starting the embedded PostgreSQL"
# The server gives up this share of the time earlier than we do, so that its answer still comes.
_SERVER_SHARE: Final = 0.1
_SERVER_MARGIN: Final = 0.5  # s at most
_QUERY_CANCELED: Final = b"57014"
# Tags of statements that would end the transaction of the step, or open another.
_TRANSACTION_TAGS: Final = frozenset(
    {
        "BEGIN",
        "COMMIT",
        "PREPARE TRANSACTION",
        "RELEASE",
        "ROLLBACK",
        "SAVEPOINT",
        "START TRANSACTION",
    }
)


class SqlRunner:
    """Runs the target on the resource `database`.

    The output is `{"rows_affected": n}`, with `rows` (a list of objects; a column whose name comes
    again is shown as `name_2`) if it returned any, and `"rows_truncated": true` if not all are
    there. However many rows there are, one at a time is in memory; that one twice, in whole.
    """

    def __init__(
        self,
        resources: Resources,
        secrets: Secrets,
        embedded: Callable[[str], str],
        clock: Clock,
    ) -> None:
        """`embedded`: project → DSN of the database for projects without a DSN of their own;
        may raise PostgresUnavailable.
        """
        self._resources = resources
        self._secrets = secrets
        self._embedded = embedded
        self._clock = clock
        self._pool = Pool()

    def close(self) -> None:
        """Close the idle connections now, and those in use after their step."""
        self._pool.close()

    def run(self, attempt: Attempt) -> Outcome:
        """Run the statement once."""
        deadline = Deadline.of(attempt, self._clock)
        resource = find(self._resources, attempt, deadline, "database", "database")
        if not isinstance(resource, Resource):
            return resource
        session = self._session(resource, attempt, deadline)
        if not isinstance(session, Session):
            return session
        try:
            outcome = _run(session, attempt.target, deadline)
        except TimeoutError:
            session.abandon()
            return timed_out(_WHAT, deadline)
        except CopyUnsupported:
            session.abandon()
            return Failed(
                "COPY to or from the client is not supported: there is no stream in a step",
                retryable=False,
            )
        except SessionLost as error:
            session.close()
            return Failed(
                "the connection to the database broke, and it is not known whether the statement "
                f"took effect: {error}"
            )
        except BaseException:
            session.close()
            raise
        self._give_back(_key(resource), session, deadline.at)
        if outcome is None:
            return timed_out(_WHAT, deadline)
        return outcome

    def _session(
        self, resource: Resource, attempt: Attempt, deadline: Deadline
    ) -> Session | Failed | Deferred:
        """A session with an open transaction, or why there is none."""
        try:
            return self._begin(resource, attempt, deadline)
        except ServerNotReady:
            return Deferred(f"{_STARTING} takes longer than the attempt may")
        except NoPlace as error:
            return Deferred(str(error))
        except TimeoutError:
            return timed_out("connecting to the database", deadline)
        except (CannotConnect, PostgresUnavailable, ValueError, OSError) as error:
            short = is_shortage(error) or is_shortage(error.__cause__ or error)
            reason = f"cannot connect to the database: {error}" if short else str(error)
            return Deferred(reason) if short else Failed(reason)
        except SessionLost as error:
            return Failed(f"the connection to the database broke: {error}")

    def _begin(
        self, resource: Resource, attempt: Attempt, deadline: Deadline
    ) -> Session | Deferred:
        idle = self._pool.take(_key(resource))
        if idle is not None:
            try:
                return _opened(idle, deadline)
            except SessionLost:
                pass  # closed by the server while it was idle; nothing of the step was sent
        if resource.sealed is None:
            fresh = self._pool.open(lambda: self._started(resource, deadline), deadline.at)
            return _opened(fresh, deadline)
        dsn = unseal(self._secrets, resource.sealed, attempt, deadline, _DSN)
        if isinstance(dsn, Deferred):
            return dsn
        return _opened(self._pool.open(lambda: dsn, deadline.at), deadline)

    def _started(self, resource: Resource, deadline: Deadline) -> str:
        with deadline.looking_up(_STARTING):
            return self._embedded(resource.project)

    def _give_back(self, key: Key, session: Session, deadline: float) -> None:
        """Keep the session for later, without anything that the step left in it."""
        if session.is_bloated:
            session.close()
            return
        try:
            if not session.is_idle:
                session.command("ROLLBACK", deadline)
            session.command("DISCARD ALL", deadline)
        except (TimeoutError, SessionLost):
            session.abandon()
        else:
            self._pool.give(key, session)


def _key(resource: Resource) -> Key:
    return (resource.project, resource.sealed)


def _server_deadline(deadline: Deadline) -> float:
    seconds = deadline.timeout / limits.SECOND
    return deadline.at - min(_SERVER_MARGIN, seconds * _SERVER_SHARE)


def _opened(session: Session, deadline: Deadline) -> Session:
    left = math.ceil((_server_deadline(deadline) - time.monotonic()) * limits.SECOND)
    try:
        result = session.command(
            f"BEGIN; SET LOCAL statement_timeout = {max(1, left)}; SET LOCAL datestyle = 'ISO'",
            deadline.at,
        )
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise SessionLost(_error(result))
    except TimeoutError:
        session.abandon()
        raise
    except BaseException:
        session.close()
        raise
    return session


def _run(session: Session, statement: str, deadline: Deadline) -> Outcome | None:
    """Statement and COMMIT; None if the server gave up since the time was over."""
    rows = Rows(session.connection)
    for result in session.statement(statement, deadline.at):
        if result.status == pq.ExecStatus.SINGLE_TUPLE:
            rows.add(result)
            result.clear()  # now, not when the next one is there
    session.is_bloated = rows.oversized
    if result.status == pq.ExecStatus.FATAL_ERROR:
        return _failed(result, deadline)
    if result.status == pq.ExecStatus.EMPTY_QUERY:
        return Failed("the target contains no statement", retryable=False)
    tag = (result.command_status or b"").decode("ascii", "replace")
    if tag in _TRANSACTION_TAGS or not session.in_transaction:
        return Failed(
            f"a step may not manage transactions ({tag}): each runs in one of its own, which is "
            "committed when its statement succeeds",
            retryable=False,
        )
    committed = session.command("COMMIT", deadline.at)
    if committed.status == pq.ExecStatus.FATAL_ERROR:
        return _failed(committed, deadline)
    affected = rows.count if result.command_tuples is None else result.command_tuples
    return Succeeded(rows.output(affected))


def _failed(result: pq.abc.PGresult, deadline: Deadline) -> Failed | None:
    code = result.error_field(pq.DiagnosticField.SQLSTATE)
    if code == _QUERY_CANCELED and time.monotonic() >= _server_deadline(deadline):
        return None
    return Failed(_error(result))


def _error(result: pq.abc.PGresult) -> str:
    """In the words of the server: `ERROR: relation "a" does not exist (SQLSTATE 42P01)`."""
    severity, message, code = (
        (result.error_field(field) or b"").decode("utf-8", "replace")
        for field in (
            pq.DiagnosticField.SEVERITY_NONLOCALIZED,
            pq.DiagnosticField.MESSAGE_PRIMARY,
            pq.DiagnosticField.SQLSTATE,
        )
    )
    if not code:
        return result.get_error_message().strip() or "the server closed the connection"
    return f"{severity}: {message} (SQLSTATE {code})"
