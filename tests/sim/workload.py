"""What is asked of the engine in one seed: definitions, starts, signals, cancels."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from string import ascii_letters
from typing import Any, TypeVar

from stepwell_engine import limits
from stepwell_engine.core.definition import ACTION_KINDS, Definition, Kind, Step

PROJECT = "demo"
ACTIONS = tuple(sorted(ACTION_KINDS))
KINDS = (*ACTIONS, Kind.SLEEP, Kind.WAIT_FOR_SIGNAL)
SIGNALS = ("approved", "paid")
T = TypeVar("T")


@dataclass(frozen=True)
class _Times:
    """What the steps of a workflow choose from, in ms."""

    # Around the lease of a minute, and up to the longest that may be asked for.
    timeouts: tuple[int, ...] = (1_000, 5_000, 30_000, 57_999, 58_000, 60_000, 120_000, 600_000)
    sleeps: tuple[int, ...] = (1, 500, 5_000, 30_000, 61_000, 300_000, 900_000, 901_000, 7_200_000)
    waits: tuple[int, ...] = (1_000, 10_000, 60_000, 300_000, 3_600_000)


_USUAL = _Times()
_SLOW = _Times(timeouts=(57_999, 60_000, 120_000, 600_000))
_LAZY = _Times(sleeps=(1, 500, 5_000, 30_000), waits=(60_000, 3_600_000))

# In bytes. Around what stays inline, and enough of them to fill a page.
_FULL = limits.INLINE_OUTPUT
_SIZES = (30, 120, _FULL - 50, _FULL - 10, _FULL, _FULL + 1, 2_500)
_FILLING = (_FULL - 60, _FULL - 40, _FULL - 20, _FULL - 10, _FULL, _FULL, _FULL + 1)


# Text that does not compress, so that what is stored outgrows a head.
_NOISE = "".join(Random(0).choices(ascii_letters, k=20_000))


def noise(offset: int, length: int) -> str:
    """Letters, others for another offset."""
    begin = offset * 37 % 10_000
    return _NOISE[begin : begin + length]


@dataclass(frozen=True)
class Start:
    """A caller that starts a run at a time (ms after the beginning)."""

    at: int
    key: str | None
    input_size: int


@dataclass(frozen=True)
class Nature:
    """How the outside world answers the acts of a workflow. Probabilities."""

    fails: float
    hopeless: float  # of a failure: it must not be retried
    defect: float  # the performer itself raises
    slow: float  # takes nearly as long as it may, or longer
    sizes: tuple[int, ...]
    poison: int | None  # the ordinal of a step that kills its worker


@dataclass(frozen=True)
class Slot:
    """One workflow of the seed and what is done to its runs.

    `cancel`: when ("at", ms after the beginning; "act", at the n-th act; "write", at the n-th
    write of the head; "parked"; "page", as one is being written; "crash", of one of its workers),
    None: never. `prompt`: how likely a signal comes soon after the run waits for it, or as a page
    is being written; `last_minute`: around the end of the wait, or as a
    worker looks at it; `signals`: at these times.
    """

    workflow: str
    definition: Definition
    broken: bool
    starts: tuple[Start, ...]
    nature: Nature
    cancel: tuple[str, int] | None
    prompt: float
    last_minute: float
    signals: tuple[tuple[int, str], ...]


class Catalog:
    """The definitions of a seed, as the service asks for them."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._slots = {slot.workflow: slot for slot in slots}

    def enabled(self, project: str, workflow: str) -> int:
        """Every workflow has one version."""
        return self.load(project, workflow, 1, even_broken=True).version

    def load(
        self, project: str, workflow: str, version: int, even_broken: bool = False
    ) -> Definition:
        """The definition; ValueError if the slot's cannot be read."""
        slot = self._slots[workflow]
        if (project, version) != (PROJECT, 1):
            raise KeyError(f"{project} {workflow} {version}")
        if slot.broken and not even_broken:
            raise ValueError("a step without a key")
        return slot.definition


