"""The tick: everything that is due or soon will be, in the time that it has."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell_engine.adapters.dynamodb.client import connect
from stepwell_engine.adapters.process.counters import Counters
from stepwell_engine.errors import Unavailable
from stepwell_engine.lambdas.tick import MARGIN, MOST_TURNS, send_due_hints
from stepwell_engine.limits import HOUR, LEASE, MINUTE, SECOND
from stepwell_engine.service.worker import sweep as service
from stepwell_engine.service.worker.sweep import Swept
from stepwell_engine.wiring.aws import CAPABILITIES
from tests.aws.installation import HINTS, endpoint, waiting
from tests.aws.lambda_api import LambdaApi, Result, serving
from tests.scenarios.aws import AwsHome
from tests.scenarios.homes import StoryClock
from tools.moto_home import REGION

ARN = "arn:aws:lambda:eu-west-1:123456789012:function:stepwell-test-tick"
PAGE = 12  # instead of 100
RUNS = 2 * PAGE + 5


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsHome]:
    monkeypatch.setattr(service, "PAGE", PAGE)
    home = AwsHome(tmp_path)
    home.publish("nap", {"key": "nap", "kind": "sleep", "sleep_for": "1h"})
    yield home
    home.close()


@pytest.fixture
def api() -> Iterator[LambdaApi]:
    with serving() as api, endpoint("lambda", api.url):
        api.answer = lambda _: Result(b"", 202)
        yield api


class Context:
    """Lambda's: after so many looks at the clock its time is up."""

    invoked_function_arn = ARN

    def __init__(self, left: int = 60_000) -> None:
        self.left = left

    def get_remaining_time_in_millis(self) -> int:
        return self.left


def start(home: AwsHome, count: int) -> set[str]:
    """Runs that nobody has hinted."""
    started = {
        home.home.engine.services.starts.start("demo", "nap", b"{}").head.run_id
        for _ in range(count)
    }
    waiting(HINTS).clear()
    home.home.counters.take()
    return started


def tick(home: Any, event: dict[str, Any], context: Context) -> dict[str, int]:
    return send_due_hints(
        home.engine.sweep,
        home.ticks,
        home.flush,
        home.invoke_later,
        home.counters.add,
        event,
        context,
    )


def hinted() -> list[str]:
    return [json.loads(one.body)["r"] for one in waiting(HINTS)]


def test_all_that_is_due_is_hinted_page_by_page_in_batches(home: AwsHome) -> None:
    started = start(home, RUNS)
    ages = tick(home.home, {}, Context())
    assert set(hinted()) == started
    assert len(hinted()) == RUNS
    assert ages == {"Overdue": 0}
    assert home.home.counters.take() == {"HintsSent": RUNS}


def test_what_comes_before_a_late_next_tick_is_hinted_with_its_delay(home: AwsHome) -> None:
    home.start("nap")
    home.drain()
    waiting(HINTS).clear()
    wakes = home.clock.at + HOUR
    home.clock.at = wakes - CAPABILITIES.look_ahead - 1
    assert tick(home.home, {}, Context()) == {"Overdue": 0}
    assert waiting(HINTS) == []
    home.clock.at += 1
    tick(home.home, {}, Context())
    (message,) = waiting(HINTS)
    assert message.delayed_until == wakes


def test_the_oldest_overdue_age_is_reported(home: AwsHome) -> None:
    start(home, 3)
    home.clock.at += HOUR
    ages = tick(home.home, {}, Context())
    assert ages == {"Overdue": HOUR - 60_000}
    assert {one.delayed_until for one in waiting(HINTS)} == {0}


def test_a_tick_without_time_reads_a_page_and_has_another_go_on(
    home: AwsHome, api: LambdaApi
) -> None:
    started = start(home, RUNS)
    made: dict[str, Any] = {}
    for turn in range(1, 4):
        tick(home.home, made, Context(MARGIN))
        assert len(hinted()) == min(RUNS, turn * PAGE)
        if turn < 3:
            invocation = api.invocations[-1]
            assert (invocation.function, invocation.kind) == (ARN, "Event")
            made = invocation.event
            assert made["turn"] == turn + 1
    assert set(hinted()) == started
    assert len(api.invocations) == 2


