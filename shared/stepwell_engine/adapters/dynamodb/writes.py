"""What the holder of a lease writes to its head in DynamoDB."""

from dataclasses import dataclass, replace
from typing import Any, Final

from stepwell_engine.adapters.dynamodb.client import Rejected
from stepwell_engine.adapters.dynamodb.commits import (
    EXPECTED,
    LIVE_CODES,
    READABLE,
    READABLE_VALUES,
    CommitWrite,
    number,
    write_of,
)
from stepwell_engine.adapters.dynamodb.endings import by_notify_pending
from stepwell_engine.adapters.dynamodb.heads import key_of
from stepwell_engine.adapters.dynamodb.models import HeadItem
from stepwell_engine.adapters.dynamodb.updates import TURNS, Form, Updates, restless
from stepwell_engine.core.run.head import Head, wake_time
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.values.units import EpochMs, LeaseToken, RunId
from stepwell_engine.limits import BASE_RUN_FORMAT, CLOCK_MARGIN, SUSPECT_LOST_LEASES, TICK
from stepwell_engine.ports import Commit, Done, Written

_STATUS: Final = HeadItem.status.attr_name
_READY_AT: Final = HeadItem.ready_at.attr_name
_WAKE_AT: Final = HeadItem.wake_at.attr_name
_ENDED_AT: Final = HeadItem.ended_at.attr_name
_TOKEN: Final = HeadItem.token.attr_name
_UNTIL: Final = HeadItem.until.attr_name
_CLAIMED_AT: Final = HeadItem.claimed_at.attr_name
_LOST: Final = HeadItem.lost.attr_name
_JOURNAL: Final = HeadItem.journal.attr_name
_PARENT: Final = HeadItem.parent.attr_name
_NOTIFY_PENDING: Final = HeadItem.notify_pending.attr_name
_ALONE: Final = HeadItem.alone.attr_name
_ALONE_LOSSES: Final = HeadItem.alone_losses.attr_name
_FORMAT: Final = HeadItem.format.attr_name
_DEADLINE: Final = HeadItem.deadline.attr_name
IS_LIVE: Final = f"{EXPECTED['live'][0]} AND {READABLE}"
LIVE_VALUES: Final = {**LIVE_CODES, **READABLE_VALUES}

_HAS_NO_DEADLINE: Final = f"attribute_not_exists({_DEADLINE})"
_IS_READY: Final = (
    f"{IS_LIVE} AND {_READY_AT} <= :now AND ({_HAS_NO_DEADLINE} OR {_DEADLINE} > :now)"
)
_FREE: Final = f"attribute_not_exists({_TOKEN})"
_HELD: Final = f"attribute_exists({_TOKEN})"
_NOTIFIES: Final = f"attribute_exists({_NOTIFY_PENDING})"
_NOTIFIES_NOBODY: Final = f"attribute_not_exists({_NOTIFY_PENDING})"
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
_LEASE: Final = f"{_TOKEN}, {_UNTIL}, {_CLAIMED_AT}, {_ALONE}"


_OVERDUE: Final = f"{_WAKE_AT} < :late"
_IN_TIME: Final = f"(attribute_not_exists({_WAKE_AT}) OR {_WAKE_AT} >= :late)"


@dataclass(frozen=True, slots=True)
class _Case:
    """What a claim meets: a run that somebody holds, or that is overdue by more than a tick.

    `deadline` is that of an overdue one: with it goes when to wake.
    """

    held: bool
    overdue: bool
    deadline: EpochMs | None = None

    @classmethod
    def of(cls, head: Head, now: EpochMs) -> "_Case":
        """The case of a head."""
        overdue = head.wake_at is not None and head.wake_at < now - TICK
        return cls(head.lease_token is not None, overdue, head.deadline if overdue else None)

    def form(self, now: EpochMs, lease_expires_at: EpochMs) -> Form:
        """The form of a claim in this case."""
        update = _CLAIM_LOST if self.held else _CLAIM
        condition = f"{_IS_READY} AND {_LEASE_IS_OVER if self.held else _FREE}"
        values: dict[str, Any] = {}
        if self.held:
            over = now - CLOCK_MARGIN
            values |= {":over": number(over), ":zero": number(0), ":one": number(1)}
        if not self.overdue:
            return Form(update, f"{condition} AND {_IN_TIME}", values)
        values[":wake"] = number(wake_time(lease_expires_at, self.deadline))
        if self.deadline is not None:
            values[":deadline"] = number(self.deadline)
        known = _HAS_NO_DEADLINE if self.deadline is None else f"{_DEADLINE} = :deadline"
        return Form(
            f"{update}, {_WAKE_AT} = :wake", f"{condition} AND {_OVERDUE} AND {known}", values
        )


class HeadWrites(Updates):
    """What the holder of a lease writes: claim, extend, commit and let_go, as the port says them.

    A claim has forms, too, but a refusal may also mean that our own claim, of which the answer was
    lost, had succeeded: then the stored token is ours.
    """

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
            ":now": number(now),
            ":late": number(now - TICK),
            ":token": {"S": lease_token},
            ":until": number(lease_expires_at),
        }
        alone, shared = lane is Lane.ALONE, lane is Lane.SHARED
        if alone:
            values[":one"] = number(1)
        if shared:
            values[":suspect"] = number(SUSPECT_LOST_LEASES)
        case = _Case(held=False, overdue=False)
        for _ in range(TURNS):
            form = case.form(now, lease_expires_at)
            condition = f"{form.condition} AND {_IS_NO_SUSPECT}" if shared else form.condition
            update = f"{form.update}{_IN_LANE[alone]}"
            written = self._update(run_id, update, condition, {**values, **form.values})
            head = written.head
            if isinstance(written, Done) or head is None:
                return written
            if head.lease_token == lease_token:
                return Done(head)
            if shared and head.suspect:
                return written
            if not head.live or head.ready_at > now or head.overdue(now):
                return written
            is_over = head.lease_expires_at + CLOCK_MARGIN < now
            fits = _Case.of(head, now)
            if fits == case or (fits.held and not is_over):
                return written
            case = fits
        raise restless(run_id)

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
            "notifies": Form(write.update(), f"{condition} AND {_NOTIFIES}"),
            "notifies nobody": Form(write.update(_WAKE_AT), f"{condition} AND {_NOTIFIES_NOBODY}"),
        }
        return self._fitting(
            commit.run_id, forms, values, "notifies nobody", by_notify_pending, write.names
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
