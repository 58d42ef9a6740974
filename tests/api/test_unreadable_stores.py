"""What the API answers when a store does not answer, or holds what is newer."""

import pytest

from stepwell_engine import limits
from stepwell_engine.errors import NewerFormat, Unavailable
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
