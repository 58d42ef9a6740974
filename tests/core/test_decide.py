"""What a run does next, and what an outcome does to it."""

from dataclasses import replace

import pytest

from stepwell_engine import limits
from stepwell_engine.core.declared.decide import decide
from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.settle import close, settle, settle_cancelled
from stepwell_engine.core.run.attempt import Attempt, Failed, Outcome, Succeeded
from stepwell_engine.core.run.decision import Finish, Park, ReadOverflow, StartAttempts
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind, Slot
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.overflow import NOTHING_READ, Taken
from stepwell_engine.core.run.records import Record, Stored
from stepwell_engine.core.run.retry import backoff, pause
from stepwell_engine.core.run.status import Status, StepStatus

NOW = 1_700_000_000_000
HEAD = Head("run-1", "demo", "orders", 1, NOW, lease_token="t", lease_expires_at=NOW + 60_000)


def action(ordinal: int, key: str, kind: Kind = Kind.FUNCTION) -> Step:
    return Step(ordinal, key, kind, "target", max_attempts=3, timeout=30_000)


def definition(*steps: Step) -> Definition:
    return Definition("demo", "orders", 1, steps)


ONE = definition(action(0, "charge"))


def run(journal: Journal, of: Definition = ONE, now: int = NOW) -> Attempt:
    decision = decide(of, HEAD, journal, {}, now)
    assert decision.journal is journal
    assert isinstance(decision.next, StartAttempts)
    (attempt,) = decision.next.attempts
    return attempt


def after(outcome: Outcome, journal: Journal = Journal(), of: Definition = ONE) -> Journal:  # noqa: B008  frozen
    return settle(of, journal, run(journal, of, NOW + 10**9), outcome, NOW, NOW + 50)


def test_the_first_step_is_tried_with_a_stable_effect_id() -> None:
    attempt = run(Journal())
    assert (attempt.idempotency_key, attempt.number, attempt.timeout) == ("run-1:charge", 1, 30_000)


def test_the_effect_id_is_the_same_on_every_attempt() -> None:
    attempt = run(after(Failed("no")), now=NOW + 10_000)
    assert (attempt.idempotency_key, attempt.number) == ("run-1:charge", 2)


@pytest.mark.parametrize("kind", [Kind.WEBHOOK, Kind.SQL, Kind.ENQUEUE, Kind.FUNCTION])
def test_every_action_kind_starts_an_attempt(kind: Kind) -> None:
    assert run(Journal(), definition(action(0, "a", kind))).kind is kind


def test_success_records_the_outcome_and_moves_on_at_once() -> None:
    journal = after(Succeeded(b'{"ok":true}'))
    assert journal.position == 1
    assert journal.records == (
        Record("charge", StepStatus.SUCCEEDED, 1, NOW, NOW + 50, b'{"ok":true}'),
    )
    assert decide(ONE, HEAD, journal, {}, NOW).next == Finish(Status.SUCCEEDED)


def test_a_failed_attempt_backs_off_and_stays_at_its_step() -> None:
    journal = after(Failed("no", "timeout"))
    assert journal.position == 0
    assert journal.open[0].next_at == NOW + 50 + 2_000
    assert journal.open[0].error == "no"
    decision = decide(ONE, HEAD, journal, {}, NOW + 2_049)
    assert decision.next == Park(Status.PENDING, NOW + 2_050)
    assert run(journal, now=NOW + 2_050).number == 2


def test_a_spent_budget_fails_the_step_and_the_run() -> None:
    journal = Journal()
    for _ in range(3):
        journal = after(Failed("no"), journal)
    assert journal.records[-1].status is StepStatus.FAILED
    assert journal.records[-1].attempt == 3
    assert journal.failure is not None
    assert journal.failure.message == "no"
    assert journal.open == ()
    assert decide(ONE, HEAD, journal, {}, NOW).next == Finish(Status.FAILED)


def test_an_error_that_repeating_cannot_help_spends_no_budget() -> None:
    journal = after(Failed("no such queue", "unknown_resource", retryable=False))
    assert journal.records[-1].status is StepStatus.FAILED
    assert journal.records[-1].attempt == 1


def test_success_after_failures_forgets_the_error_but_not_the_attempts() -> None:
    journal = after(Succeeded(), after(Failed("no")))
    assert journal.records[-1].error is None
    assert journal.records[-1].attempt == 2
    assert journal.attempts == 2


def test_settling_the_same_outcome_again_changes_nothing() -> None:
    attempt = run(Journal())
    for outcome in (Succeeded(b"1"), Failed("no")):
        once = settle(ONE, Journal(), attempt, outcome, NOW, NOW)
        assert settle(ONE, once, attempt, outcome, NOW, NOW + 9) is once


