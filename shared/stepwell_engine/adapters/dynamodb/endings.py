"""How runs in DynamoDB end otherwise than by a commit, and go on again."""

from collections.abc import Mapping
from typing import Any, Final

from stepwell_engine.adapters.dynamodb.commits import (
    EXPECTED,
    LIVE_CODES,
    READABLE,
    READABLE_VALUES,
    STOPPED_CODES,
    code,
    codes,
    number,
)
from stepwell_engine.adapters.dynamodb.models import HeadItem
from stepwell_engine.adapters.dynamodb.updates import Form, Updates
from stepwell_engine.core.run.head import Head, wake_time
from stepwell_engine.core.run.status import REVIVABLE, Status
from stepwell_engine.core.values.units import EpochMs, LeaseToken, RunId
from stepwell_engine.limits import CLOCK_MARGIN, RUN_FORMAT
from stepwell_engine.ports import Revival, Written

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
_DEADLINE: Final = HeadItem.deadline.attr_name
_GENERATION: Final = HeadItem.generation.attr_name
_TOLD: Final = HeadItem.told.attr_name

_YES: Final = {":yes": {"BOOL": True}}
_FREE: Final = f"attribute_not_exists({_TOKEN})"
_HELD: Final = f"attribute_exists({_TOKEN})"
_NOTIFIES: Final = f"attribute_exists({_NOTIFY_PENDING})"
_NOTIFIES_NOBODY: Final = f"attribute_not_exists({_NOTIFY_PENDING})"
_OWES_NOTICE: Final = f"attribute_exists({_PARENT}) AND attribute_not_exists({_TOLD})"
_OWES_NONE: Final = f"(attribute_not_exists({_PARENT}) OR attribute_exists({_TOLD}))"
_IS_MINE: Final = f"{_TOKEN} = :token AND {_COMMIT} = :commit"
_LEASE: Final = f"{_TOKEN}, {_UNTIL}, {_CLAIMED_AT}, {_ALONE}"
_IS_STOPPED: Final = f"{EXPECTED['stopped'][0]} AND {READABLE}"
_IS_LIVE: Final = f"{EXPECTED['live'][0]} AND {READABLE}"

_STOP: Final = f"SET {_STATUS} = :status, {_ENDED_AT} = :now"
_STOPS: Final = {
    "owes": Form(
        f"{_STOP}, {_NOTIFY_PENDING} = :yes, {_WAKE_AT} = :now ADD {_REVISION} :one",
        f"{_IS_LIVE} AND {_OWES_NOTICE}",
        _YES,
    ),
    "held": Form(
        f"{_STOP}, {_WAKE_AT} = {_UNTIL} ADD {_REVISION} :one REMOVE {_NOTIFY_PENDING}",
        f"{_IS_LIVE} AND {_OWES_NONE} AND {_HELD}",
    ),
    "free": Form(
        f"{_STOP} ADD {_REVISION} :one REMOVE {_NOTIFY_PENDING}, {_WAKE_AT}",
        f"{_IS_LIVE} AND {_OWES_NONE} AND {_FREE}",
    ),
}
_CASCADE_ALL: Final = Form(
    f"{_STOP}, {_NOTIFY_PENDING} = :yes, {_CASCADE} = :yes, {_WAKE_AT} = :now ADD {_REVISION} :one",
    _IS_LIVE,
    _YES,
)
_CASCADES: Final = dict.fromkeys(_STOPS, _CASCADE_ALL)  # whatever the head is
_TIMES_OUT: Final = {
    name: Form(
        form.update.replace("SET ", f"SET {_FORMAT} = :format, "), form.condition, form.values
    )
    for name, form in _STOPS.items()
}
_CLOSE: Final = f"SET {_JOURNAL} = :journal, {_COMMIT} = :next REMOVE {_LEASE}"
_CLOSES: Final = {
    "notifies": Form(_CLOSE, f"{_IS_STOPPED} AND {_IS_MINE} AND {_NOTIFIES}"),
    "notifies nobody": Form(
        f"{_CLOSE}, {_WAKE_AT}", f"{_IS_STOPPED} AND {_IS_MINE} AND {_NOTIFIES_NOBODY}"
    ),
}
_MARKS_NOTIFIED: Final = {
    "held": Form(
        f"SET {_WAKE_AT} = {_UNTIL} REMOVE {_NOTIFY_PENDING}",
        f"{READABLE} AND {_NOTIFIES} AND {_HELD}",
    ),
    "free": Form(
        f"REMOVE {_NOTIFY_PENDING}, {_WAKE_AT}", f"{READABLE} AND {_NOTIFIES} AND {_FREE}"
    ),
}
_REVIVABLE_CODES: Final = codes("revivable", REVIVABLE)
_IS_REVIVABLE: Final = (
    f"{_STATUS} IN ({', '.join(_REVIVABLE_CODES)}) AND {READABLE} AND {_COMMIT} = :commit"
    f" AND ({_FREE} OR {_UNTIL} < :over)"
)
_REVIVE: Final = (
    f"SET {_STATUS} = :status, {_READY_AT} = :zero, {_JOURNAL} = :journal, {_COMMIT} = :next, "
    f"{_WAKE_AT} = :wake, {_GENERATION} = :generation, {_FORMAT} = :format%s "
    f"REMOVE {_ENDED_AT}, {_LEASE}, {_LOST}, {_ALONE_LOSSES}, {_NOTIFY_PENDING}%s"
)
_HAS_TOLD: Final = f"{_OWES_NOTICE} AND {_NOTIFIES_NOBODY}"
_HAS_NOT_TOLD: Final = f"({_OWES_NONE} OR {_NOTIFIES})"


