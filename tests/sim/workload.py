"""What is asked of the engine in one seed: workflows, starts, signals, cancels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from string import ascii_letters

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Definition
from stepwell_engine.core.declared.program import DeclaredProgram
from stepwell_engine.errors import Problem, Unavailable
from tests.sim.definitions import PROJECT, SIGNALS, Drawing, Style, T

# In bytes. Around what stays inline, and enough of them to fill a page.
_FULL = limits.INLINE_OUTPUT
_MESSAGE = limits.INLINE_MESSAGE
_SIZES = (30, 120, _MESSAGE, _MESSAGE + 1, _FULL - 50, _FULL - 10, _FULL, _FULL + 1, 2_500)
_FILLING = (_FULL - 60, _FULL - 40, _FULL - 20, _FULL - 10, _FULL, _FULL, _FULL + 1)
_STYLES = (
    *(Style.PLAIN, Style.SLOW, Style.LONG, Style.LAZY, Style.LAZY),
    *(Style.MIXED, Style.MIXED, Style.MIXED),
    *(Style.WIDE, Style.WIDE, Style.WIDE),
    *(Style.PARENT, Style.PARENT, Style.PARENT, Style.PARENT),
)
# When a run is cancelled: see Slot.
_MOMENTS = (
    *("at", "attempt", "attempt", "attempt", "crowd", "crowd", "crowd"),
    *("write", "parked", "page", "page"),
    *("crash", "crash", "crash", "crash"),
    *("compensation", "compensation", "compensation", "compensation"),
    *("child start", "child start", "called", "child ends"),
)

# Text that does not compress, so that what is stored outgrows a head.
_NOISE = "".join(Random(0).choices(ascii_letters, k=20_000))


def noise(offset: int, length: int) -> str:
    """Text of a length; it differs from offset to offset."""
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
    """How the outside world answers the attempts of a workflow. Probabilities."""

    fails: float
    compensation_fails: float
    hopeless: float  # of a failure: it must not be retried
    defect: float  # the step runner itself raises
    shortage: float  # the host lacks something: the attempt is deferred
    slow: float  # takes nearly as long as it may, or longer
    sizes: tuple[int, ...]
    poison: int | None  # the ordinal of a step that kills its worker


@dataclass(frozen=True)
class Slot:
    """One workflow of the seed and what is done to its runs.

    `cancel`: when ("at", ms after the beginning; "attempt", at the n-th attempt of a step;
    "compensation", at the n-th attempt of a compensation; "crowd", while one attempt is in flight
    and another action backs off; "write", at the n-th write of the head; "parked"; "page", as one
    is being written; "crash", of one of its workers; "child start", as it starts a child;
    "called", as it was started as a child; "child ends"), None: never; with its children in
    `cascade` of the cases.
    `prompt`: how likely a signal comes soon after the run waits for it, or as a page is being
    written; `last_minute`: a signal around the end of the wait, or as a worker looks at it, or
    the cancel of a child around the end of its time; `signals`: at these times; `keyed`: how many
    of the signals carry one of a few keys. `disabled`: no run starts from … until … (ms).
    """

    workflow: str
    definition: Definition
    broken: bool
    starts: tuple[Start, ...]
    nature: Nature
    cancel: tuple[str, int] | None
    cascade: float
    prompt: float
    last_minute: float
    signals: tuple[tuple[int, str], ...]
    keyed: float
    disabled: tuple[int, int] | None


class Catalog:
    """The definitions of a seed, as the service asks for them."""

    def __init__(
        self,
        slots: Sequence[Slot],
        elapsed: Callable[[], int],
        down: Callable[[], bool],
        program: type[DeclaredProgram],
    ) -> None:
        """`elapsed`: ms since the beginning. `down`: whether a call is not answered."""
        self._slots = {slot.workflow: slot for slot in slots}
        self._elapsed = elapsed
        self._down = down
        self._program = program

    def enabled(self, project: str, workflow: str) -> int:
        """Every workflow that exists has one version."""
        if self._down():
            raise Unavailable("the store did not answer")
        slot = self._slots.get(workflow)
        if slot is None:
            raise Problem("not_found", f"there is no workflow {workflow}")
        if slot.disabled is not None and slot.disabled[0] <= self._elapsed() < slot.disabled[1]:
            raise Problem("workflow_disabled", f"{workflow} is disabled")
        return slot.definition.version

    def load(self, project: str, workflow: str, version: int) -> DeclaredProgram:
        """The program; ValueError if the slot's cannot be read."""
        if self._down():
            raise Unavailable("the store did not answer")
        slot = self._slots[workflow]
        if (project, version) != (PROJECT, 1):
            raise KeyError(f"{project} {workflow} {version}")
        if slot.broken:
            raise ValueError("a step without a key")
        return self._program(slot.definition)

    def unreadable(self, project: str, workflow: str, version: int) -> DeclaredProgram:
        """No steps."""
        return DeclaredProgram(Definition(project, workflow, version, ()))


