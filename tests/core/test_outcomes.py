"""What an outcome of a kind of its own does to the journal."""

from dataclasses import replace

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.decide import decide
from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.settle import settle, settle_cancelled
from stepwell_engine.core.run.attempt import (
    Attempt,
    Deferred,
    Failed,
    Outcome,
    Succeeded,
    WorkerLost,
)
from stepwell_engine.core.run.decision import Decision, Park, StartAttempts
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.journal_codec import JournalCodec
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus

NOW = 1_700_000_000_000
STEP = Step(0, "a", Kind.FUNCTION, "f", timeout=30_000)
ONE = Definition("p", "w", 1, (STEP,))
HEAD = Head("run", "p", "w", 1, NOW)
SHORT = Deferred("too many open files")


def attempts(journal: Journal, now: int = NOW, head: Head = HEAD) -> tuple[Attempt, ...]:
    return attempts_of(decide(ONE, head, journal, {}, now))


def attempts_of(decision: Decision) -> tuple[Attempt, ...]:
    assert isinstance(decision.next, StartAttempts)
    return decision.next.attempts


def test_an_attempt_that_did_not_happen_costs_none_and_is_due_again_soon() -> None:
    (attempt,) = attempts(Journal())
    journal = settle(ONE, Journal(), attempt, SHORT, NOW, NOW + 5)
    assert journal.attempts == 0
    assert journal.open == (
        Record("a", StepStatus.RETRYING, 0, None, error="too many open files", next_at=NOW + 2_005),
    )
    parked = decide(ONE, HEAD, journal, {}, NOW + 2_004)
    assert parked.next == Park(Status.PENDING, NOW + 2_005)
    assert attempts(journal, NOW + 2_005) == (attempt,)


def test_an_attempt_may_be_put_off_for_ever_at_the_same_pause() -> None:
    journal, now = Journal(), NOW
    for _ in range(30):
        (attempt,) = attempts(journal, now)
        journal = settle(ONE, journal, attempt, SHORT, now, now)
        assert journal.open[0].next_at == now + 2_000
        now += 2_000
    done = settle(ONE, journal, attempt, Succeeded(), now, now + 7)
    assert done.records == (Record("a", StepStatus.SUCCEEDED, 1, now, now + 7),)


def test_attempts_that_were_counted_before_stay_so() -> None:
    (attempt,) = attempts(Journal())
    failed = settle(ONE, Journal(), attempt, Failed("no", "timeout"), NOW, NOW)
    (second,) = attempts(failed, NOW + 2_000)
    (record,) = settle(ONE, failed, second, SHORT, NOW + 2_000, NOW + 2_000).open
    assert (record.attempt, record.started_at, record.code) == (1, NOW, None)


def test_settling_an_attempt_that_did_not_happen_again_changes_nothing() -> None:
    (attempt,) = attempts(Journal())
    once = settle(ONE, Journal(), attempt, SHORT, NOW, NOW)
    assert settle(ONE, once, attempt, SHORT, NOW, NOW + 9) is once


def test_a_cancelled_run_keeps_nothing_of_an_attempt_that_did_not_happen() -> None:
    (attempt,) = attempts(Journal())
    journal = Journal()
    assert settle_cancelled(ONE, journal, attempt, SHORT, NOW, NOW, NOW) is journal


@pytest.mark.parametrize("outcome", [Failed("a\ud800b"), Deferred("a\ud800b")])
def test_words_that_are_no_unicode_are_kept_readable(outcome: Failed | Deferred) -> None:
    (attempt,) = attempts(Journal())
    journal = settle(ONE, Journal(), attempt, outcome, NOW, NOW)
    assert journal.open[0].error == "a?b"
    codec = JournalCodec(NOW, ONE.keys)
    assert codec.decode(codec.encode(journal)) == journal
    while journal.failure is None:
        (attempt,) = attempts(journal, NOW + limits.HOUR)
        journal = settle(ONE, journal, attempt, Failed("\ud800"), NOW, NOW)
    assert journal.failure.message == "?"


def test_a_lost_attempt_is_counted_and_its_beginning_is_not_known() -> None:
    lost = replace(HEAD, lost_leases=8, alone_losses=limits.MAX_ALONE_LOSSES)
    (record,) = decide(ONE, lost, Journal(), {}, NOW).journal.records
    assert (record.code, record.attempt, record.started_at) == ("worker_lost", 1, None)
    assert record.finished_at == NOW
    (attempt,) = attempts(Journal())
    failed = settle(ONE, Journal(), attempt, Failed("no"), NOW, NOW)
    (record,) = decide(ONE, lost, failed, {}, NOW + 2_000).journal.records
    assert (record.code, record.attempt, record.started_at) == ("worker_lost", 2, NOW)


