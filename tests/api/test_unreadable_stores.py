"""What the API answers when a store does not answer, or holds what is newer."""

import pytest

from stepwell_engine import limits
from stepwell_engine.errors import NewerFormat, StoreError, Unavailable
from stepwell_engine.ports import Commit, Written
from tests.api.events import event
from tests.api.home import RUNS, Home, refused


def test_a_store_that_does_not_answer_is_503(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.publish()

    def lost(*_: object) -> None:
        raise Unavailable("secret address of the store")

    monkeypatch.setattr(home.runs, "create", lost)
    answer = home.call("POST", RUNS)
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "try again" in refused(answer, "unavailable")
    assert "secret" not in answer.text


@pytest.mark.parametrize("error", [StoreError, Unavailable])
def test_a_store_that_refuses_is_503_and_says_why(
    home: Home, monkeypatch: pytest.MonkeyPatch, error: type[StoreError]
) -> None:
    home.publish()

    def full(*_: object) -> None:
        raise error("secret address of the store", "disk full")

    monkeypatch.setattr(home.runs, "get", full)
    answer = home.call("GET", f"{RUNS}/1")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert refused(answer, "unavailable").startswith("the store refuses: disk full. ")
    assert "secret" not in answer.text


def test_health_and_the_run_say_what_a_worker_waits_for(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.publish()
    run_id = home.start()
    commit = home.runs.commit
    seen: list[object] = []

    def refuse(wanted: Commit) -> Written:
        if seen:
            return commit(wanted)
        raise Unavailable("secret address of the store", "disk full")

    def look(ms: int) -> None:
        seen.append((health(home), home.show(run_id)["reason"]))
        home.clock.at += ms

    monkeypatch.setattr(home.runs, "commit", refuse)
    monkeypatch.setattr(home.clock, "sleep", look)
    home.turn(run_id)
    text = "the store refuses: disk full"
    assert seen == [({"status": "degraded", "reason": text}, text)]
    assert (health(home), home.show(run_id)["reason"]) == ({"status": "ok"}, None)


@pytest.mark.parametrize("error", [StoreError, Unavailable])
def test_health_and_the_run_say_why_it_cannot_be_claimed(
    home: Home, monkeypatch: pytest.MonkeyPatch, error: type[StoreError]
) -> None:
    home.publish()
    run_id = home.start()

    def refuse(*_: object) -> None:
        raise error("secret address of the store", "disk full")

    with monkeypatch.context() as patched:
        patched.setattr(home.runs, "claim", refuse)
        with pytest.raises(error):
            home.turn(run_id)
    text = "the store refuses: disk full"
    assert health(home) == {"status": "degraded", "reason": text}
    assert home.show(run_id)["reason"] == text
    home.turn(run_id)
    assert health(home) == {"status": "ok"}
    assert home.show(run_id)["status"] == "succeeded"


def health(home: Home) -> object:
    answer = home.send(event("GET", "/v1/health"))
    assert answer.status == 200
    return answer.body


def test_a_newer_document_is_503_and_says_to_upgrade(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.publish()
    run_id = home.start()

    def newer(_: str) -> None:
        raise NewerFormat("run 1", 2, 1)

    monkeypatch.setattr(home.runs, "get", newer)
    answer = home.call("GET", f"{RUNS}/{run_id}")
    assert "upgrade this installation" in refused(answer, "unavailable")


def test_a_newer_definition_is_503(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.publish()
    monkeypatch.setattr(limits, "FORMAT", 0)
    answer = home.call("GET", "/workflows/orders")
    assert "upgrade this installation" in refused(answer, "unavailable")
