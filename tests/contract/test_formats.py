"""A head that a newer version wrote: nobody here reads, lists, wakes or changes it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from stepwell_engine.core.run.status import Status
from stepwell_engine.errors import NewerFormat
from stepwell_engine.limits import BASE_RUN_FORMAT
from stepwell_engine.limits import RUN_FORMAT as FORMAT
from stepwell_engine.ports import Commit, Runs
from tests.contract.heads import (
    COMMIT,
    NOW,
    OTHER,
    RUN,
    TOKEN,
    UNTIL,
    a_head,
    check_done,
    held,
    pages,
    put,
    some_message,
)
from tests.contract.homes import Home

CALLS: dict[str, Callable[[Runs], object]] = {
    "get": lambda runs: runs.get(RUN),
    "by_key": lambda runs: runs.by_key("shop", "order", "k"),
    "create": lambda runs: runs.create(a_head()),
    "create with its key": lambda runs: runs.create(a_head("other", idempotency_key="k")),
    "claim": lambda runs: runs.claim(RUN, OTHER, UNTIL + 10_000, UNTIL + 70_000),
    "claim again": lambda runs: runs.claim(RUN, TOKEN, NOW, UNTIL),
    "extend": lambda runs: runs.extend(RUN, TOKEN, UNTIL + 1, UNTIL + 1),
    "commit": lambda runs: runs.commit(COMMIT),
    "deliver": lambda runs: runs.deliver(RUN, "m", some_message(), NOW, None),
    "deliver with a key": lambda runs: runs.deliver(RUN, "m", some_message(), NOW, None, "k"),
    "cancel": lambda runs: runs.cancel(RUN, NOW),
    "mark_notified": lambda runs: runs.mark_notified(RUN),
}
CALLS_WHEN_CANCELLED: dict[str, Callable[[Runs], object]] = {
    "commit": lambda runs: runs.commit(Commit(RUN, TOKEN, 0, b"moved", "stopped")),
    "close": lambda runs: runs.close(RUN, TOKEN, 0, b"settled"),
}


def check_untouched(home: Home, call: Callable[[Runs], object]) -> None:
    before = home.stored(RUN)
    with pytest.raises(NewerFormat, match="upgrade") as caught:
        call(home.runs)
    assert (caught.value.found, caught.value.known) == (FORMAT + 1, FORMAT)
    assert home.stored(RUN) == before


@pytest.mark.parametrize("name", CALLS)
def test_a_newer_head_is_left_alone(home: Home, name: str) -> None:
    put(home.runs, held(format=FORMAT + 1, idempotency_key="k", notify_pending=True))
    check_untouched(home, CALLS[name])


@pytest.mark.parametrize("name", CALLS_WHEN_CANCELLED)
def test_a_newer_cancelled_head_is_left_alone(home: Home, name: str) -> None:
    put(home.runs, held(format=FORMAT + 1, status=Status.CANCELLED))
    check_untouched(home, CALLS_WHEN_CANCELLED[name])


@pytest.mark.parametrize("size", [1, 2, 10])
def test_newer_heads_are_not_due_and_hide_no_other(home: Home, size: int) -> None:
    for number in range(6):
        put(home.runs, a_head(str(number), wake_at=number, format=FORMAT + number % 2))
    assert sorted(due.subject.id for due in pages(home.runs, NOW, size)) == ["0", "2", "4"]


def test_newer_heads_are_not_listed_and_hide_no_other(home: Home) -> None:
    for number in range(6):
        put(home.runs, a_head(str(number), format=FORMAT + number % 2))
    listed = home.runs.list("shop", "order", None, 3, None)
    assert [head.run_id for head in listed] == ["4", "2", "0"]


def test_an_older_head_is_read(runs: Runs) -> None:
    head = put(runs, a_head(format=FORMAT - 1))
    assert runs.get(RUN) == head


def test_a_commit_raises_the_format_and_never_lowers_it(runs: Runs) -> None:
    head = put(runs, held(format=BASE_RUN_FORMAT))
    raised = replace(head, commit_seq=1, journal=b"moved", format=FORMAT)
    check_done(runs, runs.commit(replace(COMMIT, format=FORMAT)), raised)
    kept = replace(raised, commit_seq=2)
    check_done(runs, runs.commit(replace(COMMIT, commit_seq=1)), kept)
