"""What a step returns may have 256 KiB, to the byte."""

import json

from stepwell_engine.limits import MAX_OUTPUT
from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver, Reply


def returning(home: Home, receiver: Receiver, size: int) -> str:
    """A run whose function returns a text of `size` bytes of JSON; its id."""
    receiver.script(Reply(200, json.dumps("x" * (size - 2)).encode()))
    home.ok("PUT", "/functions/render", {"url": receiver.url})
    home.publish("page", {"key": "render", "kind": "function", "target": "render"})
    return home.start("page")


def test_an_output_of_the_limit_is_kept_whole(home: Home, receiver: Receiver) -> None:
    run_id = returning(home, receiver, MAX_OUTPUT)
    run = home.finish("page", run_id)
    assert run["status"] == "succeeded"
    assert run["output"] == "x" * (MAX_OUTPUT - 2)
    assert run["steps"][0]["output"] == run["output"]


def test_an_output_one_byte_past_the_limit_fails_the_step_at_once(
    home: Home, receiver: Receiver
) -> None:
    run_id = returning(home, receiver, MAX_OUTPUT + 1)
    run = home.finish("page", run_id)
    assert (run["status"], run["output"]) == ("failed", None)
    step = home.step("page", run_id, "render")
    assert (step["status"], step["attempt"], step["code"]) == ("failed", 1, "output_too_large")
    assert "262,144" in step["error"]
    assert len(receiver.calls) == 1
