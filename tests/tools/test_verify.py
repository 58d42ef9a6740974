"""The checks of the crash script find what they are there to find, in forged evidence."""

from dataclasses import replace
from typing import Any

import pytest

from tools.crash.evidence import Evidence, Execution, How, Kill, Sighting
from tools.crash.verify import interrupted, repeats, verify

RUN = "run-1"
START = 1_800_000_000_000  # 2027-01-15T08:00:00Z


def test_consistent_evidence_has_no_violations() -> None:
    assert _violated(_evidence()) == {}
    assert {verdict.name for verdict in verify(_evidence()) if not verdict.cases} == {
        "what ends its process fails after 3 hosts and 5 processes",
        "a host ends by itself only of poison",
        "a host that is told to stop stops",
    }


def test_a_repeat_that_a_kill_explains_is_no_violation() -> None:
    evidence = _evidence()
    assert repeats(evidence) == 1
    assert interrupted(evidence) == 1


def test_an_execution_without_an_end_is_counted_for_the_kill_that_hit_it_alone() -> None:
    evidence = _evidence()
    later = replace(evidence, kills=(*evidence.kills, Kill(START + 800, START + 805)))
    assert interrupted(later) == 1


def test_an_execution_after_the_record_is_found() -> None:
    double = Execution(f"{RUN}:charge", START + 900, START + 910)
    assert set(_violated(_with_executions(double))) == {
        "nothing runs again after it was recorded",
        "a step runs again only if its host was lost",
    }


def test_a_second_execution_without_a_kill_is_found() -> None:
    double = Execution(f"{RUN}:charge", START + 12, START + 15)
    assert set(_violated(_with_executions(double))) == {
        "a step runs again only if its host was lost"
    }


def test_an_execution_after_a_record_that_was_later_replaced_is_found() -> None:
    """The record at the end is consistent with the log; the one that was shown before is not."""
    evidence = _evidence()
    early = Sighting(RUN, _row("work", "function", 1, 250, 290, output={}))
    violated = _violated(replace(evidence, sightings=(early,)))
    assert set(violated) == {
        "nothing runs again after it was recorded",
        "a recorded outcome never changes",
    }


@pytest.mark.parametrize(
    ("ended", "refused", "found"),
    [
        (300 - 4_001, (), True),
        (300 - 4_000, (), False),
        (None, (), False),
        (300 - 9_000, (-9_000, 300 - 4_000), True),
        (300 - 9_000, (-9_000, 301 - 4_000), False),  # so its outcome was in hand
    ],
)
def test_an_outcome_that_was_lost_although_the_store_took_it_is_found(
    ended: int | None, refused: tuple[int, ...], found: bool
) -> None:
    evidence = _evidence()
    at = None if ended is None else START + ended
    first = Execution(f"{RUN}:work", START - 9_500, at)
    executions = [one for one in evidence.executions if one.ended is not None]
    refusals = [(START + refused[0], START + refused[1])] if refused else []
    evidence = replace(evidence, executions=(first, *executions), refusals=refusals)
    violated = "a step runs again only if its host was lost" in _violated(evidence)
    assert violated == found


def test_a_repeat_after_an_orderly_stop_is_found() -> None:
    evidence = _evidence()
    stopped = (replace(evidence.kills[0], how=How.STOPPED),)
    assert set(_violated(replace(evidence, kills=stopped))) == {
        "a step runs again only if its host was lost"
    }
    hurried = (replace(evidence.kills[0], how=How.HURRIED),)
    assert _violated(replace(evidence, kills=hurried)) == {}


def test_two_repeats_in_one_life_are_not_explained_by_its_kill() -> None:
    repeated = Execution(f"{RUN}:work", START + 260, START + 265)
    assert set(_violated(_with_executions(repeated))) == {
        "a step runs again only if its host was lost"
    }


def test_an_execution_before_the_step_ahead_was_recorded_is_found() -> None:
    evidence = _evidence()
    early = tuple(
        replace(one, began=START + 15) if one.effect == f"{RUN}:work" else one
        for one in evidence.executions
    )
    assert "steps run one after the other" in _violated(replace(evidence, executions=early))


def test_a_missing_execution_is_found() -> None:
    evidence = _evidence()
    fewer = tuple(one for one in evidence.executions if one.effect != f"{RUN}:charge")
    assert set(_violated(replace(evidence, executions=fewer))) == {
        "every recorded attempt was executed"
    }


def test_an_execution_of_a_step_that_was_not_reached_is_found() -> None:
    stranger = Execution(f"{RUN}:never", START + 900)
    assert set(_violated(_with_executions(stranger))) == {
        "every execution is of a step that its run reached"
    }


def test_a_sibling_that_was_cancelled_while_it_backed_off_has_been_executed() -> None:
    evidence = _evidence()
    row = _row("sibling", "webhook", 1, 10, 465, output=None) | {"status": "cancelled"}
    run = evidence.runs[RUN]
    cancelled = {RUN: run | {"steps": [row, *run["steps"]]}}
    once = Execution(f"{RUN}:sibling", START + 12, START + 15)
    evidence = replace(evidence, runs=cancelled, executions=(*evidence.executions, once))
    assert "every execution is of a step that its run reached" not in _violated(evidence)
    again = [replace(once, began=START + at, ended=None) for at in (350, 360)]
    repeated = replace(evidence, executions=(*evidence.executions, *again))
    assert "a step runs again only if its host was lost" in _violated(repeated)