class Endings(Updates):
    """cancel, time_out, close, mark_notified and revive, as the port says them."""

    def cancel(self, run_id: RunId, now: EpochMs, cascade: bool, generation: int) -> Written:
        """End a live run: one that nobody holds has nothing to wake for but to notify somebody."""
        forms = _CASCADES if cascade else _STOPS
        return self._stop(run_id, Status.CANCELLED, now, generation, forms)

    def time_out(self, run_id: RunId, now: EpochMs, generation: int) -> Written:
        """End a live run that is late. No newer format is stored: a condition says so."""
        return self._stop(run_id, Status.TIMED_OUT, now, generation, _TIMES_OUT)

    def _stop(
        self,
        run_id: RunId,
        status: Status,
        now: EpochMs,
        generation: int,
        forms: Mapping[str, Form],
    ) -> Written:
        values = {
            **LIVE_CODES,
            **READABLE_VALUES,
            ":status": code(status),
            ":now": number(now),
            ":one": number(1),
        }
        return self._fitting(run_id, *_of(generation, forms, values), "free", _by_debt)

    def close(
        self, run_id: RunId, lease_token: LeaseToken, commit_seq: int, journal: bytes
    ) -> Written:
        """Settle a stopped run whose lease is over."""
        values = {
            **STOPPED_CODES,
            **READABLE_VALUES,
            ":token": {"S": lease_token},
            ":commit": number(commit_seq),
            ":next": number(commit_seq + 1),
            ":journal": {"B": journal},
        }
        return self._fitting(run_id, _CLOSES, values, "notifies nobody", by_notify_pending)

    def mark_notified(self, run_id: RunId, generation: int) -> Written:
        """Somebody was notified; the lease of a worker in flight is still to be looked at."""
        forms, values = _of(generation, _MARKS_NOTIFIED, READABLE_VALUES)
        return self._fitting(run_id, forms, values, "free", _by_lease)

    def revive(self, revival: Revival) -> Written:
        """Let a run that has ended go on; the blobs are there already."""
        one = revival
        values = {
            **_REVIVABLE_CODES,
            ":format": number(RUN_FORMAT),
            ":status": code(Status.PENDING),
            ":zero": number(0),
            ":journal": {"B": one.journal},
            ":commit": number(one.commit_seq),
            ":next": number(one.commit_seq + 1),
            ":wake": number(wake_time(one.now, one.deadline)),
            ":over": number(one.now - CLOCK_MARGIN),
            ":generation": number(one.generation + 1),
        }
        if one.deadline is None:
            more, less = "", f", {_DEADLINE}"
        else:
            more, less = f", {_DEADLINE} = :deadline", ""
            values[":deadline"] = number(one.deadline)
        forms = {
            "has told": Form(
                _REVIVE % (f"{more}, {_TOLD} = :yes", less),
                f"{_IS_REVIVABLE} AND {_HAS_TOLD}",
                _YES,
            ),
            "has not told": Form(_REVIVE % (more, less), f"{_IS_REVIVABLE} AND {_HAS_NOT_TOLD}"),
        }
        forms, values = _of(one.generation, forms, values, ":was")
        return self._fitting(one.run_id, forms, values, "has not told", _by_telling)


def _of(
    generation: int, forms: Mapping[str, Form], values: Mapping[str, Any], name: str = ":generation"
) -> tuple[dict[str, Form], dict[str, Any]]:
    """The forms for heads of one generation, which is stored only once a run was revived."""
    condition, more = is_of(generation, name)
    return {
        key: Form(form.update, f"{form.condition} AND {condition}", form.values)
        for key, form in forms.items()
    }, {**values, **more}


def is_of(generation: int, name: str) -> tuple[str, dict[str, Any]]:
    """The condition that a head is of a generation, and the value `name` for it."""
    if generation == 0:
        return f"attribute_not_exists({_GENERATION})", {}
    return f"{_GENERATION} = {name}", {name: number(generation)}


def by_notify_pending(head: Head) -> str:
    """Which form of a write that removes wake_at fits, unless somebody is to be notified."""
    return "notifies" if head.notify_pending else "notifies nobody"


def _by_lease(head: Head) -> str:
    return "free" if head.lease_token is None else "held"


def _by_debt(head: Head) -> str:
    return "owes" if head.owes_notice else _by_lease(head)


def _by_telling(head: Head) -> str:
    return "has told" if head.owes_notice and not head.notify_pending else "has not told"
