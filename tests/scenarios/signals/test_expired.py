"""A wait is bounded from the first park on, and not tried again when it expires."""

from stepwell_engine.limits import DAY
from tests.scenarios.homes import START, Home
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import await_signal, hook, send


def test_a_wait_that_expires_fails_the_run_without_a_retry(home: Home, receiver: Receiver) -> None:
    home.publish("order", await_signal(timeout_seconds=3600), hook(receiver, "after"))
    run_id = home.start("order")
    run = home.finish("order", run_id)
    assert run["status"] == "failed"
    assert START + 3_600_000 <= home.clock.at < START + 3_601_000
    assert run["last_error"] == 'signal "approved" did not come within 3600 s'
    (step,) = run["steps"]
    assert (step["status"], step["attempt"], step["code"]) == ("failed", 1, "wait_timed_out")
    assert receiver.calls == []


def test_other_signals_do_not_prolong_a_wait(home: Home) -> None:
    home.publish("order", await_signal(timeout_seconds=60))
    run_id = home.start("order")
    home.drain()
    for _ in range(3):
        home.clock.at += 15_000
        send(home, "order", run_id, "other")
        home.drain()
        assert home.run("order", run_id)["status"] == "waiting"
    home.clock.at += 16_000
    home.drain()
    assert home.run("order", run_id)["status"] == "failed"


def test_a_wait_lasts_seven_days_by_default(home: Home) -> None:
    home.publish("order", await_signal())
    run_id = home.start("order")
    home.drain()
    home.clock.at = START + 7 * DAY - 1_000
    home.drain()
    assert home.run("order", run_id)["status"] == "waiting"
    home.clock.at = START + 7 * DAY + 1_000
    home.drain()
    assert home.run("order", run_id)["status"] == "failed"


def test_a_signal_that_came_in_time_is_taken_however_late_the_worker(home: Home) -> None:
    home.publish("order", await_signal(timeout_seconds=60))
    run_id = home.start("order")
    home.drain()
    home.clock.at += 59_000
    send(home, "order", run_id, payload="just in time")
    home.clock.at += 10_000
    home.drain()
    run = home.run("order", run_id)
    assert (run["status"], run["output"]) == ("succeeded", "just in time")
