"""Heads to test with, and what a write did to them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind
from stepwell_engine.core.run.status import LIVE, Status
from stepwell_engine.ports import Commit, Delivered, Done, Due, Refused, Runs, Written

NOW = 1_800_000_000_000
UNTIL = NOW + 60_000
RUN = "01890000-0000-7000-8000-000000000001"
TOKEN = "aaaaaaaaaaaa"
OTHER = "bbbbbbbbbbbb"

LIVE_STATUSES = sorted(LIVE)
ENDED_STATUSES = sorted(set(Status) - LIVE)

COMMIT = Commit(RUN, TOKEN, 0, b"moved")


def a_head(run_id: str = RUN, **fields: Any) -> Head:
    """A run that waits to be claimed, with some fields changed."""
    fresh = Head(run_id, "shop", "order", 3, NOW, ready_at=NOW, wake_at=NOW, journal=b"start")
    return replace(fresh, **fields)


def held(**fields: Any) -> Head:
    """A run whose lease TOKEN holds."""
    return a_head(
        **{
            "lease_token": TOKEN,
            "lease_expires_at": UNTIL,
            "claimed_at": NOW,
            "wake_at": UNTIL,
            **fields,
        }
    )


def some_message(name: str = "paid") -> InboxMessage:
    """A message with a small body."""
    return InboxMessage(MessageKind.SIGNAL, name, NOW, b'{"amount":49}')


def inbox(ids: Iterable[object]) -> MappingProxyType[str, InboxMessage]:
    """An inbox with one message per id."""
    return MappingProxyType({str(number): some_message() for number in ids})


def put(runs: Runs, head: Head) -> Head:
    """Store a head."""
    assert runs.create(head) == Done(head)
    return head


def check_done(runs: Runs, written: Written, after: Head) -> None:
    """The write happened, and this is the head since."""
    assert written == Done(after)
    assert runs.get(after.run_id) == after


def check_delivered(
    runs: Runs,
    delivered: Delivered | Refused,
    after: Head | None,
    at: int = NOW,
    wakes: bool = True,
) -> None:
    """The message is or was there since `at`, and this is the head now."""
    assert delivered == Delivered(after, at, wakes)
    assert after is None or runs.get(after.run_id) == after


def check_refused(runs: Runs, write: Callable[[], Written | Delivered], run_id: str = RUN) -> None:
    """The write is refused with the head as it stands, and changes nothing."""
    before = runs.get(run_id)
    assert write() == Refused(before)
    assert runs.get(run_id) == before


def pages(store: Runs, before: int, size: int = 100) -> Iterator[Due]:
    """All due heads, page by page."""
    cursor: str | None = None
    while True:
        found, cursor = store.due(before, cursor, size)
        yield from found
        if cursor is None:
            return
