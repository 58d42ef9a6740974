"""Committing a step: each condition, each field, and the write repeated."""

from dataclasses import replace

import pytest

from stepwell_engine.core.run.head import Blob
from stepwell_engine.core.run.status import STOPPED, Status
from stepwell_engine.ports import Commit, Done, Refused, Runs
from tests.contract.heads import (
    COMMIT,
    ENDED_STATUSES,
    LIVE_STATUSES,
    NOW,
    OTHER,
    RUN,
    TOKEN,
    UNTIL,
    a_head,
    check_done,
    check_refused,
    held,
    inbox,
    pages,
    put,
    some_message,
)

OUTCOME = replace(COMMIT, expect="stopped")


def test_a_bare_commit_moves_the_journal_and_the_number_alone(runs: Runs) -> None:
    head = put(runs, held(inbox_seq=5, lost_leases=2, inbox=inbox([1]), input=b"{}", test=True))
    check_done(runs, runs.commit(COMMIT), replace(head, commit_seq=1, journal=b"moved"))


def test_a_commit_sets_what_it_names(runs: Runs) -> None:
    head = put(runs, held(lost_leases=2, commit_seq=7))
    commit = Commit(
        RUN,
        TOKEN,
        7,
        b"moved",
        status=Status.SLEEPING,
        ready_at=NOW + 10,
        wake_at=NOW + 11,
        ended_at=NOW + 12,
        release=True,
        progress=True,
    )
    after = replace(
        head,
        commit_seq=8,
        journal=b"moved",
        status=Status.SLEEPING,
        ready_at=NOW + 10,
        wake_at=NOW + 11,
        ended_at=NOW + 12,
        lease_token=None,
        lease_expires_at=0,
        claimed_at=0,
        lost_leases=0,
    )
    check_done(runs, runs.commit(commit), after)


@pytest.mark.parametrize("release", [False, True])
def test_only_a_release_gives_the_lease_up(runs: Runs, release: bool) -> None:
    put(runs, held())
    written = runs.commit(replace(COMMIT, release=release))
    lease = (None, 0) if release else (TOKEN, UNTIL)
    assert isinstance(written, Done)
    assert (written.head.lease_token, written.head.lease_expires_at) == lease


@pytest.mark.parametrize(("progress", "lost"), [(False, 3), (True, 0)])
def test_only_progress_forgets_lost_leases(runs: Runs, progress: bool, lost: int) -> None:
    head = put(runs, held(lost_leases=3))
    after = replace(head, commit_seq=1, journal=b"moved", lost_leases=lost)
    check_done(runs, runs.commit(replace(COMMIT, progress=progress)), after)


def test_zero_is_a_time_to_be_set(runs: Runs) -> None:
    head = put(runs, held())
    after = replace(head, commit_seq=1, journal=b"moved", ready_at=0, wake_at=0, ended_at=0)
    check_done(runs, runs.commit(replace(COMMIT, ready_at=0, wake_at=0, ended_at=0)), after)


def test_wake_at_none_removes_it(runs: Runs) -> None:
    head = put(runs, held())
    after = replace(head, commit_seq=1, journal=b"moved", wake_at=None)
    check_done(runs, runs.commit(replace(COMMIT, wake_at=None)), after)
    assert runs.due(UNTIL, None, 10) == ([], None)


@pytest.mark.parametrize("status", LIVE_STATUSES)
def test_a_live_run_takes_a_commit(runs: Runs, status: Status) -> None:
    head = put(runs, held(status=status))
    check_done(runs, runs.commit(COMMIT), replace(head, commit_seq=1, journal=b"moved"))
    check_refused(runs, lambda: runs.commit(replace(OUTCOME, commit_seq=1)))


@pytest.mark.parametrize("status", ENDED_STATUSES)
def test_an_ended_run_refuses_a_commit(runs: Runs, status: Status) -> None:
    put(runs, held(status=status))
    check_refused(runs, lambda: runs.commit(COMMIT))