def test_a_tick_that_was_missed_passes_over_no_age(home: AwsHome, api: LambdaApi) -> None:
    start(home, 1)
    due = home.clock.at + LEASE
    tick(home.home, {}, Context())
    hinted_at = []
    for minutes in (0, 1, 3, 4, 5, 7, 8, 11, 20):
        home.clock.at = due + minutes * MINUTE
        waiting(HINTS).clear()
        tick(home.home, {}, Context())
        hinted_at += [minutes for _ in waiting(HINTS)]
    assert hinted_at == [0, 1, 3, 4, 8, 20]


def test_a_tick_that_was_cut_short_is_as_none(home: AwsHome, api: LambdaApi) -> None:
    start(home, RUNS)
    home.clock.at += HOUR
    tick(home.home, {"cursor": "0:0:0:", "turn": MOST_TURNS}, Context(MARGIN))
    waiting(HINTS).clear()
    tick(home.home, {}, Context())
    assert len(hinted()) == RUNS
    waiting(HINTS).clear()
    tick(home.home, {}, Context())
    assert hinted() == []


def test_a_tick_hints_everything_where_nobody_knows_the_last_one(
    home: AwsHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> None:
        raise Unavailable("no answer")

    start(home, 1)
    home.clock.at += HOUR
    for name in ("last", "record"):
        monkeypatch.setattr(home.home.ticks, name, silent)
    for hints in (1, 2):
        tick(home.home, {}, Context())
        assert len(hinted()) == hints


def test_a_tick_that_goes_on_has_the_time_of_the_first(home: AwsHome, api: LambdaApi) -> None:
    start(home, RUNS)
    began = home.clock.at
    tick(home.home, {}, Context(MARGIN))
    home.clock.at += SECOND
    tick(home.home, api.invocations[-1].event, Context())
    assert len(hinted()) == RUNS
    assert home.home.ticks.last() == began


def test_a_tick_goes_on_so_many_times_and_no_more(home: AwsHome, api: LambdaApi) -> None:
    start(home, RUNS)
    tick(home.home, {"turn": MOST_TURNS - 1}, Context(MARGIN))
    assert len(api.invocations) == 1
    tick(home.home, api.invocations[0].event, Context(MARGIN))
    assert len(api.invocations) == 1
    assert home.home.counters.take()["TicksCutShort"] == 1


def test_a_tick_that_cannot_have_another_go_on_says_so(home: AwsHome, api: LambdaApi) -> None:
    api.answer = lambda _: Result(b"{}", 403, code="AccessDeniedException")
    start(home, RUNS)
    tick(home.home, {}, Context(MARGIN))
    assert home.home.counters.take() == {"HintsSent": PAGE, "TicksCutShort": 1}


class SlowHome:
    """A home whose every call of AWS takes as long as one may. The engine has all its time."""

    def __init__(self) -> None:
        self.clock = StoryClock()
        self.counters = Counters()
        self.engine = self
        self.sweep = self.ticks = self

    def _call(self) -> None:
        self.clock.at += SECOND * connect(REGION).meta.config.read_timeout

    def last(self) -> int:
        return self.clock.at

    def tick(self, cursor: str | None, budget: int, **_: Any) -> Swept:
        self.clock.at += budget
        self._call()
        return Swept(hints=1, overdue=0, cursor="more", began=0)

    def flush(self) -> None:
        self._call()

    def invoke_later(self, function: str, body: bytes) -> bool:
        self._call()
        return True


def test_a_tick_whose_time_is_up_has_enough_of_it_left_to_have_another_go_on() -> None:
    home = SlowHome()
    ends = home.clock.at + 60_000
    tick(home, {}, Context(60_000))
    assert home.clock.at <= ends
