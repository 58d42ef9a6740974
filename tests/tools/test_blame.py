"""The checks of blame in the crash script, in forged evidence of a poisonous fan-out child."""

from dataclasses import replace
from typing import Any

import pytest

from tools.crash.blame import blame
from tools.crash.evidence import Evidence, Execution, How, Kill

RUN = "run-1"
EFFECT = f"{RUN}:poison"
START = 1_800_000_000_000  # 2027-01-15T08:00:00Z
BLAMED = "only what ends its process is blamed"
GUILTY = "what ends its process fails after 3 hosts and 5 processes"
OWN = "a host ends by itself only of poison"
STOPS = "a host that is told to stop stops"


def violated(evidence: Evidence) -> set[str]:
    return {verdict.name for verdict in blame(evidence) if verdict.violations}


def test_three_hosts_and_five_processes_are_as_it_should_be() -> None:
    evidence = forged()
    assert violated(evidence) == set()
    assert all(verdict.cases for verdict in blame(evidence))


def test_losses_that_others_caused_make_a_suspect_too() -> None:
    evidence = forged()
    first, *others = evidence.kills
    shared = replace(first, how=How.KILLED)
    without = tuple(one for one in evidence.executions if one.process != first.process)
    assert violated(replace(evidence, kills=(shared, *others), executions=without)) == set()


@pytest.mark.parametrize("how", [How.STOPPED, How.HURRIED])
def test_a_stop_makes_no_suspect(how: How) -> None:
    evidence = forged()
    first, *others = evidence.kills
    assert GUILTY in violated(replace(evidence, kills=(replace(first, how=how), *others)))


@pytest.mark.parametrize("count", [0, 4, 6])
def test_another_number_of_processes_is_found(count: int) -> None:
    evidence = forged()
    assert violated(replace(evidence, executions=(*together(3), *alone(count)))) == {GUILTY}


def test_a_process_more_is_explained_by_a_host_that_was_lost_with_it() -> None:
    evidence = replace(forged(), executions=(*together(3), *alone(6)))
    killed = Kill(START + 430, START + 431, 1, 9)
    *own, last = evidence.kills
    assert violated(replace(evidence, kills=(*own, killed, last))) == set()
    stopped = replace(killed, how=How.STOPPED)
    assert violated(replace(evidence, kills=(*own, stopped, last))) == {GUILTY}


def test_a_fourth_host_is_found() -> None:
    evidence = replace(forged(), executions=(*together(4), *alone(5)))
    fourth = Kill(START + 390, START + 391, 1, 4, How.ITSELF)
    killed = (*evidence.kills[:3], fourth, *evidence.kills[3:])
    assert violated(replace(evidence, kills=killed)) == {GUILTY}


def test_a_step_that_runs_in_a_host_after_it_ran_alone_is_found() -> None:
    late = Execution(EFFECT, START + 900, process=3)
    evidence = replace(forged(), executions=(*together(2), *alone(5), late))
    assert violated(evidence) == {GUILTY}


def test_an_innocent_step_that_is_blamed_is_found() -> None:
    assert violated(forged(innocent={"status": "failed", "code": "worker_lost", "error": "e"})) == {
        BLAMED
    }


@pytest.mark.parametrize(
    "row", [{"status": "succeeded"}, {"code": "timeout"}, {"status": "cancelled"}]
)
def test_a_poisonous_step_that_ends_otherwise_is_found(row: dict[str, Any]) -> None:
    assert violated(forged(poison=row)) == {GUILTY}


def test_a_host_that_ends_for_no_reason_is_found() -> None:
    evidence = forged()
    own = Kill(START + 950, START + 951, 0, 8, How.ITSELF)
    assert violated(replace(evidence, kills=(*evidence.kills, own))) == {OWN}


@pytest.mark.parametrize(("took", "found"), [(16_000, set()), (16_001, {STOPS})])
def test_a_host_that_does_not_stop_in_time_is_found(took: int, found: set[str]) -> None:
    evidence = forged()
    stopped = Kill(START + 950, START + 950 + took, 0, 8, How.STOPPED)
    assert violated(replace(evidence, kills=(*evidence.kills, stopped))) == found


def together(count: int) -> list[Execution]:
    return [Execution(EFFECT, START + 100 * place, process=place) for place in range(1, count + 1)]


def alone(count: int) -> list[Execution]:
    return [Execution(EFFECT, START + 420 + place, process=100 + place) for place in range(count)]


def forged(
    poison: dict[str, Any] | None = None, innocent: dict[str, Any] | None = None
) -> Evidence:
    """`begin`, then a fan-out of `sibling` and `poison`; it ends hosts 1 to 3. Host 7 stops."""
    rows = [
        row("begin", "webhook", 50),
        row("fan", "fanout", 60),
        row("sibling", "webhook", 120) | {"parent_step_id": "fan"} | (innocent or {}),
        row("poison", "function", 930)
        | {"parent_step_id": "fan", "status": "failed", "code": "worker_lost"}
        | (poison or {}),
    ]
    own = [
        Kill(START + 100 * place, START + 100 * place + 5, 1, place, How.ITSELF)
        for place in (1, 2, 3)
    ]
    return Evidence(
        expected={"key-1": "failed"},
        answers={"key-1": (RUN,)},
        runs={RUN: {"id": RUN, "status": "failed", "last_error": None, "steps": rows}},
        listed=(RUN,),
        executions=(*together(3), *alone(5)),
        kills=(*own, Kill(START + 940, START + 941, 0, 7, How.STOPPED)),
        sightings=(),
        messages=(),
        poison={"key-1": "poison"},
    )


def row(key: str, kind: str, finished: int) -> dict[str, Any]:
    return {
        "key": key,
        "kind": kind,
        "status": "succeeded",
        "attempt": 1,
        "finished_at": f"2027-01-15T08:00:00.{finished:03}Z",
    }
