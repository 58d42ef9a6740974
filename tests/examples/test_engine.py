"""The engine as a process, and a client that outlives it."""

import signal
from pathlib import Path

import pytest

from examples.order_pipeline.api import Api, Refused
from examples.order_pipeline.engine import Engine, EngineFailed


def test_a_killed_engine_comes_back_at_the_same_address_for_the_same_client(
    tmp_path: Path,
) -> None:
    engine = Engine(tmp_path)
    try:
        access = engine.start()
        api = Api(access)
        api.call("PUT", "/queues/emails", {})
        assert [engine.code, engine.kill(), engine.code] == [None, -9, -9]
        assert engine.start() == access
        assert [queue["name"] for queue in api.every("/queues")] == ["emails"]
    finally:
        assert engine.stop() == 0


def test_an_engine_that_is_told_to_stop_twice_stops(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    assert engine.code == 0
    engine.start()
    engine.send(signal.SIGTERM)
    assert engine.stop() == 0


def test_an_engine_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(EngineFailed, match="is a file: name a folder"):
        Engine(tmp_path).start()


def test_a_refusal_carries_the_problem_and_a_list_comes_whole(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    try:
        api = Api(engine.start())
        with pytest.raises(Refused, match="there is no queue"):
            api.every("/queues/missing/messages")
        api.call("PUT", "/queues/many", {})
        for number in range(101):
            api.call("POST", "/queues/many/messages", {"body": number})
        bodies = [message["body"] for message in api.every("/queues/many/messages")]
        assert bodies == list(range(101))
    finally:
        engine.stop()
