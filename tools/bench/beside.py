"""Runs that are parked, and one that moves beside them: whatever the store, it must not notice."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from stepwell_engine import limits
from stepwell_engine.adapters.memory.hints import MemoryDispatcher
from stepwell_engine.adapters.process.system import RandomIds, SystemClock
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Attempt, Outcome, Succeeded
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind
from stepwell_engine.core.run.status import Status
from stepwell_engine.wiring.engine import assemble
from stepwell_engine.wiring.stores import Capabilities, Stores

PROJECT = "shop"
SLEEPING, WAITING = "sleeping", "order"  # workflows whose runs park
BUDGET: Final = limits.MINUTE
LOOK_AHEAD: Final = 5 * limits.SECOND
EVERY_TENTH: Final = 10

Watch = Callable[[str], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Nothing:
    """Every attempt succeeds at once; a secret stays as it is."""

    def run(self, attempt: Attempt) -> Outcome:
        """Succeed."""
        return Succeeded(b"%d" % attempt.number)

    def seal(self, plain: str, project: str) -> str:
        """The text itself."""
        return plain

    def open(self, sealed: str, project: str, within: int | None = None) -> str:
        """The text itself."""
        return sealed


NOTHING: Final = Nothing()


class Beside:
    """The engine over a store, with a workflow whose runs sleep and one whose runs wait."""

    def __init__(self, stores: Stores) -> None:
        self._runs = stores.runs
        self._clock = SystemClock()
        self._ids = RandomIds(self._clock)
        self._engine = assemble(
            stores,
            dict.fromkeys(Kind, NOTHING),
            MemoryDispatcher(self._clock),
            self._clock,
            self._ids,
            Capabilities(frozenset({"url"}), frozenset(), LOOK_AHEAD),
        )
        services = self._engine.services
        services.identity.create_project("acme", PROJECT)
        services.resources.put_function(PROJECT, "work", {"url": "https://example.com/work"})
        for workflow, park in (
            (WAITING, {"key": "wait", "kind": "wait_for_signal", "signal": "approved"}),
            (SLEEPING, {"key": "nap", "kind": "sleep", "sleep_for": "30d"}),
        ):
            work = [
                {"key": key, "kind": "function", "target": "work"} for key in ("before", "after")
            ]
            services.workflows.publish(PROJECT, workflow, {"steps": [work[0], park, work[1]]})

    def move(self, watch: Watch) -> None:
        """A run from its start to its end, watched as `advance`, `signal` and `tick`."""
        run_id = self._start(WAITING)
        with watch("advance"):
            self._engine.advance.run(run_id, PROJECT, BUDGET)
        with watch("signal"):
            self._engine.services.controls.signal(PROJECT, WAITING, run_id, "approved", b"{}")
        with watch("tick"):
            swept = self._engine.sweep.tick()
        with watch("advance"):
            self._engine.advance.run(run_id, PROJECT, BUDGET)
        head = self._runs.get(run_id)
        if swept.hints != 1 or head is None or head.status is not Status.SUCCEEDED:
            raise RuntimeError(f"the run that was signalled did not go on: {swept}, {head}")

    def parked(self, count: int) -> Iterator[Head]:
        """New heads as those of runs that sleep and wait, some with a signal that is early."""
        asleep, slots = self._park(SLEEPING), self._park(WAITING)
        early = InboxMessage(MessageKind.SIGNAL, "early", self._clock.now(), b'{"amount":49}')
        for number in range(count):
            wakes = self._clock.now() + limits.HOUR + number
            head = replace(
                slots if number % 2 else asleep,
                run_id=self._ids.run_id(),
                ready_at=wakes,
                wake_at=wakes,
            )
            if number % EVERY_TENTH == 1:
                head = replace(head, inbox=MappingProxyType({f"early-{number}": early}))
            yield head

    def _park(self, workflow: str) -> Head:
        run_id = self._start(workflow)
        self._engine.advance.run(run_id, PROJECT, BUDGET)
        head = self._runs.get(run_id)
        if head is None or head.status not in (Status.SLEEPING, Status.WAITING):
            raise RuntimeError(f"a run of {workflow} did not park: {head}")
        return head

    def _start(self, workflow: str) -> str:
        return self._engine.services.starts.start(PROJECT, workflow, b"{}").head.run_id
