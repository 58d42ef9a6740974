"""A store with runs of every kind in flight, as one version of the engine leaves it to the next.

`python -m tests.contract.in_flight sqlite|dynamodb FILE` writes it. The golden files of format 1,
sqlite_in_flight.sql and aws/runs_in_flight.json, were written so by the last version that knew no
other: in a checkout of commit 80cab39, with this file copied into it. So it uses nothing newer.
"""

import base64
import json
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from stepwell_engine.adapters.memory.hints import MemoryDispatcher
from stepwell_engine.adapters.secrets.sealed import SealedSecrets
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Attempt, Failed, Outcome, Succeeded
from stepwell_engine.core.run.head import Head
from stepwell_engine.ports import StepRunner
from stepwell_engine.service.projects.definitions import Workflows
from stepwell_engine.service.runs.controls import Controls
from stepwell_engine.service.runs.starts import Starts
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.sweep import Sweep
from tests.contract.homes import SqliteHome
from tools.moto_home import CONTROL, RUNS, DynamoHome

AT: Final = 1_800_000_000_000
PROJECT: Final = "shop"
LARGE: Final = b'"' + b"x" * 900 + b'"'
BUSY, FATAL = Failed("busy"), Failed("no", retryable=False)

Fate = Callable[[Attempt], Outcome]


def _action(key: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "kind": "function", "target": "f", **more}


def _wait(key: str, signal: str, seconds: int) -> dict[str, Any]:
    return {"key": key, "kind": "wait_for_signal", "signal": signal, "timeout_seconds": seconds}


def _undone(*children: int) -> tuple[str, ...]:
    return tuple(f"compensate:c{number}" for number in children)


def _call(target: str) -> dict[str, Any]:
    return {"key": "s", "kind": "subworkflow", "target": target, "timeout_seconds": 7_200}


_UNDO = {"kind": "function", "target": "undo"}
_FAN = (
    {
        "key": "f",
        "kind": "fanout",
        "children": [_action(f"c{number}", compensate=_UNDO) for number in range(10)],
    },
    {"key": "j", "kind": "join"},
)
_NAP = {"key": "n", "kind": "sleep", "sleep_for": "1h"}
WORKFLOWS: Final = {
    "acts": [_action("a"), {"key": "e", "kind": "enqueue", "target": "q", "payload": {}}],
    "long": [_action(f"l{number}") for number in range(30)],
    "naps": [_NAP, _action("a")],
    "waits": [_wait("w", "go", 7_200), _action("a"), _wait("x", "go", 7_200)],
    "expires": [_wait("w", "never", 60), _action("a")],
    "fans": [*_FAN, _action("a")],
    "undoes": [*_FAN, _action("z")],
    "child": [_NAP, _action("a")],
    "parent": [_call("child")],
    "grandchild": [_action("a")],
    "asks": [_call("grandchild")],
}


class Clock:
    """Time that moves only when somebody says so."""

    def __init__(self) -> None:
        self.at = AT

    def now(self) -> int:
        return self.at

    def sleep(self, ms: int) -> None:
        self.at += ms


class Ids:
    """As long as real ones, in order."""

    def __init__(self, first: int) -> None:
        self._last = first

    def run_id(self) -> str:
        self._last += 1
        return f"01890000-0000-7000-8000-{self._last:012}"

    def token(self) -> str:
        self._last += 1
        return f"{self._last:012}"


class Inline:
    """A task group that does each task when it is started."""

    def open(self) -> "Inline":
        return self

    def start(self, task: Callable[[], None]) -> None:
        task()

    def wait(self, ms: int | None) -> None:
        pass

    def close(self) -> None:
        pass


class Killed(BaseException):
    """The process of a worker ends here."""


