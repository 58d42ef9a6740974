"""`?wait=` answers when the run ends, or when the seconds are over."""

import pytest

from tests.scenarios.homes import START, Home


@pytest.fixture
def run_id(home: Home) -> str:
    home.publish("drip", {"key": "nap", "kind": "sleep", "sleep_for": "3s"})
    return home.start("drip")


def test_it_answers_when_the_run_ends(home: Home, run_id: str) -> None:
    answer = home.request("GET", f"/workflows/drip/runs/{run_id}", query={"wait": "20"})
    assert (answer.status, answer.body["status"]) == (200, "succeeded")
    assert START + 3_000 <= home.clock.at < START + 4_000


def test_it_answers_when_the_seconds_are_over(home: Home, run_id: str) -> None:
    answer = home.request("GET", f"/workflows/drip/runs/{run_id}", query={"wait": "2"})
    assert (answer.status, answer.body["status"]) == (200, "sleeping")
    assert home.clock.at == START + 2_000


def test_it_answers_at_once_for_a_run_that_has_ended(home: Home, run_id: str) -> None:
    home.finish("drip", run_id)
    before = home.clock.at
    answer = home.request("GET", f"/workflows/drip/runs/{run_id}", query={"wait": "25"})
    assert (answer.status, home.clock.at) == (200, before)


@pytest.mark.parametrize("wait", ["26", "-1", "soon", "1.5"])
def test_another_wait_is_refused(home: Home, run_id: str, wait: str) -> None:
    answer = home.request("GET", f"/workflows/drip/runs/{run_id}", query={"wait": wait})
    assert (answer.status, answer.body["code"]) == (400, "invalid_request")