@pytest.mark.parametrize(("size", "status"), [(0, "succeeded"), (1, "failed")])
def test_an_output_over_the_limit_fails_the_step_at_once(size: int, status: str) -> None:
    output = b'"' + b"x" * (limits.MAX_OUTPUT - 2 + size) + b'"'
    record = after(Succeeded(output)).records[-1]
    assert record.status == status
    assert record.code == ("output_too_large" if size else None)


def test_backoff_doubles_up_to_an_hour() -> None:
    assert [backoff(n) for n in (1, 2, 3, 11, 12, 13, 20)] == [
        2_000,
        4_000,
        8_000,
        2_048_000,
        limits.HOUR,
        limits.HOUR,
        limits.HOUR,
    ]


def test_retry_after_is_honoured_up_to_the_cap_and_never_shortens() -> None:
    assert pause(1, 10_000) == 10_000
    assert pause(1, 1) == 2_000
    assert pause(1, 99 * limits.DAY) == limits.HOUR


SLEEPY = definition(Step(0, "nap", Kind.SLEEP, sleep_for=5_000), action(1, "b"))


def test_a_sleep_parks_until_its_end_read_from_the_journal() -> None:
    first = decide(SLEEPY, HEAD, Journal(), {}, NOW)
    assert first.next == Park(Status.SLEEPING, NOW + 5_000)
    early = decide(SLEEPY, replace(HEAD, ready_at=0), first.journal, {}, NOW + 4_999)
    assert early.next == Park(Status.SLEEPING, NOW + 5_000)
    assert early.journal is first.journal


def test_a_step_after_a_sleep_is_recorded_as_current_before_it_is_tried() -> None:
    slept = decide(SLEEPY, HEAD, Journal(), {}, NOW).journal
    woken = decide(SLEEPY, HEAD, slept, {}, NOW + 5_000)
    assert isinstance(woken.next, StartAttempts)
    assert woken.journal is not slept
    assert woken.journal.position == 1
    assert woken.journal.records[0].status is StepStatus.SUCCEEDED


@pytest.mark.parametrize(("lost", "fails"), [(4, False), (5, True)])
def test_five_workers_that_were_lost_alone_fail_the_step(lost: int, fails: bool) -> None:
    head = replace(HEAD, lost_leases=limits.SUSPECT_LOST_LEASES + lost, alone_losses=lost)
    decision = decide(ONE, head, Journal(), {}, NOW)
    assert isinstance(decision.next, Finish) is fails
    if fails:
        assert decision.journal.records[0].code == "worker_lost"


@pytest.mark.parametrize(("attempts", "fails"), [(9_999, False), (10_000, True)])
def test_the_step_ceiling_is_a_structural_failure(attempts: int, fails: bool) -> None:
    decision = decide(ONE, HEAD, Journal(attempts=attempts), {}, NOW)
    assert isinstance(decision.next, Finish) is fails
    if fails:
        assert decision.journal.failure is not None
        assert decision.journal.failure.code == "step_ceiling"
        assert decision.journal.records == ()


WAITING = definition(
    Step(0, "w", Kind.WAIT_FOR_SIGNAL, signal="go", timeout=1_000),
    Step(1, "x", Kind.WAIT_FOR_SIGNAL, signal="go", timeout=1_000),
)
OTHER = InboxMessage(MessageKind.SIGNAL, "stop", NOW, b"0")


def test_a_signal_is_consumed_by_one_wait_in_order_of_arrival() -> None:
    message = {
        "a": OTHER,
        "b": InboxMessage(MessageKind.SIGNAL, "go", NOW, b"1"),
        "c": InboxMessage(MessageKind.SIGNAL, "go", NOW, b"2"),
    }
    decision = decide(WAITING, HEAD, Journal(), message, NOW)
    assert decision.consumed == ("b", "c")
    assert [record.output for record in decision.journal.records] == [b"1", b"2"]
    assert decision.next == Finish(Status.SUCCEEDED)


def test_a_large_signal_body_stays_in_its_blob() -> None:
    message = {"a": InboxMessage(MessageKind.SIGNAL, "go", NOW, b"4096", "m.a")}
    decision = decide(WAITING, HEAD, Journal(), message, NOW)
    assert decision.journal.records[0].output == Stored("m.a", 4_096)


def test_a_signal_body_of_unknown_size_counts_as_the_largest() -> None:
    """As they were stored at first."""
    message = {"a": InboxMessage(MessageKind.SIGNAL, "go", NOW, None, "m.a")}
    decision = decide(WAITING, HEAD, Journal(), message, NOW)
    assert decision.journal.records[0].output == Stored("m.a", limits.MAX_SIGNAL_PAYLOAD)