def draw_slots(random: Random) -> tuple[Slot, ...]:
    """One to four workflows; the first is started, the others are started or called."""
    count = _one(random, (1, 1, 1, 2, 2, 3, 4))
    styles = [_one(random, _STYLES) for _ in range(count)]
    if Style.PARENT in styles and count == 1:
        styles.append(_one(random, _STYLES))
    names = [f"flow-{number}" for number in range(len(styles))]
    calls = Style.PARENT in styles
    return tuple(
        _slot(random, name, style, [other for other in names if other != name], calls)
        for name, style in zip(names, styles, strict=True)
    )


def _one(random: Random, options: Sequence[T]) -> T:
    return options[int(random.random() * len(options))]


def _slot(random: Random, workflow: str, style: Style, targets: list[str], calls: bool) -> Slot:
    definition = Drawing(random, workflow, style, targets).definition()
    lazy = style is Style.LAZY
    moments = tuple(
        (int(random.random() ** 2 * 120_000), _one(random, SIGNALS))
        for _ in range(int(random.random() ** 2 * 5) + (6 if lazy else 0))
    )
    only_called = calls and workflow != "flow-0" and style is not Style.PARENT
    off = int(random.random() * 60_000)
    disabled = (off, off + int(random.random() * 240_000)) if random.random() < 0.2 else None
    return Slot(
        workflow=workflow,
        definition=definition,
        broken=random.random() < 0.01,
        starts=() if only_called and random.random() < 0.7 else _starts(random),
        nature=_nature(random, style, len(definition.flat)),
        cancel=_cancel(random),
        cascade=_one(random, (0.0, 0.5, 1.0)),
        prompt=0.9 if lazy else _one(random, (0.0, 0.5, 0.9)),
        last_minute=_one(random, (0.0, 0.5, 0.9)),
        signals=moments,
        keyed=_one(random, (0.0, 0.5, 0.9)),
        disabled=disabled,
    )


def _nature(random: Random, style: Style, steps: int) -> Nature:
    long = style in (Style.LAZY, Style.LONG)
    return Nature(
        fails=_one(random, (0.0, 0.1, 0.3, 0.6)),
        compensation_fails=_one(random, (0.0, 0.2, 0.5)),
        hopeless=_one(random, (0.0, 0.1, 0.5)),
        defect=_one(random, (0.0, 0.02)),
        shortage=_one(random, (0.0, 0.0, 0.1)),
        slow=0.8 if style is Style.SLOW else _one(random, (0.0, 0.2, 0.6)),
        sizes=_FILLING if long else _SIZES,
        poison=int(random.random() * steps) if random.random() < 0.1 else None,
    )


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
    if random.random() < 0.6:
        return None
    how, early = _one(random, _MOMENTS), random.random() ** 2
    return (how, int(early * 60_000) if how == "at" else int(early * 6))
