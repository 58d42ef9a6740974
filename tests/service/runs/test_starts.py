"""Starting a run: its limits, and one run whatever answer is lost."""

import pytest

from stepwell_engine import limits
from stepwell_engine.errors import Problem
from tests.service.actions import two_actions


def test_a_lost_answer_to_a_create_starts_one_run() -> None:
    world = two_actions()
    world.runs.lose_answer_of = ["create"]
    started = world.starts.start("demo", "orders", b"{}", "key")
    again = world.starts.start("demo", "orders", b"{}", "key")
    assert started.created
    assert (again.created, again.head.run_id) == (False, started.head.run_id)


def test_an_input_over_the_inline_size_is_a_blob() -> None:
    world = two_actions()
    text = b'"' + b"x" * limits.INLINE_INPUT + b'"'
    head = world.starts.start("demo", "orders", text).head
    assert head.input is None
    assert world.runs.blob(head.run_id, "input") == text


@pytest.mark.parametrize(("over", "ok"), [(0, True), (1, False)])
def test_the_input_limit(over: int, ok: bool) -> None:
    world = two_actions()
    text = b'"' + b"x" * (limits.MAX_INPUT - 2 + over) + b'"'
    if ok:
        assert world.starts.start("demo", "orders", text).created
    else:
        with pytest.raises(Problem, match="payload_too_large"):
            world.starts.start("demo", "orders", text)


@pytest.mark.parametrize(("size", "ok"), [(0, False), (1, True), (200, True), (201, False)])
def test_the_idempotency_key_limit(size: int, ok: bool) -> None:
    world = two_actions()
    if ok:
        assert world.starts.start("demo", "orders", b"{}", "k" * size).created
    else:
        with pytest.raises(Problem, match="invalid_request"):
            world.starts.start("demo", "orders", b"{}", "k" * size)