def beside(last: int, count: int) -> Head:
    """A head beside which there are signals."""
    return replace(HEAD, overflow_last=last, overflow_count=count)


def slots(*names: str) -> dict[int, Slot]:
    messages = (InboxMessage(MessageKind.SIGNAL, name, NOW, name.encode()) for name in names)
    return {number: Slot(str(number), one) for number, one in enumerate(messages, 1)}


def test_what_is_in_the_head_is_taken_before_what_is_beside_it() -> None:
    read = NOTHING_READ.read(1, slots("go"))
    inside = {"a": InboxMessage(MessageKind.SIGNAL, "go", NOW, b"1")}
    decision = decide(WAITING, beside(1, 1), Journal(), inside, NOW, overflow=read)
    assert (decision.consumed, decision.taken) == (("a",), (1,))
    assert decision.next == Finish(Status.SUCCEEDED)


def test_what_is_beside_a_head_is_read_before_a_wait_parks_or_expires() -> None:
    head = beside(20, 3)
    for now in (NOW, NOW + 1_000):
        opened = decide(WAITING, HEAD, Journal(), {}, NOW).journal
        assert decide(WAITING, head, opened, {}, now).next == ReadOverflow()
        first = NOTHING_READ.read(16, slots(*("stop",) * 16))
        assert decide(WAITING, head, opened, {}, now, overflow=first).next == ReadOverflow()
        rest = first.read(20, {})
        decision = decide(WAITING, head, opened, {}, now, overflow=rest)
        assert decision.absent
        assert decision.next in (Park(Status.WAITING, NOW + 1_000, "go"), Finish(Status.FAILED))


def test_nothing_is_read_where_nothing_is_pending() -> None:
    parked = Park(Status.WAITING, NOW + 1_000, "go")
    assert decide(WAITING, beside(20, 0), Journal(), {}, NOW).next == parked
    known = Journal(taken=Taken(20))
    assert decide(WAITING, beside(20, 1), known, {}, NOW).next == parked


def test_a_take_leaves_others_and_passes_over_what_is_void() -> None:
    found = slots("stop", "go", "go", "go")
    read = NOTHING_READ.read(4, {**found, 2: replace(found[2], void=True)})
    decision = decide(WAITING, beside(4, 3), Journal(), {}, NOW, overflow=read)
    assert decision.taken == (3, 4)
    assert decision.journal.taken == Taken(0, ((2, 4),))
    again = decide(WAITING, beside(4, 1), decision.journal, {}, NOW, overflow=read)
    assert again.taken == ()


def test_a_wait_expires_counted_from_the_first_park_without_a_retry() -> None:
    parked = decide(WAITING, HEAD, Journal(), {}, NOW)
    assert parked.next == Park(Status.WAITING, NOW + 1_000, "go")
    again = decide(WAITING, HEAD, parked.journal, {"a": OTHER}, NOW + 999)
    assert again.next == parked.next
    expired = decide(WAITING, HEAD, parked.journal, {}, NOW + 1_000)
    assert expired.next == Finish(Status.FAILED)
    assert expired.journal.records[0].code == "wait_timed_out"


def test_a_cancelled_run_records_its_step_in_flight_and_stays_where_it_is() -> None:
    attempt = run(Journal())
    for outcome, status in ((Succeeded(b"1"), "succeeded"), (Failed("no"), "failed")):
        journal = settle_cancelled(ONE, Journal(), attempt, outcome, NOW, NOW + 5, NOW + 5)
        assert journal.position == 0
        assert journal.records[0].status == status
        again = settle_cancelled(ONE, journal, attempt, outcome, NOW, NOW + 9, NOW + 5)
        assert again is journal


@pytest.mark.parametrize(
    ("cancelled_at", "status"), [(NOW + 5, StepStatus.FAILED), (NOW + 6, StepStatus.CANCELLED)]
)
def test_an_attempt_that_failed_before_the_cancel_leaves_its_step_backing_off(
    cancelled_at: int, status: StepStatus
) -> None:
    attempt = run(Journal())
    journal = settle_cancelled(ONE, Journal(), attempt, Failed("no"), NOW, NOW + 5, cancelled_at)
    (record,) = close(ONE, journal, cancelled_at).records
    assert (record.status, record.attempt, record.error) == (status, 1, "no")


def test_a_cancelled_run_whose_worker_is_gone_shows_its_step_as_cancelled() -> None:
    retrying = after(Failed("no"))
    stopped = close(ONE, retrying, NOW + 99)
    assert stopped.records[0].status is StepStatus.CANCELLED
    assert (stopped.records[0].attempt, stopped.open) == (1, ())
