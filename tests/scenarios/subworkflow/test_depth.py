"""Six runs deep is the limit, and what ends a cycle of workflows."""

from tests.scenarios.homes import Home
from tests.scenarios.step_builders import call, nap, runs_of, states_of

DEEPEST = 5


def test_a_chain_of_six_runs_works(home: Home) -> None:
    for level in range(DEEPEST):
        home.publish(f"level{level}", call(f"level{level + 1}"))
    home.publish(f"level{DEEPEST}", nap("1s"))
    run_id = home.start("level0")
    assert home.finish("level0", run_id)["status"] == "succeeded"
    depths = []
    for level in range(DEEPEST + 1):
        (one,) = runs_of(home, f"level{level}")
        depths.append(home.run(f"level{level}", one)["depth"])
    assert depths == [0, 1, 2, 3, 4, 5]


def test_a_run_at_the_limit_starts_no_other_and_nobody_tries_again(home: Home) -> None:
    for level in range(DEEPEST + 1):
        home.publish(f"level{level}", call(f"level{level + 1}", max_attempts=3))
    home.publish(f"level{DEEPEST + 1}", nap("1s"))
    run_id = home.start("level0")
    before = home.clock.at
    run = home.finish("level0", run_id)
    assert home.clock.at == before
    assert run["status"] == "failed"
    assert [states_of(home, f"level{level}") for level in range(DEEPEST + 1)] == [["failed"]] * 6
    assert runs_of(home, f"level{DEEPEST + 1}") == []
    step = home.step("level0", run_id, "call")
    assert (step["attempt"], step["code"]) == (1, "depth_exceeded")


def test_a_cycle_ends_at_the_limit(home: Home) -> None:
    home.publish("a", nap("1s"), call("b"))
    home.publish("b", call("a"))
    run_id = home.start("a")
    assert home.finish("a", run_id)["status"] == "failed"
    assert states_of(home, "a") + states_of(home, "b") == ["failed"] * 6


def test_a_workflow_may_not_call_itself(home: Home) -> None:
    refused = home.request("PUT", "/workflows/loop", {"steps": [call("loop")]})
    assert (refused.status, refused.body["code"]) == (400, "invalid_definition")
    assert refused.body["violations"][0]["step"] == "call"
