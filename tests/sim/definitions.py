"""Random definitions: all nine kinds, with compensations wherever they are allowed."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any, TypeVar

from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.kinds import ACTION_KINDS

PROJECT = "demo"
ACTIONS = tuple(sorted(ACTION_KINDS))
WAITS = (Kind.SLEEP, Kind.WAIT_FOR_SIGNAL)
KINDS = (*ACTIONS, *WAITS, Kind.FANOUT, Kind.JOIN, Kind.SUBWORKFLOW)
SIGNALS = ("approved", "paid", "succeeded")  # the last is also a status of a child run
MISSING = "nowhere"  # a workflow that does not exist
T = TypeVar("T")


class Style(StrEnum):
    """What a workflow consists of."""

    PLAIN = "plain"  # a few actions
    MIXED = "mixed"  # everything
    WIDE = "wide"  # a fan-out and its compensations
    PARENT = "parent"  # sub-workflows
    SLOW = "slow"  # attempts that outlast the lease
    LONG = "long"  # so many steps that pages are written
    LAZY = "lazy"  # one wait after the other, for signals that are there already


@dataclass(frozen=True)
class _Times:
    """What the steps of a workflow choose from, in ms."""

    # Around the lease of a minute, and up to the longest that may be asked for.
    timeouts: tuple[int, ...] = (1_000, 5_000, 30_000, 57_999, 58_000, 60_000, 120_000, 600_000)
    sleeps: tuple[int, ...] = (1, 500, 5_000, 30_000, 61_000, 300_000, 900_000, 901_000, 7_200_000)
    waits: tuple[int, ...] = (1_000, 10_000, 60_000, 300_000, 3_600_000)
    children: tuple[int, ...] = (1_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)


_USUAL = _Times()
_SLOW = _Times(timeouts=(57_999, 60_000, 120_000, 600_000))
_LAZY = _Times(sleeps=(1, 500, 5_000, 30_000), waits=(60_000, 3_600_000))

_MIXED_KINDS = (*ACTIONS, *ACTIONS, *WAITS, *WAITS, Kind.FANOUT, Kind.SUBWORKFLOW)
_PLANS = {
    Style.PLAIN: ACTIONS,
    Style.MIXED: _MIXED_KINDS,
    Style.WIDE: (*ACTIONS, Kind.FANOUT, Kind.FANOUT, Kind.FANOUT, Kind.SLEEP),
    Style.PARENT: (*ACTIONS[:2], Kind.SLEEP, *(Kind.SUBWORKFLOW,) * 3),
    Style.SLOW: (*ACTIONS, *ACTIONS, Kind.FANOUT, Kind.SUBWORKFLOW),
    Style.LONG: (*ACTIONS, *WAITS),
    Style.LAZY: WAITS,
}
_MOST_CALLS = 2  # sub-workflow steps of a definition
_MOST_FANOUTS = 2
_WIDTHS = (1, 2, 2, 3, 3, 4, 5, 8, 9, 12)


class Drawing:
    """One definition in the making."""

    def __init__(self, random: Random, workflow: str, style: Style, targets: Sequence[str]) -> None:
        """`targets` are the workflows that it may call."""
        self._random = random
        self._workflow = workflow
        self._style = style
        self._targets = targets
        self._times = {Style.SLOW: _SLOW, Style.LAZY: _LAZY}.get(style, _USUAL)
        self._compensation_share = self._one((0.3, 0.9) if style is Style.WIDE else (0.0, 0.3, 0.9))
        self._ordinal = 0
        self._left = {Kind.FANOUT: _MOST_FANOUTS, Kind.SUBWORKFLOW: _MOST_CALLS if targets else 0}

    def definition(self) -> Definition:
        """Draw it."""
        steps: list[Step] = []
        for kind in self._kinds():
            if kind is Kind.FANOUT:
                steps += self._fanout()
            else:
                steps.append(self._step(kind))
        return Definition(PROJECT, self._workflow, 1, tuple(steps))

    def _kinds(self) -> list[Kind]:
        plan = _PLANS[self._style]
        long = self._style in (Style.LONG, Style.LAZY)
        count = 8 + self._below(6) if long else 1 + self._below(5)
        chosen = [self._one(plan) for _ in range(count)]
        if self._style is Style.LAZY:
            chosen[0] = self._one(_MIXED_KINDS)
            chosen[1:] = [WAITS[number % 2] for number in range(count - 1)]
        if self._style is Style.WIDE:
            chosen[self._below(min(2, count))] = Kind.FANOUT
        if self._style is Style.PARENT:
            chosen[self._below(count)] = Kind.SUBWORKFLOW
        return [self._allowed(kind) for kind in chosen]

    def _allowed(self, kind: Kind) -> Kind:
        if kind not in self._left:
            return kind
        self._left[kind] -= 1
        return kind if self._left[kind] >= 0 else self._one(ACTIONS)

    def _fanout(self) -> list[Step]:
        ordinal = self._next()
        children = tuple(self._action(self._one(ACTIONS)) for _ in range(self._one(_WIDTHS)))
        fanout = Step(ordinal, f"step-{ordinal}", Kind.FANOUT, children=children)
        return [fanout, self._step(Kind.JOIN)]

    def _step(self, kind: Kind) -> Step:
        if kind in ACTION_KINDS:
            return self._action(kind)
        fields: dict[str, Any] = {}
        compensation = None
        ordinal = self._next()
        if kind is Kind.SLEEP:
            fields = {"sleep_for": self._one(self._times.sleeps)}
        elif kind is Kind.WAIT_FOR_SIGNAL:
            fields = {"signal": self._one(SIGNALS), "timeout": self._one(self._times.waits)}
        elif kind is Kind.SUBWORKFLOW:
            missing = self._random.random() < 0.05
            fields = {
                "target": MISSING if missing else self._one(self._targets),
                "timeout": self._one(self._times.children),
                "max_attempts": self._one((1, 1, 2, 2, 3)),
                "payload": self._one((None, {"a": 1}, "x" * 300)),
            }
            compensation = self._compensation(ordinal)
        return Step(ordinal, f"step-{ordinal}", kind, compensate=compensation, **fields)

    def _action(self, kind: Kind) -> Step:
        ordinal = self._next()
        return Step(
            ordinal,
            f"step-{ordinal}",
            kind,
            "there",
            timeout=self._one(self._times.timeouts),
            max_attempts=1 + self._below(5),
            compensate=self._compensation(ordinal),
        )

    def _compensation(self, ordinal: int) -> Step | None:
        if self._random.random() >= self._compensation_share:
            return None
        return Step(
            ordinal,
            f"compensate:step-{ordinal}",
            self._one(ACTIONS),
            "back",
            timeout=self._one(self._times.timeouts),
            max_attempts=1 + self._below(4),
        )

    def _next(self) -> int:
        self._ordinal += 1
        return self._ordinal - 1

    def _below(self, bound: int) -> int:
        return int(self._random.random() * bound)

    def _one(self, options: Sequence[T]) -> T:
        return options[int(self._random.random() * len(options))]