class Shop:
    """An engine over a home. `fate` says what the next attempts come to."""

    def __init__(self, home: Any, first: int = 0) -> None:
        """`first`: ids and tokens go on from there."""
        self.runs, self.clock, self.attempts = home.runs, Clock(), list[Attempt]()
        self.fate: Fate = lambda _: Succeeded(b"1")
        self.hints, ids = MemoryDispatcher(self.clock), Ids(first)
        self.workflows = Workflows(home.versions, SealedSecrets(bytes(32)), self.clock)
        runners: dict[str, StepRunner] = dict.fromkeys(Kind, self)
        self.advance = Advance(
            home.runs, self.workflows, runners, Inline(), self.hints, self.clock, ids
        )
        self.sweep = Sweep(home.runs, self.hints, self.clock, 5_000)
        self.starts = Starts(home.runs, self.workflows, self.hints, self.clock, ids)
        self.controls = Controls(home.runs, self.workflows, self.hints, self.clock, ids)

    def run(self, attempt: Attempt) -> Outcome:
        self.attempts.append(attempt)
        return self.fate(attempt)

    def start(self, workflow: str, name: str) -> str:
        """`name` is its idempotency key."""
        run_id: str = self.starts.start(PROJECT, workflow, b'{"n":1}', name).head.run_id
        return run_id

    def visit(self, workflow: str, name: str) -> str:
        """Start a run, and let one worker look at it."""
        run_id = self.start(workflow, name)
        with suppress(Killed):
            self.advance.run(run_id, PROJECT, 60_000)
        return run_id

    def signal(self, run_id: str, name: str, payload: bytes, key: str | None = None) -> None:
        self.controls.signal(PROJECT, "waits", run_id, name, payload, key)

    def run_of(self, workflow: str, name: str) -> Head:
        """The head of a run, by its idempotency key."""
        head: Head | None = self.runs.by_key(PROJECT, workflow, name)
        assert head is not None, name
        return head

    def follow_hints(self, *but: str) -> None:
        """What is due, but for some runs."""
        while (hint := self.hints.pop_due(self.clock.at)) is not None:
            if hint.subject.id not in but:
                with suppress(Killed):
                    self.advance.run(hint.subject.id, PROJECT, 60_000)


def fill(shop: Shop) -> None:
    """Leave runs of every kind in flight."""
    for name, steps in WORKFLOWS.items():
        shop.workflows.publish(PROJECT, name, {"steps": steps})
    for leave in (_leave_actions, _leave_waits, _leave_fanouts, _leave_children):
        shop.fate = lambda _: Succeeded(b"1")
        leave(shop)


def _dies(*steps: str) -> Fate:
    def fate(attempt: Attempt) -> Outcome:
        if attempt.step in steps:
            raise Killed
        return Succeeded(LARGE)

    return fate


def _leave_actions(shop: Shop) -> None:
    shop.visit("acts", "over")
    shop.start("acts", "not begun")
    shop.fate = lambda _: BUSY
    shop.visit("acts", "backs off")
    shop.fate = _dies("l25", "a")
    shop.visit("long", "held in the middle")
    cancelled = shop.visit("acts", "cancelled in the middle")
    shop.controls.cancel(PROJECT, "acts", cancelled)


def _leave_waits(shop: Shop) -> None:
    shop.visit("naps", "sleeps")
    shop.visit("expires", "expires")
    waiting = shop.visit("waits", "waits")
    for number in range(12):
        payload = LARGE if number % 5 == 0 else b"%d" % number
        shop.signal(waiting, "other", payload, f"k{number}" if number % 2 else None)
    ready = shop.visit("waits", "has its signals")
    shop.signal(ready, "go", b"1", "once")
    shop.signal(ready, "go", b"2")


def _leave_fanouts(shop: Shop) -> None:
    odd = ("c1", "c3", "c5")
    shop.fate = lambda one: BUSY if one.step in odd else Succeeded(LARGE)
    shop.visit("fans", "fans out")
    shop.fate = _dies("c6")
    shop.visit("fans", "fans out, held in the middle")

    def failing(attempt: Attempt) -> Outcome:
        if attempt.step in ("c2", "z"):
            return FATAL
        return BUSY if attempt.target == "undo" else Succeeded(LARGE)

    shop.fate = failing
    shop.visit("fans", "a child failed")
    shop.fate = lambda one: Succeeded(b"1") if one.step == "c2" else failing(one)
    shop.visit("undoes", "compensates")


