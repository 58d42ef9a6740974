"""The children of a fan-out run at once, at most eight of them; the join waits for all."""

import threading

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Call, Receiver, Reply
from tests.scenarios.step_builders import called, fan, hook, statuses

AT_ONCE = 8


def test_the_join_collects_the_outputs_by_key(home: Home, receiver: Receiver) -> None:
    receiver.answer = lambda _: Reply(200, b'{"indexed":3}')
    home.ok("PUT", "/functions/reindex", {"url": f"{receiver.url}/reindex"})
    home.publish(
        "order",
        hook(receiver, "first"),
        *fan(hook(receiver, "crm"), {"key": "search", "kind": "function", "target": "reindex"}),
        hook(receiver, "last"),
    )
    run_id = home.start("order")
    run = home.finish("order", run_id)
    assert run["status"] == "succeeded"
    crm = {"delivered": True, "status": 200}
    assert home.step("order", run_id, "joined")["output"] == {"crm": crm, "search": {"indexed": 3}}
    parents = {step["key"]: step.get("parent_step_id") for step in run["steps"]}
    assert parents == {"first": None, "all": None, "crm": "all", "search": "all"} | {
        "joined": None,
        "last": None,
    }
    assert list(parents) == ["first", "all", "crm", "search", "joined", "last"]
    assert called(receiver)[0] == "first"
    assert called(receiver)[-1] == "last"


def test_what_the_join_collected_is_the_output_of_a_run_that_ends_with_it(
    home: Home, receiver: Receiver
) -> None:
    home.publish("order", hook(receiver, "first"), *fan(hook(receiver, "a"), hook(receiver, "b")))
    run = home.finish("order", home.start("order"))
    delivered = {"delivered": True, "status": 200}
    assert run["output"] == {"a": delivered, "b": delivered}


def test_eight_children_are_in_flight_together_and_never_more(
    home: Home, receiver: Receiver
) -> None:
    together = threading.Barrier(AT_ONCE)
    lock = threading.Lock()
    in_flight: set[str] = set()
    most: list[int] = []

    def answer(request: Call) -> Reply:
        with lock:
            in_flight.add(request.path)
            most.append(len(in_flight))
        together.wait(30)  # nobody is answered before eight are there
        with lock:
            in_flight.remove(request.path)
        return Reply()

    receiver.answer = answer
    home.publish("wide", *fan(*(hook(receiver, f"c{n}") for n in range(2 * AT_ONCE))))
    run = home.finish("wide", home.start("wide"))
    assert run["status"] == "succeeded"
    assert max(most) == AT_ONCE
    assert sorted(called(receiver)) == sorted(f"c{n}" for n in range(2 * AT_ONCE))


def test_a_reader_sees_which_children_are_in_flight(home: Home, receiver: Receiver) -> None:
    seen: list[dict[str, str]] = []
    reasons: list[str] = []
    first = threading.Lock()
    looked = threading.Event()

    def answer(_: Call) -> Reply:
        if first.acquire(blocking=False):
            run = home.run("wide", run_id)
            seen.append(statuses(run))
            reasons.append(run["reason"])
            looked.set()
        looked.wait(30)  # nobody is answered before somebody has looked
        return Reply()

    receiver.answer = answer
    home.publish("wide", *fan(*(hook(receiver, f"c{n}") for n in range(AT_ONCE + 1))))
    run_id = home.start("wide")
    home.finish("wide", run_id)
    (shown,) = seen
    assert [shown[f"c{n}"] for n in range(AT_ONCE + 1)] == ["running"] * AT_ONCE + ["pending"]
    assert (shown["all"], shown["joined"]) == ("succeeded", "waiting")
    assert reasons == ["running steps c0, c1, c2 and 5 more"]