def draw_slots(random: Random) -> tuple[Slot, ...]:
    """One to four workflows."""
    return tuple(_slot(random, f"flow-{number}") for number in range(_few(random)))


def _few(random: Random) -> int:
    return _one(random, (1, 1, 1, 2, 2, 3, 4))


def _one(random: Random, options: Sequence[T]) -> T:
    return options[int(random.random() * len(options))]


def _slot(random: Random, workflow: str) -> Slot:
    long = random.random() < 0.25
    lazy = long and random.random() < 0.75
    slow = not long and random.random() < 0.3
    count = 8 + int(random.random() * 6) if long else 1 + int(random.random() * 5)
    times = _SLOW if slow else _LAZY if lazy else _USUAL
    kinds = ACTIONS if slow else _one(random, (ACTIONS, KINDS, KINDS, KINDS))
    chosen = [_one(random, kinds) for _ in range(count)]
    if lazy:  # one wait after the other, for signals that are there already
        chosen[1:] = [(Kind.SLEEP, Kind.WAIT_FOR_SIGNAL)[n % 2] for n in range(count - 1)]
    steps = tuple(_step(random, ordinal, kind, times) for ordinal, kind in enumerate(chosen))
    moments = tuple(
        (int(random.random() ** 2 * 120_000), _one(random, SIGNALS))
        for _ in range(int(random.random() ** 2 * 5) + (6 if lazy else 0))
    )
    return Slot(
        workflow=workflow,
        definition=Definition(PROJECT, workflow, 1, steps),
        broken=random.random() < 0.01,
        starts=_starts(random),
        nature=Nature(
            fails=_one(random, (0.0, 0.1, 0.3, 0.6)),
            hopeless=_one(random, (0.0, 0.1)),
            defect=_one(random, (0.0, 0.02)),
            slow=0.8 if slow else _one(random, (0.0, 0.2, 0.6)),
            sizes=_FILLING if long else _SIZES,
            poison=int(random.random() * count) if random.random() < 0.04 else None,
        ),
        cancel=_cancel(random),
        prompt=0.9 if lazy else _one(random, (0.0, 0.5, 0.9)),
        last_minute=_one(random, (0.0, 0.5, 0.9)),
        signals=moments,
    )


def _step(random: Random, ordinal: int, kind: Kind, times: _Times) -> Step:
    fields: dict[str, Any] = {}
    if kind is Kind.SLEEP:
        fields = {"sleep_for": _one(random, times.sleeps)}
    elif kind is Kind.WAIT_FOR_SIGNAL:
        fields = {"signal": _one(random, SIGNALS), "timeout": _one(random, times.waits)}
    else:
        attempts = 1 + int(random.random() * 5)
        fields = {
            "target": "there",
            "timeout": _one(random, times.timeouts),
            "max_attempts": attempts,
        }
    return Step(ordinal=ordinal, key=f"step-{ordinal}", kind=kind, **fields)


def _starts(random: Random) -> tuple[Start, ...]:
    at = int(random.random() * 10_000)
    size = _one(random, (20, 20, limits.INLINE_INPUT, limits.INLINE_INPUT + 1, 3_000))
    if random.random() < 0.6:
        return (Start(at, None, size),)
    # The same key from several callers, nearly at once.
    callers = 1 + int(random.random() * 4)
    spread = _one(random, (1, 30, 5_000))
    return tuple(Start(at + int(random.random() * spread), "once", size) for _ in range(callers))


def _cancel(random: Random) -> tuple[str, int] | None:
    drawn = random.random()
    if drawn < 0.6:
        return None
    how = _one(
        random,
        ("at", "act", "act", "write", "parked", "page", "page", "crash", "crash", "crash", "crash"),
    )
    return (how, int(random.random() ** 2 * 60_000) if how == "at" else int(random.random() * 6))
