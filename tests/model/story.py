"""What a scenario of the model is made of, and what a reader sees of a run: plain data.

All times in ms since the start of the root run. Outputs are compact JSON text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Path = tuple[tuple[str, int], ...]
"""Which run: the step keys and attempts that started it, from the root (the empty path) down."""

Step = Mapping[str, Any]


@dataclass(frozen=True)
class Try:
    """What one attempt of an action comes to: a failure if there is an `error`."""

    takes: int = 0
    output: str | None = None
    error: str | None = None
    code: str | None = None
    final: bool = False  # not worth a retry
    retry_after: int = 0


@dataclass(frozen=True)
class Event:
    """What a user does to a run, if it is live then: send a signal, or (None) cancel it."""

    at: int
    path: Path
    signal: str | None = None
    payload: str = "null"
    key: str | None = None
    cascade: bool = False


@dataclass(frozen=True)
class Workflow:
    """A workflow of one version, which may be disabled, or stored in a form nobody can read."""

    document: Mapping[str, Any]
    state: Literal["enabled", "disabled", "unreadable"] = "enabled"


@dataclass(frozen=True)
class Bounds:
    """The limits that a test can reach."""

    output: int = 256 * 1024
    attempts: int = 10_000
    at_once: int = 8
    depth: int = 5


@dataclass(frozen=True)
class Scenario:
    """Everything that decides what becomes of a root run of `root`.

    `script(workflow, start_number, key, attempt)` is what an attempt comes to; `start_number` is
    the attempt of the parent's step that started the run (1 for the root). Events are in
    the order of time.
    """

    workflows: Mapping[str, Workflow]
    root: str
    script: Callable[[str, int, str, int], Try]
    events: Sequence[Event] = ()
    bounds: Bounds = Bounds()


@dataclass
class Row:
    """A step, or the compensation of one, as a reader sees it."""

    key: str
    kind: str
    started: int | None = None
    status: str = "pending"
    attempt: int = 0
    finished: int | None = None
    output: str | None = None
    error: str | None = None
    code: str | None = None
    child: Path | None = None
    parent: str | None = None  # the key of the fan-out that it belongs to
    due: int = 0

    def end(self, status: str, at: int) -> None:
        self.status, self.finished = status, at


@dataclass
class History:
    """A run that has ended. `attempts` are (time, key, attempt) in the order of their starts."""

    started: int
    ended: int = 0
    status: str = ""
    cursor: int = 0
    output: str | None = None
    last_error: str | None = None
    compensation: str = "none"
    compensating: str | None = None
    too_deep: bool = False
    rows: list[Row] = field(default_factory=list)
    attempts: list[tuple[int, str, int]] = field(default_factory=list)
