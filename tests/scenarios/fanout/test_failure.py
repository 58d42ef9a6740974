"""A child that fails for good fails the join and the run; nothing is a partial success."""

import threading

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Call, Receiver, Reply
from tests.scenarios.step_builders import called, doomed, fan, hook, statuses


def test_siblings_in_flight_are_recorded_and_the_others_cancelled(
    home: Home, receiver: Receiver
) -> None:
    failed = threading.Event()

    def answer(request: Call) -> Reply:
        if request.path == "/doomed":
            failed.set()
            return Reply(500, b"no")
        failed.wait(30)
        return Reply(503 if request.path == "/busy" else 200)

    receiver.answer = answer
    others = [hook(receiver, f"c{n}") for n in range(58)]
    home.publish("order", *fan(doomed(receiver), hook(receiver, "busy"), *others))
    run_id = home.start("order")
    run = home.finish("order", run_id)
    assert run["status"] == "failed"
    assert run["last_error"].startswith('child "doomed" failed: ')
    shown = statuses(run)
    assert (shown["doomed"], shown["busy"], shown["joined"]) == ("failed", "cancelled", "failed")
    assert home.step("order", run_id, "joined")["code"] == "child_failed"

    siblings = [step for step in run["steps"] if step["key"].startswith("c")]
    assert len(siblings) == 58
    begun = {step["key"] for step in siblings if step["status"] == "succeeded"}
    rest = [step for step in siblings if step["key"] not in begun]
    assert {step["status"] for step in rest} == {"cancelled"}
    assert {step["attempt"] for step in rest} == {0}
    assert len({step["finished_at"] for step in rest}) == 1
    assert begun >= {f"c{n}" for n in range(6)}
    assert sorted(called(receiver)) == sorted({"doomed", "busy", *begun})


def test_the_steps_behind_a_failed_join_are_not_reached(home: Home, receiver: Receiver) -> None:
    receiver.script(Reply(500))
    home.publish("order", *fan(doomed(receiver)), hook(receiver, "after"))
    run = home.finish("order", home.start("order"))
    assert list(statuses(run)) == ["all", "doomed", "joined"]
    assert run["cursor"] == 1
    assert run["output"] is None


def test_a_child_without_its_resource_fails_the_run_at_once(home: Home, receiver: Receiver) -> None:
    missing = {"key": "mail", "kind": "enqueue", "target": "emails", "max_attempts": 5}
    home.publish("order", *fan(missing, hook(receiver, "crm")))
    run_id = home.start("order")
    run = home.finish("order", run_id)
    assert statuses(run) == {
        "all": "succeeded",
        "mail": "failed",
        "crm": "succeeded",
        "joined": "failed",
    }
    step = home.step("order", run_id, "mail")
    assert (step["attempt"], step["code"]) == (1, "unknown_resource")
