"""The writes of a head: each one conditional update that returns what it met.

These are low-level calls because a refusal must return the item as it stands, and the reasons of
a cancelled transaction must be told apart. All names are the model's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from stepwell_engine.adapters.dynamodb.client import DynamoDB, Rejected
from stepwell_engine.adapters.dynamodb.commits import (
    CANCELLED_CODE,
    EXPECTED,
    LIVE_CODES,
    READABLE,
    READABLE_VALUES,
    CommitWrite,
    code,
    number,
    write_of,
)
from stepwell_engine.adapters.dynamodb.heads import from_item, key_of
from stepwell_engine.adapters.dynamodb.models import HeadItem
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values.units import EpochMs, LeaseToken, RunId
from stepwell_engine.errors import Unavailable
from stepwell_engine.limits import (
    BASE_RUN_FORMAT,
    CLOCK_MARGIN,
    RUN_FORMAT,
    SUSPECT_LOST_LEASES,
    TICK,
)
from stepwell_engine.ports import Commit, Done, Refused, Written

Values = dict[str, Any]

TURNS: Final = 8  # how often a head may change hands during one call

_STATUS: Final = HeadItem.status.attr_name
_READY_AT: Final = HeadItem.ready_at.attr_name
_WAKE_AT: Final = HeadItem.wake_at.attr_name
_ENDED_AT: Final = HeadItem.ended_at.attr_name
_TOKEN: Final = HeadItem.token.attr_name
_UNTIL: Final = HeadItem.until.attr_name
_CLAIMED_AT: Final = HeadItem.claimed_at.attr_name
_REVISION: Final = HeadItem.revision.attr_name
_COMMIT: Final = HeadItem.commit.attr_name
_LOST: Final = HeadItem.lost.attr_name
_JOURNAL: Final = HeadItem.journal.attr_name
_PARENT: Final = HeadItem.parent.attr_name
_NOTIFY_PENDING: Final = HeadItem.notify_pending.attr_name
_CASCADE: Final = HeadItem.cascade.attr_name
_ALONE: Final = HeadItem.alone.attr_name
_ALONE_LOSSES: Final = HeadItem.alone_losses.attr_name
_FORMAT: Final = HeadItem.format.attr_name
IS_LIVE: Final = f"{EXPECTED['live'][0]} AND {READABLE}"
LIVE_VALUES: Final = {**LIVE_CODES, **READABLE_VALUES}
_IS_CANCELLED: Final = f"{EXPECTED['cancelled'][0]} AND {READABLE}"
_CANCELLED_VALUES: Final = {**CANCELLED_CODE, **READABLE_VALUES}

_IS_READY: Final = f"{IS_LIVE} AND {_READY_AT} <= :now"
_FREE: Final = f"attribute_not_exists({_TOKEN})"
_HELD: Final = f"attribute_exists({_TOKEN})"
_NOTIFIES: Final = f"attribute_exists({_NOTIFY_PENDING})"
_NOTIFIES_NOBODY: Final = f"attribute_not_exists({_NOTIFY_PENDING})"
_IS_CHILD: Final = f"attribute_exists({_PARENT})"
_IS_ROOT: Final = f"attribute_not_exists({_PARENT})"
_CLAIM: Final = f"SET {_TOKEN} = :token, {_UNTIL} = :until, {_CLAIMED_AT} = :now"
_CLAIM_LOST: Final = (
    f"{_CLAIM}, {_LOST} = if_not_exists({_LOST}, :zero) + :one, {_ALONE_LOSSES} = "
    f"if_not_exists({_ALONE_LOSSES}, :zero) + if_not_exists({_ALONE}, :zero)"
)
_IN_LANE: Final = {
    True: f", {_ALONE} = :one, {_FORMAT} = :format",
    False: f" REMOVE {_ALONE}",
}
_IS_NO_SUSPECT: Final = f"(attribute_not_exists({_LOST}) OR {_LOST} < :suspect)"
_LEASE_IS_OVER: Final = f"{_HELD} AND {_TOKEN} <> :token AND {_UNTIL} < :over"
_EXTEND: Final = f"SET {_UNTIL} = :until, {_WAKE_AT} = :wake"
_IS_MINE: Final = f"{_TOKEN} = :token"
_IS_NEXT: Final = f"{_IS_MINE} AND {_COMMIT} = :commit"
_CANCEL: Final = f"SET {_STATUS} = :cancelled, {_ENDED_AT} = :now"
_LEASE: Final = f"{_TOKEN}, {_UNTIL}, {_CLAIMED_AT}, {_ALONE}"
_CLOSE: Final = f"SET {_JOURNAL} = :journal, {_COMMIT} = :next REMOVE {_LEASE}"


@dataclass(frozen=True, slots=True)
class _Form:
    """One of the forms that a write has. Its condition holds only for the heads that it fits."""

    update: str
    condition: str
    values: Mapping[str, Any] = field(default_factory=dict)


_OVERDUE: Final = f"{_WAKE_AT} < :late"
_IN_TIME: Final = f"(attribute_not_exists({_WAKE_AT}) OR {_WAKE_AT} >= :late)"
# By whether somebody holds the run, and whether it is overdue by more than a tick.
_CLAIMS: Final = {
    (False, False): _Form(_CLAIM, f"{_IS_READY} AND {_FREE} AND {_IN_TIME}"),
    (False, True): _Form(
        f"{_CLAIM}, {_WAKE_AT} = :until", f"{_IS_READY} AND {_FREE} AND {_OVERDUE}"
    ),
    (True, False): _Form(_CLAIM_LOST, f"{_IS_READY} AND {_LEASE_IS_OVER} AND {_IN_TIME}"),
    (True, True): _Form(
        f"{_CLAIM_LOST}, {_WAKE_AT} = :until", f"{_IS_READY} AND {_LEASE_IS_OVER} AND {_OVERDUE}"
    ),
}
_CANCELS: Final = {
    "child": _Form(
        f"{_CANCEL}, {_NOTIFY_PENDING} = :yes, {_WAKE_AT} = :now ADD {_REVISION} :one",
        f"{IS_LIVE} AND {_IS_CHILD}",
        {":yes": {"BOOL": True}},
    ),
    "held": _Form(
        f"{_CANCEL} ADD {_REVISION} :one REMOVE {_NOTIFY_PENDING}",
        f"{IS_LIVE} AND {_IS_ROOT} AND {_HELD}",
    ),
    "free": _Form(
        f"{_CANCEL} ADD {_REVISION} :one REMOVE {_NOTIFY_PENDING}, {_WAKE_AT}",
        f"{IS_LIVE} AND {_IS_ROOT} AND {_FREE}",
    ),
}
_CASCADES: Final = _Form(
    f"{_CANCEL}, {_NOTIFY_PENDING} = :yes, {_CASCADE} = :yes, {_WAKE_AT} = :now "
    f"ADD {_REVISION} :one",
    IS_LIVE,
    {":yes": {"BOOL": True}},
)
_CLOSES: Final = {
    "notifies": _Form(_CLOSE, f"{_IS_CANCELLED} AND {_IS_NEXT} AND {_NOTIFIES}"),
    "notifies nobody": _Form(
        f"{_CLOSE}, {_WAKE_AT}", f"{_IS_CANCELLED} AND {_IS_NEXT} AND {_NOTIFIES_NOBODY}"
    ),
}
_MARKS_NOTIFIED: Final = {
    "held": _Form(
        f"SET {_WAKE_AT} = {_UNTIL} REMOVE {_NOTIFY_PENDING}",
        f"{READABLE} AND {_NOTIFIES} AND {_HELD}",
    ),
    "free": _Form(
        f"REMOVE {_NOTIFY_PENDING}, {_WAKE_AT}", f"{READABLE} AND {_NOTIFIES} AND {_FREE}"
    ),
}


class HeadWrites:
    """Claim, extend, commit, cancel, close, mark_notified, as the port says them."""

    def __init__(self, database: DynamoDB, table: str) -> None:
        self._database = database
        self._table = table

    def claim(
        self,
        run_id: RunId,
        lease_token: LeaseToken,
        now: EpochMs,
        lease_expires_at: EpochMs,
        lane: Lane = Lane.HOST,
    ) -> Written:
        """Take the lease, of a run that nobody holds, or else one that is over."""
        values = {
            **LIVE_VALUES,
            ":token": {"S": lease_token},
            ":until": number(lease_expires_at),
            ":now": number(now),
            ":late": number(now - TICK),
        }
        alone, shared = lane is Lane.ALONE, lane is Lane.SHARED
        one = {":one": number(1)}
        values |= {":suspect": number(SUSPECT_LOST_LEASES)} if shared else one if alone else {}
        more = {**one, ":over": number(now - CLOCK_MARGIN), ":zero": number(0)}
        # Forms, as in `_fitting`, but a refusal may also mean that our own claim, of which the
        # answer was lost, had succeeded: then the stored token is ours.
        held = overdue = False
        for _ in range(TURNS):
            form = _CLAIMS[held, overdue]
            condition = f"{form.condition} AND {_IS_NO_SUSPECT}" if shared else form.condition
            given = {**values, **more} if held else values
            update = f"{form.update}{_IN_LANE[alone]}"
            written = self._update(run_id, update, condition, given)
            head = written.head
            if isinstance(written, Done) or head is None:
                return written
            if head.lease_token == lease_token:
                return Done(head)
            if shared and head.suspect:
                return written
            if not head.live or head.ready_at > now:
                return written
            fits = (
                head.lease_token is not None,
                head.wake_at is not None and head.wake_at < now - TICK,
            )
            is_over = head.lease_expires_at + CLOCK_MARGIN < now
            if fits == (held, overdue) or (head.lease_token is not None and not is_over):
                return written
            held, overdue = fits
        raise _restless(run_id)

    def extend(
        self, run_id: RunId, lease_token: LeaseToken, lease_expires_at: EpochMs, wake_at: EpochMs
    ) -> Written:
        """Move the end of a held lease."""
        values = {
            **LIVE_VALUES,
            ":token": {"S": lease_token},
            ":until": number(lease_expires_at),
            ":wake": number(wake_at),
        }
        condition = f"{IS_LIVE} AND {_IS_MINE} AND {_UNTIL} <= :until"
        return self._update(run_id, _EXTEND, condition, values)

    def commit(self, commit: Commit) -> Written:
        """One step forward; the blobs are there already."""
        write = write_of(commit)
        condition = f"{write.condition} AND {READABLE}"
        values = {**write.values, **READABLE_VALUES}
        if commit.wake_at is not None:
            update = write.update()
            return self._update(commit.run_id, update, condition, values, write.names)
        forms = {
            "notifies": _Form(write.update(), f"{condition} AND {_NOTIFIES}"),
            "notifies nobody": _Form(write.update(_WAKE_AT), f"{condition} AND {_NOTIFIES_NOBODY}"),
        }
        return self._fitting(
            commit.run_id, forms, "notifies nobody", _by_notify_pending, values, write.names
        )

    def let_go(self, commit: Commit) -> bool:
        """One step forward, whatever the format; the blobs are there already."""
        if commit.format > BASE_RUN_FORMAT:
            write = write_of(commit)
            if self._let_go(commit.run_id, write, f"{write.condition} AND {_FORMAT} <= :{_FORMAT}"):
                return True
        write = write_of(replace(commit, format=BASE_RUN_FORMAT))
        return self._let_go(commit.run_id, write, write.condition)

    def _let_go(self, run_id: RunId, write: CommitWrite, condition: str) -> bool:
        written = self._database.update(
            self._table,
            key_of(run_id),
            UpdateExpression=write.update(),
            ConditionExpression=condition,
            ExpressionAttributeValues=write.values,
        )
        return not isinstance(written, Rejected)

    def cancel(self, run_id: RunId, now: EpochMs, cascade: bool) -> Written:
        """End a live run: one that nobody holds has nothing to wake for but to notify somebody."""
        values = {
            **LIVE_VALUES,
            ":cancelled": code(Status.CANCELLED),
            ":now": number(now),
            ":one": number(1),
        }
        if cascade:
            form = _CASCADES
            return self._update(run_id, form.update, form.condition, {**values, **form.values})
        return self._fitting(run_id, _CANCELS, "free", _by_kin, values)

    def close(
        self, run_id: RunId, lease_token: LeaseToken, commit_seq: int, journal: bytes
    ) -> Written:
        """Settle a cancelled run whose lease is over."""
        values = {
            **_CANCELLED_VALUES,
            ":token": {"S": lease_token},
            ":commit": number(commit_seq),
            ":next": number(commit_seq + 1),
            ":journal": {"B": journal},
        }
        return self._fitting(run_id, _CLOSES, "notifies nobody", _by_notify_pending, values)

    def mark_notified(self, run_id: RunId) -> Written:
        """Somebody was notified; the lease of a worker in flight is still to be looked at."""
        values = {":format": number(RUN_FORMAT)}
        return self._fitting(run_id, _MARKS_NOTIFIED, "free", _by_lease, values)

    def _fitting(
        self,
        run_id: RunId,
        forms: Mapping[str, _Form],
        first: str,
        choose: Callable[[Head], str],
        values: Mapping[str, Any],
        names: Mapping[str, str] | None = None,
    ) -> Written:
        """Write the form that fits the head as it is stored. `first` and `choose` name forms.

        An update expression cannot branch: whether it sets wake_at, removes it or leaves it alone
        cannot depend on another attribute of the item. So such a write has one form for each case,
        and the form's condition says which case it is for. Reading first would cost a read unit
        each time, so the likely form goes out blind. A refusal does not say which part of the
        condition failed, but it returns the head as it stood (ReturnValuesOnConditionCheckFailure),
        from which `choose` tells the form that fits:

        - Another one: the guess was wrong. Try the one that fits.
        - The one that was refused: the guess was right, so a condition of the write itself (live,
          the lease, the commit number) does not hold. The write is refused for good.

        The case may change again between two tries (a lease is taken, a parent notified), so there
        may be more than two. At most one is written, for every form is conditional as a whole.
        """
        name = first
        for _ in range(TURNS):
            form = forms[name]
            written = self._update(
                run_id, form.update, form.condition, {**values, **form.values}, names
            )
            if isinstance(written, Done) or written.head is None:
                return written
            fits = choose(written.head)
            if fits == name:
                return written
            name = fits
        raise _restless(run_id)

    def _update(
        self,
        run_id: RunId,
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


def _by_notify_pending(head: Head) -> str:
    return "notifies" if head.notify_pending else "notifies nobody"


def _by_lease(head: Head) -> str:
    return "free" if head.lease_token is None else "held"


def _by_kin(head: Head) -> str:
    return _by_lease(head) if head.parent is None else "child"


def _restless(run_id: RunId) -> Unavailable:
    return Unavailable(f"run {run_id} changed hands {TURNS} times during one call")
