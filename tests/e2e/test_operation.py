"""What those who operate the installation see: nothing to see to, a lost permission, its end.

Comes last. Time is real here: the schedule's tick is waited for once, where a run can be saved by
nothing else.
"""

import threading
import time
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.emulator import PATIENCE
from tests.e2e.installation import FUNCTIONS, Installation, JsonObject, take_away
from tests.scenarios.receiver import Call, Receiver, Reply
from tests.scenarios.step_builders import called, fan, hook, nap

pytestmark = pytest.mark.e2e

DENIED: Final = 15  # seconds


def test_no_story_had_a_tick(installed: Installation) -> None:
    """Hints alone moved every run."""
    assert installed.invocations("tick") == 0


def test_no_function_failed_or_complained_in_any_story(installed: Installation) -> None:
    installed.publish("rest", nap("1s"))
    assert installed.finish("rest", installed.start("rest"))["status"] == "succeeded"
    installed.drain()
    installed.invoke_tick()
    for name in FUNCTIONS:
        counted = installed.counted(name, again=installed.invoke_tick, Invocations=1)
        assert (counted["HintsLost"], counted["RunsFailed"], installed.errors(name)) == (0, 0, 0)
        assert installed.complaints(name) == []


def test_no_hint_is_left_and_nothing_was_given_up(installed: Installation) -> None:
    installed.drain()
    assert installed.messages("DeadHints") == installed.messages("DeadTicks") == 0


@pytest.mark.parametrize("token", ["swt_unknown", "-"])
def test_the_api_lets_nobody_in_without_a_token(installed: Installation, token: str) -> None:
    answer = installed.request("GET", "/workflows", token=token)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_eight_outcomes_in_hand_outlast_a_store_that_denies_them(
    installed: Installation, receiver: Receiver
) -> None:
    """And the hint of a run that nobody could claim comes again, without a tick."""
    ticks = installed.invocations("tick")
    gate, keys = threading.Event(), [f"hook{number}" for number in range(8)]

    def answer(request: Call) -> Reply:
        if request.path == "/late":
            return Reply()
        return Reply(200 if gate.wait(PATIENCE) else 500)

    receiver.answer = answer
    installed.publish("denied", *fan(*(hook(receiver, key) for key in keys)))
    installed.publish("late", hook(receiver, "late"))
    run_id = installed.start("denied")
    ends = time.monotonic() + PATIENCE
    while len(receiver.calls) < len(keys):
        assert time.monotonic() < ends, installed.everything_said()
        time.sleep(0.05)
    with installed.without("executor", "dynamodb:UpdateItem"):
        gate.set()
        late = installed.start("late")
        time.sleep(DENIED)
        assert installed.run("denied", run_id)["status"] == "running"
        assert installed.run("late", late)["status"] == "pending"
    run = installed.finish("denied", run_id, tries=1)
    assert (run["status"], attempts(run)) == ("succeeded", dict.fromkeys(keys, 1))
    run = installed.finish("late", late, tries=1)
    assert (run["status"], attempts(run)) == ("succeeded", {"late": 1})
    assert sorted(called(receiver)) == [*keys, "late"]
    assert installed.invocations("tick") == ticks
    assert installed.messages("DeadHints") == 0


def attempts(run: JsonObject) -> dict[str, int]:
    return {row["key"]: row["attempt"] for row in run["steps"] if row["kind"] == "webhook"}


def test_without_its_permission_the_executor_asks_again_and_with_it_the_run_goes_on(
    installed: Installation,
) -> None:
    """Its hint comes again within seconds; the tick of the schedule knows of the run, too."""
    installed.ok("PUT", "/queues/notices", {})
    installed.publish("notice", {"key": "tell", "kind": "enqueue", "target": "notices"})
    with installed.without("executor", "dynamodb:UpdateItem"):
        run_id = installed.start("notice")
        installed.counted("executor", again=lambda: installed.hint(run_id), StoreUnavailable=1)
        said = "\n".join(installed.complaints("executor"))
        assert "AccessDeniedException" in said
        assert "dynamodb:UpdateItem" in said
        assert installed.run("notice", run_id)["status"] == "pending"
    installed.schedule_ticks(True)
    run = installed.finish("notice", run_id)
    assert run["status"] == "succeeded"
    assert installed.messages("DeadHints") == installed.messages("DeadTicks") == 0


def test_taking_it_away_leaves_nothing(installed: Installation, assembly: Path) -> None:
    said = take_away(installed.emulator, assembly)
    for stack in ("api", "compute", "data"):
        assert f"stepwell-dev-{stack}: deleted" in said
    assert "stays: " not in said
    tables = installed.emulator.client("dynamodb").list_tables()["TableNames"]
    functions = installed.emulator.client("lambda").list_functions()["Functions"]
    assert tables == []
    assert [one["FunctionName"] for one in functions] == ["reserve"]
