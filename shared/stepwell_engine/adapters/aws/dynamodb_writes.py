"""The writes of a head: each one conditional update that returns what it met.

These are low-level calls because a refusal must return the item as it stands, and the reasons of
a cancelled transaction must be told apart. All names are the model's.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from stepwell_engine.adapters.aws.dynamodb import DynamoDB, Rejected
from stepwell_engine.adapters.aws.dynamodb_heads import from_item, key_of
from stepwell_engine.adapters.aws.models import HeadItem, MailAttribute
from stepwell_engine.core.run import LIVE, Mail, Status
from stepwell_engine.errors import Unavailable
from stepwell_engine.limits import CLOCK_MARGIN, FORMAT, MAX_PENDING_SIGNALS
from stepwell_engine.ports import KEEP, Commit, Done, Refused, Written

Values = dict[str, Any]

TURNS: Final = 8  # how often a head may change hands during one call

_STATUS: Final = HeadItem.status.attr_name
_READY_AT: Final = HeadItem.ready_at.attr_name
_WAKE_AT: Final = HeadItem.wake_at.attr_name
_ENDED_AT: Final = HeadItem.ended_at.attr_name
_TOKEN: Final = HeadItem.token.attr_name
_UNTIL: Final = HeadItem.until.attr_name
_REVISION: Final = HeadItem.revision.attr_name
_COMMIT: Final = HeadItem.commit.attr_name
_LOST: Final = HeadItem.lost.attr_name
_JOURNAL: Final = HeadItem.journal.attr_name
_MAIL: Final = HeadItem.mail.attr_name
_FORMAT: Final = HeadItem.format.attr_name


def _code(status: Status) -> Values:
    return {"S": HeadItem.status.serialize(status)}


def _number(value: int) -> Values:
    return {"N": str(value)}


_LIVE_CODES: Final = {f":live{i}": _code(status) for i, status in enumerate(sorted(LIVE))}
_READABLE: Final = f"{_FORMAT} <= :format"
_IS_LIVE: Final = f"{_STATUS} IN ({', '.join(_LIVE_CODES)}) AND {_READABLE}"
_LIVE_VALUES: Final = {**_LIVE_CODES, ":format": _number(FORMAT)}
_IS_CANCELLED: Final = f"{_STATUS} = :cancelled AND {_READABLE}"
_CANCELLED_VALUES: Final = {":cancelled": _code(Status.CANCELLED), ":format": _number(FORMAT)}

_IS_READY: Final = f"{_IS_LIVE} AND {_READY_AT} <= :now"
_FREE: Final = f"attribute_not_exists({_TOKEN})"
_HELD: Final = f"attribute_exists({_TOKEN})"
_CLAIM: Final = f"SET {_TOKEN} = :token, {_UNTIL} = :until"
_CLAIM_LOST: Final = f"{_CLAIM}, {_LOST} = if_not_exists({_LOST}, :zero) + :one"
_LEASE_IS_OVER: Final = f"{_HELD} AND {_TOKEN} <> :token AND {_UNTIL} < :over"
_EXTEND: Final = f"SET {_UNTIL} = :until, {_WAKE_AT} = :wake"
_IS_MINE: Final = f"{_TOKEN} = :token"
_IS_NEXT: Final = f"{_IS_MINE} AND {_COMMIT} = :commit"
_DELIVER: Final = (
    f"SET {_MAIL}.#id = :mail, {_READY_AT} = :zero, {_WAKE_AT} = :now ADD {_REVISION} :one"
)
_HAS_ROOM: Final = f"size({_MAIL}) < :most AND attribute_not_exists({_MAIL}.#id)"
_CANCEL: Final = f"SET {_STATUS} = :cancelled, {_ENDED_AT} = :now ADD {_REVISION} :one"
_CANCEL_FREE: Final = f"{_CANCEL} REMOVE {_WAKE_AT}"
_CLOSE: Final = (
    f"SET {_JOURNAL} = :journal, {_COMMIT} = :next REMOVE {_TOKEN}, {_UNTIL}, {_WAKE_AT}"
)


class HeadWrites:
    """Claim, extend, commit, deliver, cancel, close, as the port says them."""

    def __init__(self, database: DynamoDB, table: str) -> None:
        self._database = database
        self._table = table

    def claim(self, run_id: str, token: str, now: int, until: int) -> Written:
        """Take the lease, of a run that nobody holds, or else one that is over."""
        values = {
            **_LIVE_VALUES,
            ":token": {"S": token},
            ":until": _number(until),
            ":now": _number(now),
        }
        free = f"{_IS_READY} AND {_FREE}"
        over = f"{_IS_READY} AND {_LEASE_IS_OVER}"
        more = {":over": _number(now - CLOCK_MARGIN), ":zero": _number(0), ":one": _number(1)}
        for _ in range(TURNS):
            written = self._update(run_id, _CLAIM, free, values)
            head = written.head
            if isinstance(written, Done) or head is None:
                return written
            if head.token == token:
                return Done(head)
            if head.token is not None:
                is_over = head.until + CLOCK_MARGIN < now
                if not (is_over and head.live and head.ready_at <= now):
                    return written
                written = self._update(run_id, _CLAIM_LOST, over, {**values, **more})
                if isinstance(written, Done):
                    return written
            elif not head.live or head.ready_at > now:
                return written
        raise _restless(run_id)

    def extend(self, run_id: str, token: str, until: int, wake_at: int) -> Written:
        """Move the end of a held lease."""
        values = {
            **_LIVE_VALUES,
            ":token": {"S": token},
            ":until": _number(until),
            ":wake": _number(wake_at),
        }
        condition = f"{_IS_LIVE} AND {_IS_MINE} AND {_UNTIL} <= :until"
        return self._update(run_id, _EXTEND, condition, values)

    def commit(self, commit: Commit) -> Written:
        """One step forward; the blobs are there already."""
        sets: Values = {_COMMIT: _number(commit.commit + 1), _JOURNAL: {"B": commit.journal}}
        removes: list[str] = []
        if commit.status is not None:
            sets[_STATUS] = _code(commit.status)
        if commit.ready_at is not None:
            sets[_READY_AT] = _number(commit.ready_at)
        if commit.ended_at is not None:
            sets[_ENDED_AT] = _number(commit.ended_at)
        if commit.wake_at is None:
            removes.append(_WAKE_AT)
        elif commit.wake_at is not KEEP:
            sets[_WAKE_AT] = _number(commit.wake_at)
        if commit.release:
            removes += [_TOKEN, _UNTIL]
        if commit.progress:
            removes.append(_LOST)
        names = {f"#{i}": mail_id for i, mail_id in enumerate(dict.fromkeys(commit.consumed))}
        removes += [f"{_MAIL}.{name}" for name in names]
        condition, values = (
            (_IS_LIVE, _LIVE_VALUES)
            if commit.expect == "live"
            else (_IS_CANCELLED, _CANCELLED_VALUES)
        )
        condition = f"{condition} AND {_IS_NEXT}"
        values = {**values, ":token": {"S": commit.token}, ":commit": _number(commit.commit)}
        if commit.revision is not None:
            condition = f"{condition} AND {_REVISION} = :revision"
            values[":revision"] = _number(commit.revision)
        values |= {f":{name}": value for name, value in sets.items()}
        return self._update(commit.run_id, _expression(sets, removes), condition, values, names)

    def deliver(self, run_id: str, mail_id: str, mail: Mail, now: int) -> Written:
        """Put mail, and wake the run; a large body is there already. TooLarge."""
        values = {
            **_LIVE_VALUES,
            ":mail": MailAttribute.letter(mail),
            ":now": _number(now),
            ":zero": _number(0),
            ":one": _number(1),
            ":most": _number(MAX_PENDING_SIGNALS),
        }
        condition = f"{_IS_LIVE} AND {_HAS_ROOM}"
        return self._update(run_id, _DELIVER, condition, values, {"#id": mail_id})

    def cancel(self, run_id: str, now: int) -> Written:
        """End a live run: one that nobody holds has nothing to wake for any more."""
        values = {
            **_LIVE_VALUES,
            ":cancelled": _code(Status.CANCELLED),
            ":now": _number(now),
            ":one": _number(1),
        }
        update, condition = _CANCEL_FREE, _FREE
        for _ in range(TURNS):
            written = self._update(run_id, update, f"{_IS_LIVE} AND {condition}", values)
            head = written.head
            if isinstance(written, Done) or head is None or not head.live:
                return written
            held = head.token is not None
            update, condition = (_CANCEL, _HELD) if held else (_CANCEL_FREE, _FREE)
        raise _restless(run_id)

    def close(self, run_id: str, token: str, commit: int, journal: bytes) -> Written:
        """Settle a cancelled run whose lease is over."""
        values = {
            **_CANCELLED_VALUES,
            ":token": {"S": token},
            ":commit": _number(commit),
            ":next": _number(commit + 1),
            ":journal": {"B": journal},
        }
        return self._update(run_id, _CLOSE, f"{_IS_CANCELLED} AND {_IS_NEXT}", values)

    def _update(
        self,
        run_id: str,
        update: str,
        condition: str,
        values: Mapping[str, Any],
        names: Mapping[str, str] | None = None,
    ) -> Written:
        written = self._database.update(
            self._table,
            key_of(run_id),
            UpdateExpression=update,
            ConditionExpression=condition,
            ExpressionAttributeValues=values,
            **({"ExpressionAttributeNames": names} if names else {}),
        )
        if isinstance(written, Rejected):
            return Refused(None if written.item is None else from_item(written.item))
        return Done(from_item(written))


def _expression(sets: Iterable[str], removes: Iterable[str]) -> str:
    """Each name is set to the value called like it."""
    text = "SET " + ", ".join(f"{name} = :{name}" for name in sets)
    return f"{text} REMOVE {', '.join(removes)}" if removes else text


def _restless(run_id: str) -> Unavailable:
    return Unavailable(f"run {run_id} changed hands {TURNS} times during one call")