def test_a_missing_run_is_found() -> None:
    evidence = _evidence()
    gone = replace(evidence, runs={}, listed=(), executions=(), messages=(), sightings=())
    assert set(_violated(gone)) == {"every run ends as it should", "one idempotency key, one run"}


def test_a_start_that_was_never_answered_is_found() -> None:
    unanswered = replace(_evidence(), expected={"key-1": "succeeded", "key-2": "succeeded"})
    assert set(_violated(unanswered)) == {
        "every run ends as it should",
        "one idempotency key, one run",
    }


@pytest.mark.parametrize("status", ["failed", "pending", "running"])
def test_a_run_that_ended_otherwise_or_not_at_all_is_found(status: str) -> None:
    evidence = _evidence()
    other = {RUN: evidence.runs[RUN] | {"status": status}}
    assert "every run ends as it should" in _violated(replace(evidence, runs=other))


def test_a_second_run_for_a_key_is_found() -> None:
    evidence = _evidence()
    second = replace(evidence, answers={"key-1": (RUN, "run-2")}, listed=(RUN, "run-2"))
    assert "one idempotency key, one run" in _violated(second)


@pytest.mark.parametrize("listed", [(), (RUN, RUN), (RUN, "run-9")])
def test_a_list_that_does_not_match_the_starts_is_found(listed: tuple[str, ...]) -> None:
    assert set(_violated(replace(_evidence(), listed=listed))) == {"one idempotency key, one run"}


def test_a_recorded_message_that_is_not_in_the_queue_is_found() -> None:
    assert set(_violated(replace(_evidence(), messages=()))) == {"every message is accounted for"}


def test_a_message_that_no_kill_explains_is_found() -> None:
    evidence = _evidence()
    later = {"id": 8, "sent_at": _iso(700)}
    violated = _violated(replace(evidence, messages=(*evidence.messages, later)))
    assert set(violated) == {"every message is accounted for"}


def test_a_message_sent_right_before_a_kill_and_not_recorded_is_no_violation() -> None:
    evidence = _evidence()
    first = {"id": 6, "sent_at": _iso(455)}
    killed = (*evidence.kills, Kill(START + 456, START + 458))
    assert _violated(replace(evidence, messages=(first, *evidence.messages), kills=killed)) == {}


def test_two_messages_where_one_kill_hit_one_run_are_found() -> None:
    evidence = _evidence()
    first, second = {"id": 5, "sent_at": _iso(454)}, {"id": 6, "sent_at": _iso(455)}
    killed = (*evidence.kills, Kill(START + 456, START + 458))
    violated = _violated(
        replace(evidence, messages=(first, second, *evidence.messages), kills=killed)
    )
    assert set(violated) == {"every message is accounted for"}


def test_one_message_recorded_by_two_runs_is_found() -> None:
    evidence = _evidence()
    twin = evidence.runs[RUN] | {"id": "run-2", "steps": evidence.runs[RUN]["steps"][-1:]}
    both = {RUN: evidence.runs[RUN], "run-2": twin}
    assert set(_violated(replace(evidence, runs=both))) == {"every message is accounted for"}


def _violated(evidence: Evidence) -> dict[str, tuple[str, ...]]:
    return {verdict.name: verdict.violations for verdict in verify(evidence) if verdict.violations}


def _evidence() -> Evidence:
    """One run: `charge` once, `work` interrupted by the kill and done again, one message."""
    rows = [
        _row("charge", "webhook", 1, 10, 20, output={"delivered": True}),
        _row("work", "function", 1, 400, 450, output={}),
        _row("mail", "enqueue", 1, 452, 460, output={"msg_id": 7}),
    ]
    run = {"id": RUN, "status": "succeeded", "last_error": None, "steps": rows}
    return Evidence(
        expected={"key-1": "succeeded"},
        answers={"key-1": (RUN, RUN)},
        runs={RUN: run},
        listed=(RUN,),
        executions=(
            Execution(f"{RUN}:charge", START + 11, START + 18),
            Execution(f"{RUN}:work", START + 270),
            Execution(f"{RUN}:work", START + 401, START + 449),
        ),
        kills=(Kill(START + 300, START + 305),),
        sightings=(Sighting(RUN, rows[0]),),
        messages=({"id": 7, "sent_at": _iso(455)},),
    )


def _with_executions(*more: Execution) -> Evidence:
    evidence = _evidence()
    return replace(evidence, executions=(*evidence.executions, *more))


def _row(
    key: str, kind: str, attempt: int, started: int, finished: int, output: Any
) -> dict[str, Any]:
    return {
        "key": key,
        "kind": kind,
        "status": "succeeded",
        "attempt": attempt,
        "started_at": _iso(started),
        "finished_at": _iso(finished),
        "output": output,
    }


def _iso(at: int) -> str:
    """A time in ms after START (less than a second)."""
    return f"2027-01-15T08:00:00.{at:03}Z"
