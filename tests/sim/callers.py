"""Callers of the API start runs, cancel them and send signals; some react to what a run does."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Protocol

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Attempt
from stepwell_engine.core.run.status import StepStatus
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.errors import NewerFormat, Problem, Unavailable
from stepwell_engine.ports import Clock
from stepwell_engine.service.runs.controls import Controls
from stepwell_engine.service.runs.starts import Starts
from tests.sim.answers import Answers
from tests.sim.definitions import PROJECT, SIGNALS
from tests.sim.ledger import Ledger
from tests.sim.links import Links
from tests.sim.scheduler import EPOCH
from tests.sim.workload import Slot, Start, noise

_TRIES = 3
_FULL = limits.INLINE_MESSAGE
_SIGNAL_SIZES = (20, _FULL - 20, _FULL, _FULL, _FULL, _FULL + 1, 5_000)  # bytes of a payload
_KEYS = 3  # idempotency keys of the signals of a run
_SOON = 40  # ms
_THE_NEXT_ATTEMPT = 5_000  # ms
_BEFORE_THE_NEXT = 50_000  # ms
_NO_WRITES = ("crash", "page", "child start")


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

    def __init__(
        self, links: Links, slots: Sequence[Slot], answers: Answers, spawn: SpawnCaller
    ) -> None:
        """`spawn` plans a caller: its name, what it does on some host, when, and what if the
        host crashes meanwhile.
        """
        self._links = links
        self._slots = {slot.workflow: slot for slot in slots}
        self._answers = answers
        self._spawn_caller = spawn
        self._message = count(1)
        self._attempts: dict[tuple[str, bool], int] = {}
        self._cancelled: set[str] = set()

    def begin(self) -> None:
        """Plan what happens at fixed times."""
        for slot in self._slots.values():
            for start in slot.starts:
                self._plan_start(slot.workflow, start, EPOCH + start.at, tries=3)
            for at, signal in slot.signals:
                body = partial(self._signal_all, slot, signal)
                self._spawn("signal", body, EPOCH + at)
            if slot.cancel is not None and slot.cancel[0] == "at":
                body = partial(self._cancel_all, slot)
                self._spawn("cancel", body, EPOCH + slot.cancel[1])

    # --- reactions ----------------------------------------------------------------------------

    def react(self, what: str, run_id: str) -> None:
        """A head was written, a page will be, or a worker died: a caller may react."""
        ledger = self._links.checks.ledgers[run_id]
        slot = self._slots[ledger.head.workflow]
        parked = what == "commit" and ledger.head.live and ledger.head.lease_token is None
        self._maybe_cancel(what, ledger, slot, parked)
        waits = ledger.step.signal if ledger.step is not None else None
        if what == "page" and self._random() < slot.prompt:
            self._signal_soon(ledger, waits or SIGNALS[int(self._random() * len(SIGNALS))])
        if what == "claim" and waits is not None and self._random() < slot.last_minute:
            self._signal_soon(ledger, waits, most=1)
        if parked and ledger.kind == Kind.WAIT_FOR_SIGNAL:
            self._signal_waiting(ledger, slot)
        if parked and ledger.kind == Kind.SUBWORKFLOW:
            self._child_is_late(ledger, slot)
        parent = self._links.checks.ledgers.get(ledger.head.parent or "")
        if parent is not None and what == "commit" and not ledger.head.live:
            self._maybe_cancel("child ends", parent, self._slots[parent.head.workflow], False)

    def _maybe_cancel(self, what: str, ledger: Ledger, slot: Slot, parked: bool) -> None:
        if slot.cancel is None:
            return
        how, which = slot.cancel
        called = what == "create" and ledger.head.parent is not None
        if (
            (how == "write" and ledger.writes == which and what not in _NO_WRITES)
            or how == what
            or (how == "parked" and parked)
            or (how == "called" and called)
        ):
            self._cancel_soon(ledger, _BEFORE_THE_NEXT if what == "crash" else 0)
        if how == "crowd" and what == "commit" and ledger.unrecorded:
            self._cancel_soon(ledger, _until_the_next(ledger, self._links.scheduler.now))

    def attempt_started(self, attempt: Attempt, lasts: int) -> None:
        """An attempt began: a caller may cancel its run in the middle."""
        ledger = self._links.checks.ledgers[attempt.run_id]
        slot = self._slots[ledger.head.workflow]
        compensates = ledger.compensates(attempt.step)
        key = (attempt.run_id, compensates)
        number = self._attempts[key] = self._attempts.get(key, -1) + 1
        if slot.cancel == ("compensation" if compensates else "attempt", number):
            pause = _THE_NEXT_ATTEMPT if compensates else 0
            self._cancel_soon(ledger, int((lasts + pause) * self._random()))

    def _signal_waiting(self, ledger: Ledger, slot: Slot) -> None:
        step = ledger.step
        opened = ledger.journal.opened(step.key) if step is not None else None
        if step is None or step.signal is None or opened is None:
            return
        now = self._links.scheduler.now
        body = partial(self._signal, ledger, step.signal)
        if self._random() < slot.prompt:
            self._spawn("signal", body, now + int(_SOON * 50 ** (2 * self._random() - 0.5)))
        elif self._random() < slot.last_minute:
            self._spawn("signal", body, self._around(opened.next_at))

    def _child_is_late(self, ledger: Ledger, slot: Slot) -> None:
        """A caller cancels the child about when its parent gives it up."""
        step = ledger.step
        opened = ledger.journal.opened(step.key) if step is not None else None
        if opened is None or opened.status is not StepStatus.WAITING:
            return
        child = self._links.checks.ledgers.get(opened.child or "")
        if child is not None and self._random() < 0.3 * slot.last_minute:
            body = partial(self._cancel, child, cascade=False)
            self._spawn("cancel", body, self._around(opened.next_at))

    def _around(self, at: int | None) -> int:
        now = self._links.scheduler.now
        return max(now, (at or now) + int(2_200 * self._random()) - 1_000)

    def signal_at(self, ledger: Ledger, when: int) -> None:
        """A caller sends a signal with a key then."""
        signal = SIGNALS[int(self._random() * len(SIGNALS))]
        self._spawn("signal", partial(self._signal, ledger, signal, keyed=True), when)

    def _signal_soon(self, ledger: Ledger, signal: str, most: int = _SOON) -> None:
        when = self._links.scheduler.now + int(most * self._random())
        self._spawn("signal", partial(self._signal, ledger, signal), when)

    def _cancel_soon(self, ledger: Ledger, most: int = 0) -> None:
        if ledger.head.run_id in self._cancelled:
            return
        self._cancelled.add(ledger.head.run_id)
        for _ in range(1 + int(1.3 * self._random())):
            when = self._links.scheduler.now + int((_SOON + most) * self._random())
            cascade = self._random() < self._slots[ledger.head.workflow].cascade
            self._spawn("cancel", partial(self._cancel, ledger, cascade=cascade), when)

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
            except (Problem, NewerFormat) as problem:
                self._links.scheduler.note("start:", problem)
                return
            except Unavailable:
                if start.key is None:
                    return  # a second try would start a second run
                host.clock.sleep(1 + int(10_000 * self._random() ** 2))
                continue
            self._answers.started(started.head, started.created, start.key)
            return

    def _cancel_all(self, slot: Slot, host: ApiHost) -> None:
        for ledger in self._runs(slot):
            self._cancel(ledger, host, self._random() < slot.cascade)

    def _cancel(self, ledger: Ledger, host: ApiHost, cascade: bool) -> None:
        run_id, workflow = ledger.head.run_id, ledger.head.workflow
        try:
            host.controls.cancel(PROJECT, workflow, run_id, cascade)
        except (Problem, Unavailable, NewerFormat) as problem:
            self._links.scheduler.note("cancel:", problem)
        else:
            self._answers.cancelled(run_id, cascade)

    def _signal_all(self, slot: Slot, signal: str, host: ApiHost) -> None:
        for ledger in self._runs(slot):
            self._signal(ledger, signal, host)

    def _signal(self, ledger: Ledger, signal: str, host: ApiHost, keyed: bool = False) -> None:
        run_id, workflow = ledger.head.run_id, ledger.head.workflow
        number = next(self._message)
        key = None
        if keyed or self._random() < self._slots[workflow].keyed:
            # Whoever uses a key again sends the same signal again.
            number = int(self._random() * _KEYS)
            signal = SIGNALS[number % len(SIGNALS)]
            key = f"key-{number}"
        size = _SIGNAL_SIZES[number % len(_SIGNAL_SIZES)]
        payload = jsonvalue.encode(f"{number:08}{noise(number, size - 10)}")
        try:
            sent = host.controls.signal(PROJECT, workflow, run_id, signal, payload, key)
        except (Problem, Unavailable, NewerFormat) as problem:
            self._links.scheduler.note("signal:", problem)
        else:
            self._answers.signalled(sent)

    def _runs(self, slot: Slot) -> list[Ledger]:
        """The runs of a workflow, whether or not their starts were answered."""
        ledgers = self._links.checks.ledgers.values()
        return [one for one in ledgers if one.head.workflow == slot.workflow]

    def _random(self) -> float:
        return self._links.scheduler.random.random()


def _until_the_next(ledger: Ledger, now: int) -> int:
    """When the next of a run's steps is tried again, in ms from now."""
    pauses = [(one.next_at or 0) - now for one in ledger.journal.open]
    return min((pause for pause in pauses if pause > 0), default=0)