def test_a_cancelled_run_takes_the_outcome_of_the_step_in_flight(runs: Runs) -> None:
    head = put(runs, held(status=Status.CANCELLED, ended_at=NOW, commit_seq=0))
    after = replace(
        head,
        commit_seq=1,
        journal=b"moved",
        lease_token=None,
        lease_expires_at=0,
        claimed_at=0,
        wake_at=None,
    )
    check_done(runs, runs.commit(replace(OUTCOME, release=True, wake_at=None)), after)


@pytest.mark.parametrize("status", [s for s in ENDED_STATUSES if s not in STOPPED])
def test_a_run_that_ended_otherwise_refuses_an_outcome(runs: Runs, status: Status) -> None:
    put(runs, held(status=status))
    check_refused(runs, lambda: runs.commit(OUTCOME))


@pytest.mark.parametrize("expect", [COMMIT, OUTCOME])
def test_another_token_is_refused(runs: Runs, expect: Commit) -> None:
    status = Status.CANCELLED if expect is OUTCOME else Status.PENDING
    put(runs, held(status=status))
    check_refused(runs, lambda: runs.commit(replace(expect, lease_token=OTHER)))


def test_a_run_without_a_lease_refuses_a_commit(runs: Runs) -> None:
    put(runs, a_head())
    check_refused(runs, lambda: runs.commit(COMMIT))


@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize("expect", [COMMIT, OUTCOME])
def test_another_number_is_refused(runs: Runs, number: int, expect: Commit) -> None:
    status = Status.CANCELLED if expect is OUTCOME else Status.PENDING
    put(runs, held(status=status, commit_seq=3))
    check_refused(runs, lambda: runs.commit(replace(expect, commit_seq=number)))


def test_a_repeated_commit_is_refused_and_shows_that_it_had_succeeded(runs: Runs) -> None:
    put(runs, held(commit_seq=3))
    commit = replace(COMMIT, commit_seq=3)
    assert isinstance(runs.commit(commit), Done)
    again = runs.commit(commit)
    assert isinstance(again, Refused)
    assert again.head is not None
    assert (again.head.lease_token, again.head.commit_seq) == (TOKEN, 4)


def test_a_run_that_does_not_exist_refuses_a_commit(runs: Runs) -> None:
    assert runs.commit(replace(COMMIT, blobs=(Blob("aaaaaaaaaaaa/1", b"x"),))) == Refused(None)


def test_the_lease_need_not_be_in_force_by_any_clock(runs: Runs) -> None:
    head = put(runs, held(lease_expires_at=1))
    check_done(runs, runs.commit(COMMIT), replace(head, commit_seq=1, journal=b"moved"))


def test_the_revision_as_seen_is_accepted(runs: Runs) -> None:
    head = put(runs, held(inbox_seq=4))
    after = replace(head, commit_seq=1, journal=b"moved")
    check_done(runs, runs.commit(replace(COMMIT, inbox_seq=4)), after)


@pytest.mark.parametrize("revision", [0, 3, 5])
def test_another_revision_is_refused(runs: Runs, revision: int) -> None:
    put(runs, held(inbox_seq=4))
    check_refused(runs, lambda: runs.commit(replace(COMMIT, inbox_seq=revision)))


def test_a_new_message_refuses_a_commit_that_saw_none(runs: Runs) -> None:
    put(runs, held())
    runs.deliver(RUN, "m", some_message(), NOW, None)
    check_refused(runs, lambda: runs.commit(replace(COMMIT, inbox_seq=0)))


def test_a_new_message_does_not_refuse_a_commit_that_does_not_mind(runs: Runs) -> None:
    put(runs, held())
    runs.deliver(RUN, "m", some_message(), NOW, None)
    assert isinstance(runs.commit(COMMIT), Done)


