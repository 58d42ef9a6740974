"""What is due, and the runs of a workflow, page by page."""

from dataclasses import replace

import pytest

from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.ports import Due, Runs
from tests.contract.heads import (
    COMMIT,
    NOW,
    RUN,
    TOKEN,
    UNTIL,
    a_head,
    held,
    inbox,
    pages,
    put,
    some_message,
)
from tests.contract.homes import Home


def put_due(runs: Runs, *entries: tuple[str, int | None]) -> None:
    for run_id, wake_at in entries:
        put(runs, a_head(run_id, wake_at=wake_at))


def test_nothing_is_due_in_an_empty_store(runs: Runs) -> None:
    assert runs.due(NOW, None, 10) == ([], None)


def test_what_is_to_be_woken_by_then_is_due(runs: Runs) -> None:
    put_due(runs, ("a", NOW - 1), ("b", NOW), ("c", NOW + 1), ("d", None))
    expected = [Due(about_run("a", "shop"), NOW - 1), Due(about_run("b", "shop"), NOW)]
    assert sorted(pages(runs, NOW), key=lambda due: due.subject.id) == expected


def test_there_is_no_lower_bound(runs: Runs) -> None:
    put_due(runs, ("a", 0), ("b", 1))
    assert {due.subject.id for due in pages(runs, NOW)} == {"a", "b"}


def test_every_status_is_due(runs: Runs) -> None:
    for status in Status:
        put(runs, a_head(status.value, status=status))
    assert {due.subject.id for due in pages(runs, NOW)} == {status.value for status in Status}


def test_runs_of_every_project_are_due(runs: Runs) -> None:
    put(runs, a_head("a"))
    put(runs, a_head("b", project="bank"))
    assert {(due.subject.id, due.subject.project) for due in pages(runs, NOW)} == {
        ("a", "shop"),
        ("b", "bank"),
    }


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 100])
def test_pages_cover_everything_once_whatever_their_size(runs: Runs, size: int) -> None:
    wanted = [("b", 5), ("a", 5), ("c", 5), ("d", 4), ("e", 6), ("f", 5)]
    put_due(runs, *wanted)
    found = list(pages(runs, NOW, size))
    assert sorted((due.subject.id, due.wake_at) for due in found) == sorted(wanted)


def test_one_machine_tells_what_is_due_earliest_first(local: Home) -> None:
    put_due(local.runs, ("b", 5), ("a", 5), ("d", 4), ("e", 6), ("c", 40))
    assert [due.subject.id for due in pages(local.runs, NOW, 2)] == ["d", "a", "b", "e", "c"]


def test_a_page_is_no_longer_than_asked(runs: Runs) -> None:
    put_due(runs, *((str(number), number) for number in range(5)))
    first, cursor = runs.due(NOW, None, 3)
    second, end = runs.due(NOW, cursor, 3)
    assert (len(first), len(second), end) == (3, 2, None)


def test_a_run_that_moved_between_two_pages_hides_no_other(runs: Runs) -> None:
    put_due(runs, ("a", 1), ("b", 2), ("c", 3))
    first, cursor = runs.due(NOW, None, 1)
    runs.cancel(first[0].subject.id, NOW)
    rest, _ = runs.due(NOW, cursor, 10)
    assert {due.subject.id for due in rest} | {first[0].subject.id} == {"a", "b", "c"}


def test_writes_move_a_run_in_and_out_of_what_is_due(runs: Runs) -> None:
    put(runs, a_head(wake_at=UNTIL, commit_seq=1))
    assert runs.due(NOW, None, 10) == ([], None)
    runs.deliver(RUN, "m", some_message(), NOW - 7, None)
    assert list(pages(runs, NOW)) == [Due(about_run(RUN, "shop"), NOW - 7)]
    runs.claim(RUN, TOKEN, NOW, UNTIL)
    runs.commit(replace(COMMIT, commit_seq=1, wake_at=UNTIL))
    assert list(pages(runs, NOW)) == []
    assert list(pages(runs, UNTIL)) == [Due(about_run(RUN, "shop"), UNTIL)]


def test_a_list_is_newest_first(runs: Runs) -> None:
    heads = [put(runs, a_head(run_id)) for run_id in ("b", "a", "d", "c")]
    expected = sorted(heads, key=lambda head: head.run_id, reverse=True)
    assert runs.list("shop", "order", None, 10, None) == expected


def test_a_list_goes_on_below_an_id(runs: Runs) -> None:
    for run_id in "abcde":
        put(runs, a_head(run_id))
    first = runs.list("shop", "order", None, 2, None)
    second = runs.list("shop", "order", first[-1].run_id, 2, None)
    third = runs.list("shop", "order", second[-1].run_id, 2, None)
    assert [[h.run_id for h in page] for page in (first, second, third)] == [
        ["e", "d"],
        ["c", "b"],
        ["a"],
    ]
    assert runs.list("shop", "order", "a", 2, None) == []


def test_a_list_is_of_one_workflow_of_one_project(runs: Runs) -> None:
    mine = put(runs, a_head())
    put(runs, a_head("b", workflow="refund"))
    put(runs, a_head("c", project="bank"))
    assert runs.list("shop", "order", None, 10, None) == [mine]


@pytest.mark.parametrize("status", [*Status])
def test_a_list_can_be_of_one_stored_status(runs: Runs, status: Status) -> None:
    heads = {one: put(runs, a_head(one.value, status=one)) for one in Status}
    assert runs.list("shop", "order", None, 10, status) == [heads[status]]


def test_a_page_of_one_status_is_full_if_there_are_enough(runs: Runs) -> None:
    for number in range(9):
        status = Status.FAILED if number % 3 == 0 else Status.PENDING
        put(runs, a_head(str(number), status=status))
    first = runs.list("shop", "order", None, 2, Status.FAILED)
    rest = runs.list("shop", "order", first[-1].run_id, 2, Status.FAILED)
    assert [head.run_id for head in (*first, *rest)] == ["6", "3", "0"]


def test_a_list_shows_whole_heads(runs: Runs) -> None:
    head = put(runs, held(inbox=inbox([1, 2]), input=b"{}", idempotency_key="k", test=True))
    assert runs.list("shop", "order", None, 10, None) == [head]
