"""Cancelling a parent leaves its child alone, unless it is asked to go down."""

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import (
    call,
    called,
    cancel,
    hook,
    nap,
    runs_of,
    states_of,
    statuses,
)


def family(home: Home, receiver: Receiver) -> str:
    """A run whose child's child is asleep."""
    home.publish("pick", nap("1h"), hook(receiver, "picked"))
    home.publish("fulfil", call("pick"))
    home.publish("order", call("fulfil"), hook(receiver, "after"))
    run_id = home.start("order")
    home.drain()
    assert states_of(home, "pick") == ["sleeping"]
    return run_id


def test_a_running_child_goes_on_and_its_end_disturbs_nobody(
    home: Home, receiver: Receiver
) -> None:
    run_id = family(home, receiver)
    assert cancel(home, "order", run_id).body["status"] == "cancelled"
    cancelled = home.run("order", run_id)
    assert statuses(cancelled) == {"call": "cancelled"}
    home.until(lambda: states_of(home, "fulfil") == ["succeeded"])
    assert called(receiver) == ["picked"]
    assert home.run("order", run_id) == cancelled


def test_a_child_can_be_cancelled_on_its_own_afterwards(home: Home, receiver: Receiver) -> None:
    run_id = family(home, receiver)
    cancel(home, "order", run_id)
    (child_id,) = runs_of(home, "fulfil")
    assert cancel(home, "fulfil", child_id).status == 200


def test_a_cascade_cancels_all_the_way_down(home: Home, receiver: Receiver) -> None:
    run_id = family(home, receiver)
    answer = cancel(home, "order", run_id, cascade=True)
    assert (answer.status, answer.body) == (200, {"id": run_id, "status": "cancelled"})
    assert states_of(home, "fulfil") == states_of(home, "pick") == ["cancelled"]
    home.clock.at += 7_200_000
    home.drain()
    assert states_of(home, "order") == states_of(home, "pick") == ["cancelled"]
    assert receiver.calls == []


def test_a_cascade_spares_a_child_that_has_ended(home: Home, receiver: Receiver) -> None:
    home.publish("fulfil", hook(receiver, "picked"))
    home.publish("order", call("fulfil"), nap("1h"))
    run_id = home.start("order")
    home.drain()
    assert cancel(home, "order", run_id, cascade=True).status == 200
    assert states_of(home, "fulfil") == ["succeeded"]


def test_a_cancelled_parent_reads_the_same_after_its_child_has_ended(
    home: Home, receiver: Receiver
) -> None:
    run_id = family(home, receiver)
    cancel(home, "order", run_id)
    before = home.run("order", run_id)
    (child_id,) = runs_of(home, "fulfil")
    cancel(home, "fulfil", child_id, cascade=True)
    home.drain()
    assert home.run("order", run_id) == before