def test_the_child_that_fails_of_its_lost_workers_is_one_that_was_in_flight() -> None:
    children = (replace(STEP, ordinal=1, key="b"), replace(STEP, ordinal=2, key="c"))
    steps = (
        Step(0, "f", Kind.FANOUT, children=children),
        Step(3, "j", Kind.JOIN),
    )
    definition = Definition("p", "w", 1, steps)
    backing_off = Record("b", StepStatus.RETRYING, 1, NOW, next_at=NOW + 9, error="no")
    journal = Journal(1, open=(backing_off, Record("j", StepStatus.WAITING, 1, NOW)))
    lost = replace(HEAD, lost_leases=8, alone_losses=limits.MAX_ALONE_LOSSES)
    journal = decide(definition, lost, journal, {}, NOW).journal
    assert [one.key for one in journal.records if one.code == "worker_lost"] == ["c"]


def test_the_losses_of_a_step_that_is_given_up_count_against_nothing_else() -> None:
    undo = replace(STEP, ordinal=0, key="compensate:a")
    definition = Definition(
        "p", "w", 1, (replace(STEP, ordinal=0, key="a", compensate=undo), replace(STEP, key="b"))
    )
    before = Journal(1, records=(Record("a", StepStatus.SUCCEEDED, 1, NOW, NOW),))
    lost = replace(HEAD, lost_leases=8, alone_losses=limits.MAX_ALONE_LOSSES)
    decision = decide(definition, lost, before, {}, NOW)
    assert [one.code for one in decision.journal.records] == [None, "worker_lost"]
    assert isinstance(decision.next, StartAttempts)
    assert [one.step for one in decision.next.attempts] == ["compensate:a"]


def test_an_attempt_that_ends_its_process_is_tried_again_and_given_up_at_last() -> None:
    journal, now = Journal(), NOW
    for losses in range(1, limits.MAX_ALONE_LOSSES):
        (attempt,) = attempts(journal, now)
        journal = settle(ONE, journal, attempt, WorkerLost("killed by signal 9"), now, now)
        (record,) = journal.open
        assert (record.attempt, record.losses, record.error) == (0, losses, "killed by signal 9")
        assert settle(ONE, journal, attempt, WorkerLost("again"), now, now) is journal
        now = record.next_at or 0
    (attempt,) = attempts(journal, now)
    journal = settle(ONE, journal, attempt, WorkerLost("killed by signal 9"), now, now)
    (record,) = journal.records
    assert (record.code, record.attempt, journal.attempts) == ("worker_lost", 1, 1)
    assert "lost 5 times" in (record.error or "")


@pytest.mark.parametrize("outcome", [Failed("no"), SHORT])
def test_only_a_recorded_outcome_clears_the_losses_of_an_attempt(outcome: Outcome) -> None:
    (attempt,) = attempts(Journal())
    journal = settle(ONE, Journal(), attempt, WorkerLost("signal 9"), NOW, NOW)
    later = NOW + limits.MINUTE
    (attempt,) = attempts(journal, later)
    (record,) = settle(ONE, journal, attempt, outcome, later, later).open
    assert record.losses == (1 if isinstance(outcome, Deferred) else 0)


@pytest.mark.parametrize(
    ("more", "pause"), [(0, 10_000), (1, 20_000), (5, 320_000), (6, 600_000), (99, 600_000)]
)
def test_what_may_end_its_host_waits_longer_and_longer(more: int, pause: int) -> None:
    lost = replace(HEAD, lost_leases=limits.SUSPECT_LOST_LEASES + limits.HOSTS_LOST + more)
    decision = decide(ONE, lost, Journal(), {}, NOW)
    assert decision.next == Park(Status.PENDING, NOW + pause)
    (attempt,) = attempts_of(decide(ONE, lost, decision.journal, {}, NOW + pause))
    assert attempt.number == 1
    again = replace(lost, lost_leases=lost.lost_leases + 1)
    assert isinstance(decide(ONE, again, decision.journal, {}, NOW + pause).next, Park)


def test_one_host_less_and_nothing_waits() -> None:
    lost = replace(HEAD, lost_leases=limits.SUSPECT_LOST_LEASES + limits.HOSTS_LOST - 1)
    assert attempts_of(decide(ONE, lost, Journal(), {}, NOW))