def test_a_consumed_message_goes_and_the_rest_stays(runs: Runs) -> None:
    head = put(runs, held(inbox=inbox(range(4)), inbox_seq=4))
    commit = replace(COMMIT, consumed=("1", "3", "never"))
    after = replace(head, commit_seq=1, journal=b"moved", inbox=inbox([0, 2]))
    check_done(runs, runs.commit(commit), after)


def test_the_last_message_can_be_consumed(runs: Runs) -> None:
    head = put(runs, held(inbox=inbox([1])))
    after = replace(head, commit_seq=1, journal=b"moved", inbox={})
    check_done(runs, runs.commit(replace(COMMIT, consumed=("1",))), after)


def test_a_refused_commit_consumes_nothing(runs: Runs) -> None:
    put(runs, held(inbox=inbox([1])))
    check_refused(runs, lambda: runs.commit(replace(COMMIT, commit_seq=1, consumed=("1",))))


def test_a_message_of_another_run_is_not_consumed(runs: Runs) -> None:
    other = put(runs, a_head("other", inbox=inbox([1])))
    put(runs, held(inbox=inbox([1])))
    runs.commit(replace(COMMIT, consumed=("1",)))
    assert runs.get("other") == other


def test_the_end_of_a_child_makes_it_notify(runs: Runs) -> None:
    head = put(runs, held(parent="parent", depth=1))
    end = replace(COMMIT, status=Status.FAILED, wake_at=NOW, release=True, notify_pending=True)
    after = replace(
        head,
        commit_seq=1,
        journal=b"moved",
        status=Status.FAILED,
        wake_at=NOW,
        lease_token=None,
        lease_expires_at=0,
        claimed_at=0,
        notify_pending=True,
    )
    check_done(runs, runs.commit(end), after)
    assert [due.subject.id for due in pages(runs, NOW)] == [RUN]


def test_no_commit_removes_the_wake_at_of_a_run_that_has_to_notify(runs: Runs) -> None:
    head = put(
        runs, held(status=Status.CANCELLED, parent="parent", notify_pending=True, wake_at=NOW)
    )
    outcome = replace(OUTCOME, release=True, wake_at=None)
    after = replace(
        head, commit_seq=1, journal=b"moved", lease_token=None, lease_expires_at=0, claimed_at=0
    )
    check_done(runs, runs.commit(outcome), after)


def test_a_commit_may_move_the_wake_at_of_a_run_that_has_to_notify(runs: Runs) -> None:
    head = put(
        runs, held(status=Status.CANCELLED, parent="parent", notify_pending=True, wake_at=NOW)
    )
    after = replace(head, commit_seq=1, journal=b"moved", wake_at=NOW + 5)
    check_done(runs, runs.commit(replace(OUTCOME, wake_at=NOW + 5)), after)


def test_a_run_that_has_to_notify_keeps_that(runs: Runs) -> None:
    head = put(runs, held(status=Status.CANCELLED, parent="parent", notify_pending=True))
    after = replace(head, commit_seq=1, journal=b"moved")
    check_done(runs, runs.commit(replace(OUTCOME, notify_pending=False)), after)


def test_the_blobs_of_a_commit_are_there_with_it(runs: Runs) -> None:
    put(runs, held())
    blobs = (Blob(f"{TOKEN}/0", b"page"), Blob(f"{TOKEN}/1", b"output"))
    assert isinstance(runs.commit(replace(COMMIT, blobs=blobs)), Done)
    assert [runs.blob(RUN, blob.name) for blob in blobs] == [b"page", b"output"]


def test_a_blob_written_again_by_its_holder_is_replaced(runs: Runs) -> None:
    put(runs, held())
    for number, data in enumerate([b"first", b"second"]):
        runs.commit(replace(COMMIT, commit_seq=number, blobs=(Blob(f"{TOKEN}/0", data),)))
    assert runs.blob(RUN, f"{TOKEN}/0") == b"second"
