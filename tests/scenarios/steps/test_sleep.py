"""A sleep ends at its millisecond, however long it is."""

import pytest

from stepwell_engine.limits import DAY
from tests.scenarios.homes import START, Home

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("sleep_for", "ms"),
    [
        ("1ms", 1),
        ("1500ms", 1_500),
        ("15m", 900_000),
        ("15m1ms", 900_001),
        ("PT1H", HOUR),
        (90, 90_000),
    ],
)
def test_a_run_sleeps_as_long_as_it_should(home: Home, sleep_for: object, ms: int) -> None:
    home.ok("PUT", "/queues/emails", {})
    home.publish(
        "drip",
        {"key": "nap", "kind": "sleep", "sleep_for": sleep_for},
        {"key": "say", "kind": "enqueue", "target": "emails"},
    )
    run_id = home.start("drip")
    home.drain()
    asleep = home.run("drip", run_id)
    assert (asleep["status"], asleep["cursor"]) == ("sleeping", 0)
    assert asleep["reason"].startswith("sleeping until")
    run = home.finish("drip", run_id)
    assert run["status"] == "succeeded"
    assert START + ms <= home.clock.at < START + ms + home.grain
    (sent_at,) = home.sent_at("emails")
    assert run["steps"][0]["finished_at"] == sent_at == run["finished_at"]


def test_thirty_days_pass_without_a_trace(home: Home) -> None:
    home.publish("drip", {"key": "nap", "kind": "sleep", "sleep_for": "30d"})
    run_id = home.start("drip")
    home.drain()
    home.clock.at = START + 30 * DAY - 1
    home.drain()
    assert home.run("drip", run_id)["status"] == "sleeping"
    home.clock.at += 1
    home.drain()
    run = home.run("drip", run_id)
    assert (run["status"], run["output"]) == ("succeeded", None)


def test_a_late_tick_ends_a_sleep_late_but_ends_it(home: Home) -> None:
    home.publish("drip", {"key": "nap", "kind": "sleep", "sleep_for": "1d"})
    run_id = home.start("drip")
    home.drain()
    home.clock.at = START + 40 * DAY
    home.drain()
    assert home.run("drip", run_id)["status"] == "succeeded"
