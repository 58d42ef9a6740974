"""Executor threads outlive whatever happens to a run; the first tick comes at once."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from local import workers as subject
from local.workers import Workers
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.errors import StoreError, Unavailable
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.sweep import Sweep, Swept
from stepwell_engine.settings.embedded import Settings
from stepwell_engine.wiring.embedded import Home, embedded


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = embedded(Settings(data=tmp_path))
    yield home
    home.close()


def never(seconds: float) -> bool:
    """No second signal comes."""
    return threading.Event().wait(seconds)


class Scripted:
    """Stands for `Advance` and for `Sweep`: raises what is left of the script, then says so."""

    def __init__(self, *script: Exception) -> None:
        self.script = list(script)
        self.calls: list[Any] = []
        self.went_well = threading.Event()

    def run(self, run_id: str, project: str, budget: int) -> None:
        self._call((run_id, project, budget))

    def tick(self, *, since: int | None) -> Swept:
        self._call(since)
        return Swept(hints=0, overdue=0, cursor=None, began=7)

    def _call(self, what: Any) -> None:
        self.calls.append(what)
        if self.script:
            raise self.script.pop(0)
        self.went_well.set()


def advancing(home: Home, advance: Scripted) -> Home:
    return replace(home, engine=replace(home.engine, advance=cast(Advance, advance)))


def at_work(home: Home, story: Callable[[], None]) -> None:
    """One executor and the tick work during a story."""
    workers = Workers(home, 1)
    workers.start()
    story()
    workers.halt()
    assert workers.wait(60, never) == 0


def test_a_store_that_does_not_answer_is_asked_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "REPEAT", 1)
    advance = Scripted(Unavailable("busy"), Unavailable("busy"))

    def story() -> None:
        home.hints.hint(about_run("a", "demo"))
        assert advance.went_well.wait(60)

    at_work(advancing(home, advance), story)
    assert advance.calls == [("a", "demo", subject.BUDGET)] * 3


def test_a_defect_is_logged_and_the_thread_goes_on(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    advance = Scripted(RuntimeError("a defect"))

    def story() -> None:
        home.hints.hint(about_run("a", "demo"))
        home.hints.hint(about_run("b", "demo"), 1)
        assert advance.went_well.wait(60)

    at_work(advancing(home, advance), story)
    assert [run_id for run_id, *_ in advance.calls] == ["a", "b"]
    assert "run a: advancing failed" in caplog.text
    assert "a defect" in caplog.text


def test_the_first_tick_comes_at_once_and_a_failed_one_is_made_up_for(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "TICK", 0.001)
    sweep = Scripted(StoreError("damaged"), RuntimeError("a defect"))
    ticking = replace(home, engine=replace(home.engine, sweep=cast(Sweep, sweep)))
    at_work(ticking, lambda: None if sweep.went_well.wait(60) else pytest.fail("no tick"))
    assert sweep.calls[:3] == [None, None, None]
    assert {*sweep.calls[3:]} <= {7}  # each counts from the last one that went well


def test_a_run_in_hand_is_waited_for_until_the_time_is_over_or_a_second_signal(home: Home) -> None:
    workers = Workers(home, 1)
    home.hints.hint(about_run("a", "demo"))
    assert home.hints.take_due() is not None
    workers.start()
    workers.halt()
    assert workers.wait(0, never) == 1
    assert workers.wait(3_600, lambda _: True) == 1
    home.hints.done(about_run("a", "demo"))
    assert workers.wait(3_600, never) == 0