def _leave_children(shop: Shop) -> None:
    while shop.hints.pop_due(shop.clock.at) is not None:
        pass  # hints of the others are lost
    shop.visit("parent", "has a child")
    shop.follow_hints()
    deliver = shop.runs.deliver

    def dies(*_: object) -> None:
        raise Killed

    asking = shop.visit("asks", "is to be notified")
    shop.runs.deliver = dies
    shop.follow_hints(asking)
    shop.runs.deliver = deliver


# --- and what becomes of them --------------------------------------------------------------------

ENDS: Final = {  # by idempotency key: the workflow, how it ends, and what is still to be tried then
    "over": ("acts", "succeeded", ()),
    "not begun": ("acts", "succeeded", ("a", "e")),
    "backs off": ("acts", "succeeded", ("a", "e")),
    "held in the middle": ("long", "succeeded", ("l25", "l26", "l27", "l28", "l29")),
    "cancelled in the middle": ("acts", "cancelled", ()),
    "sleeps": ("naps", "succeeded", ("a",)),
    "expires": ("expires", "failed", ()),
    "waits": ("waits", "succeeded", ("a",)),
    "has its signals": ("waits", "succeeded", ("a",)),
    "fans out": ("fans", "succeeded", ("a", "c1", "c3", "c5")),
    "fans out, held in the middle": ("fans", "succeeded", ("a", *(f"c{n}" for n in range(10)))),
    "a child failed": ("fans", "failed", _undone(0, 1, 3, 4, 5, 6, 7)),
    "compensates": ("undoes", "failed", _undone(*range(10))),
    "has a child": ("parent", "succeeded", ()),
    "is to be notified": ("asks", "succeeded", ()),
}


def check_goes_on(home: Any) -> None:
    """Every run goes on and ends, nothing is repeated, nobody is blamed."""
    shop = Shop(home, first=900)
    ids = {name: shop.run_of(workflow, name).run_id for name, (workflow, *_) in ENDS.items()}
    for number in range(2):
        shop.signal(ids["waits"], "go", b"%d" % number)
    for _ in range(12):
        shop.sweep.tick()
        while (at := shop.hints.next_at()) is not None:
            shop.clock.at = max(shop.clock.at, at)
            shop.follow_hints()
        shop.clock.at += 600_000
    tried = Counter((attempt.run_id, attempt.step) for attempt in shop.attempts)
    assert set(tried.values()) == {1}
    for name, (workflow, status, steps) in ENDS.items():
        head = shop.run_of(workflow, name)
        assert (name, head.status) == (name, status)
        assert (name, *sorted(step for run, step in tried if run == head.run_id)) == (name, *steps)
        assert (head.wake_at, head.lease_token, head.lost_leases) == (None, None, 0)
    waited = shop.run_of("waits", "waits")
    assert len(waited.inbox) + waited.overflow_count == 12  # what nobody waited for
    children = [one for one in tried if one[0] not in ids.values()]
    assert [step for _, step in children] == ["a"]  # of the one that slept


def as_json(value: Any) -> Any:
    """An item with its bytes in base64, as DynamoDB itself writes them."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {name: as_json(inner) for name, inner in value.items()}
        case list():
            return [as_json(inner) for inner in value]
    return value


def as_item(value: Any) -> Any:
    """The opposite of as_json."""
    match value:
        case {"B": str(text)}:
            return {"B": base64.b64decode(text)}
        case dict():
            return {name: as_item(inner) for name, inner in value.items()}
        case list():
            return [as_item(inner) for inner in value]
    return value


def _dump(file: Path) -> Iterator[str]:
    with closing(sqlite3.connect(file)) as connection:
        yield from connection.iterdump()
        yield f"PRAGMA user_version = {connection.execute('PRAGMA user_version').fetchone()[0]};"


def main(kind: str, file: str) -> None:
    """Write a golden file."""
    if kind == "dynamodb":
        dynamo = DynamoHome()
        fill(Shop(dynamo))
        items = {"runs": dynamo.items(RUNS), "control": dynamo.items(CONTROL)}
        text = json.dumps(as_json(items), indent=1) + "\n"
        dynamo.close()
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "stepwell.db"
            home = SqliteHome(path)
            fill(Shop(home))
            home.close()
            text = "\n".join(_dump(path)) + "\n"
    Path(file).write_text(text, "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
