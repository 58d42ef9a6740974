"""A run on the deployed template waits for signals and goes on by their hints; no tick comes."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.installation import Installation, JsonObject
from tests.scenarios.step_builders import await_signal

pytestmark = pytest.mark.e2e

STEPS = [
    await_signal("approved", key="approval"),
    await_signal("packed", key="packing"),
    await_signal("approved", key="second_approval"),
]


@dataclass(frozen=True)
class Observed:
    """What was seen, in the order of events; the run as it was when it stood at each wait."""

    at_first: JsonObject
    early: JsonObject
    answers: list[tuple[int, Any]]
    at_third: JsonObject
    at_third_still: JsonObject
    ended: JsonObject
    late: tuple[int, Any]
    ticks: int


@pytest.fixture(scope="module")
def observed(installed: Installation) -> Observed:
    """An early signal, an approval that is sent three times, and another approval."""

    def send(signal: str, **body: Any) -> tuple[int, Any]:
        answer = installed.signal("approval", run_id, signal, **body)
        return answer.status_code, answer.json()

    def approve() -> tuple[int, Any]:
        return send("approved", payload={"by": "ada"}, idempotency_key="approval-42")

    ticks = installed.invocations("tick")
    installed.publish("approval", *STEPS)
    run_id = installed.start("approval")
    at_first = installed.parked("approval", run_id)
    send("packed", payload={"boxes": 3})
    installed.drain()
    early = installed.run("approval", run_id)
    answers = [approve(), approve()]
    at_third = installed.parked("approval", run_id, cursor=2)
    answers.append(approve())
    installed.drain()
    at_third_still = installed.run("approval", run_id)
    send("approved", payload={"by": "bob"}, idempotency_key="approval-43")
    ended = installed.finish("approval", run_id)
    late = send("approved")
    ticks = installed.invocations("tick") - ticks
    return Observed(at_first, early, answers, at_third, at_third_still, ended, late, ticks)


def test_a_parked_run_says_why_it_does_not_move(observed: Observed) -> None:
    (step, *_) = observed.at_first["steps"]
    assert (observed.at_first["status"], step["status"]) == ("waiting", "waiting")
    assert observed.at_first["reason"].startswith('waiting for the signal "approved", until ')


def test_an_early_signal_is_kept_for_its_wait(observed: Observed) -> None:
    assert observed.early == observed.at_first
    assert observed.at_third["steps"][1]["output"] == {"boxes": 3}


def test_a_signal_that_is_repeated_with_its_key_is_taken_once(observed: Observed) -> None:
    (status, body), *repeated = observed.answers
    assert status == 201
    assert set(body) == {"id", "run_id", "signal", "created_at"}
    assert (body["run_id"], body["signal"]) == (observed.ended["id"], "approved")
    assert repeated == [(status, body)] * 2
    assert observed.at_third["steps"][0]["output"] == {"by": "ada"}
    assert observed.at_third_still == observed.at_third


def test_the_run_goes_on_to_its_end_without_a_tick(observed: Observed) -> None:
    assert observed.ended["status"] == "succeeded"
    outputs = [step["output"] for step in observed.ended["steps"]]
    assert outputs == [{"by": "ada"}, {"boxes": 3}, {"by": "bob"}]
    assert observed.ended["output"] == {"by": "bob"}
    assert observed.ticks == 0


def test_a_run_that_has_ended_takes_no_signal(observed: Observed) -> None:
    status, body = observed.late
    assert (status, body["code"]) == (409, "run_finished")
    assert "succeeded already" in body["detail"]
