"""Users of the API: they start runs, cancel them, send signals; some watch the run to do so."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Protocol

from stepwell_engine import limits
from stepwell_engine.core import jsonvalue
from stepwell_engine.core.definition import Kind
from stepwell_engine.errors import Problem, Unavailable
from stepwell_engine.ports import Clock
from stepwell_engine.service.controls import Controls
from stepwell_engine.service.starts import Starts
from tests.sim.ports import Links
from tests.sim.scheduler import EPOCH
from tests.sim.workload import PROJECT, SIGNALS, Slot, Start, noise

_TRIES = 3
_FULL = limits.INLINE_MAIL
_SIGNAL_SIZES = (20, _FULL - 20, _FULL, _FULL, _FULL, _FULL + 1, 5_000)  # bytes of a payload
_SOON = 40  # ms
_BEFORE_THE_NEXT = 50_000  # ms


class ApiHost(Protocol):
    """What a host offers to callers."""

    @property
    def clock(self) -> Clock: ...

    @property
    def starts(self) -> Starts: ...

    @property
    def controls(self) -> Controls: ...


Body = Callable[[ApiHost], None]
SpawnCaller = Callable[[str, Body, int, Callable[[], None]], None]


class Callers:
    """Plans the calls of a seed, and more of them as the runs go on."""

    def __init__(self, links: Links, slots: Sequence[Slot], spawn: SpawnCaller) -> None:
        """`spawn` plans a caller: its name, what it does on some host, when, and what if the
        host crashes meanwhile.
        """
        self._links = links
        self._slots = {slot.workflow: slot for slot in slots}
        self._spawn_caller = spawn
        self._mail = count(1)
        self._acts: dict[str, int] = {}
        self._cancelled: set[str] = set()

    def begin(self) -> None:
        """Plan what happens at fixed times."""
        for slot in self._slots.values():
            for start in slot.starts:
                self._plan_start(slot.workflow, start, EPOCH + start.at, tries=3)
            for at, signal in slot.signals:
                self._spawn("signal", partial(self._signal, slot.workflow, signal), EPOCH + at)
            if slot.cancel is not None and slot.cancel[0] == "at":
                body = partial(self._cancel, slot.workflow)
                self._spawn("cancel", body, EPOCH + slot.cancel[1])

    # --- reactions ----------------------------------------------------------------------------

    def react(self, what: str, run_id: str) -> None:
        """A head was written, a page will be, or a worker died: somebody may do something now."""
        ledger = self._links.checks.ledgers[run_id]
        slot = self._slots[ledger.head.workflow]
        parked = what == "commit" and ledger.head.live and ledger.head.token is None
        if slot.cancel is not None:
            how, which = slot.cancel
            if how == "write" and ledger.writes == which and what not in ("crash", "page"):
                self._cancel_soon(run_id)
            elif how == what or (how == "parked" and parked):
                self._cancel_soon(run_id, _BEFORE_THE_NEXT if what == "crash" else 0)
        waits = ledger.step.signal if ledger.step is not None else None
        if what == "page" and self._random() < slot.prompt:
            self._signal_soon(slot, waits or SIGNALS[int(self._random() * len(SIGNALS))])
        if what == "claim" and waits is not None and self._random() < slot.last_minute:
            self._signal_soon(slot, waits, most=1)
        if parked and ledger.kind == Kind.WAIT_FOR_SIGNAL:
            self._signal_waiting(run_id, slot)

    def act_started(self, run_id: str, lasts: int) -> None:
        """An act began: somebody may cancel its run in the middle."""
        slot = self._slots[self._links.checks.ledgers[run_id].head.workflow]
        number = self._acts[run_id] = self._acts.get(run_id, -1) + 1
        if slot.cancel == ("act", number):
            self._cancel_soon(run_id, int(lasts * self._random()))

    def _signal_waiting(self, run_id: str, slot: Slot) -> None:
        ledger = self._links.checks.ledgers[run_id]
        step = ledger.step
        opened = ledger.journal.opened(step.ordinal) if step is not None else None
        if step is None or step.signal is None or opened is None:
            return
        now = self._links.scheduler.now
        body = partial(self._signal, slot.workflow, step.signal)
        if self._random() < slot.prompt:
            self._spawn("signal", body, now + int(_SOON * 50 ** (2 * self._random() - 0.5)))
        elif self._random() < slot.last_minute:
            around = int(2_200 * self._random()) - 1_000
            self._spawn("signal", body, max(now, (opened.next_at or now) + around))

    def _signal_soon(self, slot: Slot, signal: str, most: int = _SOON) -> None:
        when = self._links.scheduler.now + int(most * self._random())
        self._spawn("signal", partial(self._signal, slot.workflow, signal), when)

    def _cancel_soon(self, run_id: str, most: int = 0) -> None:
        if run_id in self._cancelled:
            return
        self._cancelled.add(run_id)
        workflow = self._links.checks.ledgers[run_id].head.workflow
        for _ in range(1 + int(1.3 * self._random())):
            when = self._links.scheduler.now + int((_SOON + most) * self._random())
            self._spawn("cancel", partial(self._cancel, workflow), when)

    def _plan_start(self, workflow: str, start: Start, when: int, tries: int) -> None:
        """A client whose host crashes tries again."""

        def again() -> None:
            later = self._links.scheduler.now + int(10_000 * self._random())
            if tries > 1:
                self._plan_start(workflow, start, later, tries - 1)

        self._spawn("start", partial(self._start, workflow, start), when, again)

    def _spawn(
        self, name: str, body: Body, when: int, failed: Callable[[], None] = lambda: None
    ) -> None:
        self._spawn_caller(name, body, when, failed)

    # --- calls --------------------------------------------------------------------------------

    def _start(self, workflow: str, start: Start, host: ApiHost) -> None:
        data = jsonvalue.encode("x" * (start.input_size - 2))
        for _ in range(_TRIES):
            try:
                started = host.starts.start(PROJECT, workflow, data, start.key)
            except Unavailable:
                if start.key is None:
                    return  # a second try would start a second run
                host.clock.sleep(1 + int(10_000 * self._random() ** 2))
                continue
            self._links.checks.start_answered(started.head, started.created, start.key)
            return

    def _cancel(self, workflow: str, host: ApiHost) -> None:
        for run_id in self._runs(workflow):
            try:
                host.controls.cancel(PROJECT, workflow, run_id)
            except (Problem, Unavailable) as problem:
                self._links.scheduler.note("cancel:", problem)
            else:
                self._links.checks.control_answered("cancel", run_id, "")

    def _signal(self, workflow: str, signal: str, host: ApiHost) -> None:
        for run_id in self._runs(workflow):
            number = next(self._mail)
            size = _SIGNAL_SIZES[int(self._random() * len(_SIGNAL_SIZES))]
            payload = jsonvalue.encode(f"{number:08}{noise(number, size - 10)}")
            try:
                sent = host.controls.signal(PROJECT, workflow, run_id, signal, payload)
            except (Problem, Unavailable) as problem:
                self._links.scheduler.note("signal:", problem)
            else:
                self._links.checks.control_answered("deliver", run_id, sent.id)

    def _runs(self, workflow: str) -> list[str]:
        """The runs of a workflow, whether or not their starts were answered."""
        ledgers = self._links.checks.ledgers.items()
        return [run_id for run_id, ledger in ledgers if ledger.head.workflow == workflow]

    def _random(self) -> float:
        return self._links.scheduler.random.random()
