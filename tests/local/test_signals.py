"""Signals end the host, whenever they come."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from local.host import Signals
from tests.local.process import hosting

HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture
def signals() -> Iterator[Signals]:
    before = {number: signal.getsignal(number) for number in HANDLED}
    yield Signals()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", HANDLED)
def test_the_first_signal_ends_the_wait_and_a_second_is_told_apart(
    signals: Signals, number: signal.Signals
) -> None:
    signal.raise_signal(number)
    signals.wait()
    assert not signals.again(0)
    signal.raise_signal(number)
    assert signals.again(0)
    assert signals.again(0)


def test_a_host_that_is_to_outlive_its_terminal_does() -> None:
    before = {number: signal.getsignal(number) for number in HANDLED}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        Signals()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_signal_at_any_moment_of_a_wait_is_taken(signals: Signals) -> None:
    """The handler runs in the waiting thread itself, so it must need no lock that this holds."""

    def trace(_frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            signal.raise_signal(signal.SIGTERM)
        return trace

    sys.settrace(trace)
    try:
        signals.wait()
        assert signals.again(60)
    finally:
        sys.settrace(None)


def test_a_signal_that_comes_when_the_host_has_stopped_changes_nothing(tmp_path: Path) -> None:
    """A second one, in the moments in which the interpreter clears away what there is."""
    kill = "kill=os.kill, pid=os.getpid(), number=signal.SIGTERM: kill(pid, number)"
    late = f'late = type("Late", (), {{"__del__": lambda self, {kill}}})()'
    with hosting(tmp_path / "data", before=f"import os, signal; {late}") as host:
        assert host.end() == 0
