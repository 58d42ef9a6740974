"""Random valid scenarios: definitions, what their attempts come to, and what users do meanwhile.

Every choice is one from a list that begins with the plainest, so that a scenario that fails
shrinks to a plain one.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

from tests.model.reference import ACTIONS
from tests.model.story import Bounds, Event, Path, Scenario, Step, Try, Workflow

ROOT: Final = "w0"
NAMES: Final = ("w1", "w2", "w3")
MISSING: Final = "nowhere"
TARGETS: Final = {
    "function": "charge",
    "webhook": "https://example.com/hook",
    "sql": "select 1",
    "enqueue": "emails",
}
OUTPUT: Final = 200  # bytes: the largest output that is kept
SIGNALS: Final = ("go", "stop")
Draw = st.DrawFn


# --- what attempts come to --------------------------------------------------------------------


@dataclass(frozen=True)
class Luck:
    """How an action fares: the first attempts, one after the other, then all that follow.

    `o`: an output; `n`: none; `j`: null; `b`: a longer output; `m`: the largest that is kept;
    `x`: a larger one; `f`: fails; `t`: times out; `l`: asks for a later retry; `u`: fails for good.
    """

    first: str = ""
    then: str = "o"
    takes: tuple[int, ...] = (0,)

    def attempt(self, number: int, text: str) -> Try:
        """The `number`-th attempt, from 1; `text` makes its output or error its own."""
        symbol = self.first[number - 1] if number <= len(self.first) else self.then
        takes = self.takes[(number - 1) % len(self.takes)]
        return _try(symbol, takes, text)


def _try(symbol: str, takes: int, text: str) -> Try:
    match symbol:
        case "n":
            return Try(takes)
        case "j":
            return Try(takes, "null")
        case "b":
            return Try(takes, json.dumps(f"{text} {'é' * 40}", ensure_ascii=False))
        case "m":
            return Try(takes, json.dumps("m" * (OUTPUT - 2)))
        case "x":
            return Try(takes, json.dumps("x" * (OUTPUT - 1)))
        case "f":
            return Try(takes, error=f"{text} failed")
        case "t":
            return Try(takes, error=f"{text} took too long", code="timeout")
        case "l":
            return Try(takes, error=f"{text} is busy", retry_after=7_000)
        case "u":
            return Try(takes, error=f"{text} is unknown", code="unknown_resource", final=True)
    return Try(takes, json.dumps(text))


_COURSES: Final = (
    ("", "o"),
    ("", "n"),
    ("", "f"),
    ("", "u"),
    ("f", "o"),
    ("ff", "b"),
    ("t", "u"),
    ("l", "n"),
    ("", "j"),
    ("", "b"),
    ("fff", "o"),
    ("", "m"),
    ("", "x"),
)
_PACES: Final = ((0,), (100,), (300, 200), (700,), (0, 2_500), (6_000, 100))
LUCKS: Final = tuple(Luck(first, then, takes) for takes in _PACES for first, then in _COURSES)
GOOD: Final = tuple(one for one in LUCKS if not one.first and one.then in "onjb")


# --- definitions ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Theme:
    """What scenarios are about. `kinds` are drawn from; the events too."""

    kinds: tuple[str, ...]
    events: tuple[str, ...] = ()
    most_steps: int = 5
    most_children: int = 12
    workflows: int = 1
    luck: tuple[Luck, ...] = LUCKS
    child_seconds: tuple[float | None, ...] = (None, 2, 1, 5, 60, 100_000)
    ceilings: tuple[int, ...] = (10_000,)
    compensated: int = 1  # in three actions


@st.composite
def scenarios(draw: Draw, theme: Theme) -> Scenario:
    """A scenario whose definitions are all valid."""
    lucks: dict[tuple[str, str], tuple[Luck, int]] = {}
    names = (ROOT, *NAMES[: theme.workflows - 1])
    workflows = {}
    for name in names:
        others = [other for other in names if other not in (ROOT, name)]
        steps = _Writer(draw, theme, [*others, *([ROOT] if name != ROOT else []), MISSING]).steps()
        for step in actions_of(steps):
            budget = step[1].get("max_attempts", 3)
            lucks[name, step[0]] = (draw(st.sampled_from(theme.luck)), budget)
        states = ("enabled",) * 6 + (("disabled", "unreadable") if name != ROOT else ())
        workflows[name] = Workflow({"steps": steps}, draw(st.sampled_from(states)))
    return Scenario(
        workflows=workflows,
        root=ROOT,
        script=Script(lucks),
        events=_events(draw, theme, workflows),
        bounds=Bounds(output=OUTPUT, attempts=draw(st.sampled_from(theme.ceilings))),
    )


def _targets(names: Sequence[str], name: str) -> list[str]:
    """What a sub-workflow may name: any workflow but its own, and one that is not there."""
    others = [other for other in names if other not in (ROOT, name)]
    return [*others, *others, *([ROOT] if name != ROOT else []), MISSING]


@dataclass(frozen=True)
class Script:
    """What the attempts come to: each action has its luck, which spans all starts of a run."""

    lucks: Mapping[tuple[str, str], tuple[Luck, int]]

    def __call__(self, workflow: str, start_number: int, key: str, attempt: int) -> Try:
        """See reference.Scenario."""
        luck, budget = self.lucks[workflow, key]
        return luck.attempt(
            (start_number - 1) * budget + attempt, f"{workflow} {key} {start_number} {attempt}"
        )


class _Writer:
    """Writes the steps of one definition."""

    def __init__(self, draw: Draw, theme: Theme, targets: Sequence[str]) -> None:
        self._draw = draw
        self._theme = theme
        self._targets = targets
        self._keys = 0

    def steps(self) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = []
        for _ in range(self._one_of(range(1, self._theme.most_steps + 1))):
            steps += self._step(self._one_of(self._theme.kinds))
        return steps

    def _one_of(self, choices: Sequence[Any]) -> Any:
        return self._draw(st.sampled_from(choices))

    def _step(self, kind: str) -> list[dict[str, Any]]:
        body: dict[str, Any] = {"key": self._key(), "kind": kind}
        match kind:
            case "sleep":
                return [body | {"sleep_for": self._one_of(("500ms", "2s", "1m", 3600, "30d"))}]
            case "wait_for_signal":
                seconds = self._one_of((None, 1, 2.5, 60, 7200))
                return [body | {"signal": self._one_of(SIGNALS)} | _seconds(seconds)]
            case "fanout":
                count = self._one_of(range(1, self._theme.most_children + 1))
                children = [self._action(self._key()) for _ in range(count)]
                return [body | {"children": children}, {"key": self._key(), "kind": "join"}]
            case "subworkflow":
                body |= _seconds(self._one_of(self._theme.child_seconds))
                body |= {"target": self._one_of(self._targets)}
                body |= self._one_of(({}, {"payload": {"warehouse": "eu-1", "urgent": True}}))
                return [body | self._budget() | self._compensation()]
        return [self._action(body["key"])]

    def _key(self) -> str:
        self._keys += 1
        return f"s{self._keys}"

    def _action(self, key: str) -> dict[str, Any]:
        return {"key": key} | self._plain_action() | self._compensation()

    def _plain_action(self) -> dict[str, Any]:
        kind = self._one_of(tuple(TARGETS))
        return {"kind": kind, "target": TARGETS[kind]} | self._budget()

    def _budget(self) -> dict[str, Any]:
        budget = self._one_of((1, 2, None, 13))
        return {} if budget is None else {"max_attempts": budget}

    def _compensation(self) -> dict[str, Any]:
        wanted = self._one_of(
            (False,) * (3 - self._theme.compensated) + (True,) * self._theme.compensated
        )
        return {"compensate": self._plain_action()} if wanted else {}


def _seconds(seconds: float | None) -> dict[str, Any]:
    return {} if seconds is None else {"timeout_seconds": seconds}


def actions_of(steps: Sequence[Step]) -> list[tuple[str, Step]]:
    """The actions of a definition and its compensations, by what their attempts are called."""
    flat = [step for top in steps for step in (top, *top.get("children", ()))]
    compensations = [
        (f"compensate:{one['key']}", one["compensate"]) for one in flat if "compensate" in one
    ]
    return [(one["key"], one) for one in flat if one["kind"] in ACTIONS] + compensations


# --- what users do ----------------------------------------------------------------------------

_MOMENTS: Final = (0, 1, 3, 5, 10, 21, 25, 40, 62, 605, 36_010, 26_000_000)


def _events(draw: Draw, theme: Theme, workflows: Mapping[str, Workflow]) -> tuple[Event, ...]:
    if not theme.events:
        return ()
    events = []
    for number in range(draw(st.integers(0, 5))):
        # Engine time is in steps of 100 ms; a millisecond of its own keeps an event from
        # happening together with anything else.
        at = 100 * draw(st.sampled_from(_MOMENTS)) + number + 1
        path = _path(draw, workflows)
        what = draw(st.sampled_from(theme.events))
        if what in SIGNALS:
            payload = json.dumps("p" * draw(st.sampled_from((number, 70))))
            key = draw(st.sampled_from((None, None, "once")))
            events.append(Event(at, path, what, payload, key))
        else:
            events.append(Event(at, path, cascade=what == "cascade"))
    return tuple(sorted(events, key=lambda one: one.at))


def _path(draw: Draw, workflows: Mapping[str, Workflow]) -> Path:
    """The path of a run that may be started."""
    path: Path = ()
    name = ROOT
    while True:
        calls = [
            step
            for step in workflows[name].document["steps"]
            if step["kind"] == "subworkflow" and step["target"] in workflows
        ]
        if not calls or len(path) == 5:
            return path
        call = draw(st.sampled_from([None, *calls, *calls]))
        if call is None:
            return path
        path = (*path, (call["key"], draw(st.sampled_from((1, 1, 2)))))
        name = call["target"]


Find = Callable[[Scenario], bool]
