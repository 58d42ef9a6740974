"""What a commit does to the item of a head, and on which condition."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from stepwell_engine.adapters.dynamodb.attributes import InboxAttribute
from stepwell_engine.adapters.dynamodb.models import HeadItem
from stepwell_engine.core.run.status import LIVE, STOPPED, Status
from stepwell_engine.limits import BASE_RUN_FORMAT, RUN_FORMAT
from stepwell_engine.ports import KEEP, UNCHECKED, Commit

Values = dict[str, Any]

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
_INBOX: Final = HeadItem.inbox.attr_name
_NOTIFY_PENDING: Final = HeadItem.notify_pending.attr_name
_ALONE: Final = HeadItem.alone.attr_name
_ALONE_LOSSES: Final = HeadItem.alone_losses.attr_name
_OVERFLOW_COUNT: Final = HeadItem.overflow_count.attr_name
_WANTS: Final = HeadItem.wants.attr_name
_WANTS_SEQ: Final = HeadItem.wants_seq.attr_name
_FORMAT: Final = HeadItem.format.attr_name


def code(status: Status) -> Values:
    """A status as a value of DynamoDB's."""
    return {"S": HeadItem.status.serialize(status)}


def number(value: int) -> Values:
    """A number as a value of DynamoDB's."""
    return {"N": str(value)}


def codes(name: str, statuses: Collection[Status]) -> Values:
    """Statuses as values, by names to compare a status with."""
    return {f":{name}{i}": code(status) for i, status in enumerate(sorted(statuses))}


LIVE_CODES: Final = codes("live", LIVE)
STOPPED_CODES: Final = codes("stopped", STOPPED)
READABLE: Final = f"{_FORMAT} <= :format"
READABLE_VALUES: Final = {":format": number(RUN_FORMAT)}
EXPECTED: Final = {
    "live": (f"{_STATUS} IN ({', '.join(LIVE_CODES)})", LIVE_CODES),
    "stopped": (f"{_STATUS} IN ({', '.join(STOPPED_CODES)})", STOPPED_CODES),
}
_IS_NEXT: Final = f"{_TOKEN} = :token AND {_COMMIT} = :commit"


@dataclass(frozen=True, slots=True)
class CommitWrite:
    """What a commit does to an item, and on which condition, but for the format."""

    sets: Values
    adds: Values
    removes: tuple[str, ...]
    condition: str
    values: Values
    names: Mapping[str, str]

    def update(self, *removes: str) -> str:
        """The update expression; `removes`: what else goes."""
        return _expression(self.sets, self.adds, (*self.removes, *removes))


def write_of(commit: Commit) -> CommitWrite:
    """What a commit does, in this form."""
    sets: Values = {_COMMIT: number(commit.commit_seq + 1), _JOURNAL: {"B": commit.journal}}
    removes = _removed(commit)
    if commit.status is not KEEP:
        sets[_STATUS] = code(commit.status)
    if commit.ready_at is not KEEP:
        sets[_READY_AT] = number(commit.ready_at)
    if commit.ended_at is not KEEP:
        sets[_ENDED_AT] = number(commit.ended_at)
    if commit.notify_pending:
        sets[_NOTIFY_PENDING] = {"BOOL": True}
    if commit.format > BASE_RUN_FORMAT:  # no newer one is stored: a condition says so
        sets[_FORMAT] = number(commit.format)
    if commit.wake_at is not None and commit.wake_at is not KEEP:
        sets[_WAKE_AT] = number(commit.wake_at)
    if commit.wants is not KEEP:
        sets |= {_WANTS: {"S": commit.wants}, _WANTS_SEQ: number(commit.commit_seq + 1)}
    adds = {_OVERFLOW_COUNT: number(-len(commit.taken))} if commit.taken else {}
    names: dict[str, str] = {}
    for place, message_id in enumerate(dict.fromkeys(commit.consumed)):
        names |= {f"#m{place}": message_id, f"#p{place}": InboxAttribute.place_of(message_id)}
    removes += [f"{_INBOX}.{name}" for name in names]
    expected, statuses = EXPECTED[commit.expect]
    condition = f"{expected} AND {_IS_NEXT}"
    values = {**statuses, ":token": {"S": commit.lease_token}, ":commit": number(commit.commit_seq)}
    if commit.inbox_seq is not UNCHECKED:
        condition = f"{condition} AND {_REVISION} = :revision"
        values[":revision"] = number(commit.inbox_seq)
    values |= {f":{name}": value for name, value in (sets | adds).items()}
    return CommitWrite(sets, adds, tuple(removes), condition, values, names)


def _removed(commit: Commit) -> list[str]:
    """What goes with a commit, beside the messages that it consumed."""
    return [
        *((_TOKEN, _UNTIL, _CLAIMED_AT, _ALONE) if commit.release else ()),
        *((_LOST,) if commit.progress else ()),
        *((_ALONE_LOSSES,) if commit.recorded else ()),
    ]


def _expression(sets: Iterable[str], adds: Iterable[str], removes: Iterable[str]) -> str:
    """Each name is set to the value called like it, or goes up by that."""
    text = "SET " + ", ".join(f"{name} = :{name}" for name in sets)
    for name in adds:
        text += f" ADD {name} :{name}"
    return f"{text} REMOVE {', '.join(removes)}" if removes else text
