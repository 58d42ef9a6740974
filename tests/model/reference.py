"""What a declared run does, written straight from the specification: nothing of the engine is here.

Given the definitions as they are published, what every attempt comes to, and what users do
meanwhile, `predict` says what a reader sees of every run in the end. A run is played from its
start to its end as an ordinary function would be; a child is played when its parent starts it.
All times in ms since the start of the root run. Outputs are compact JSON text.

Texts that the specification does not fix are patterns, where `*` stands for anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.model.story import History, Path, Row, Scenario, Step, Try
from tests.model.terms import LONGEST_BACKOFF, attempts, backoff, duration

ACTIONS: Final = frozenset({"enqueue", "sql", "webhook", "function"})
DEFAULT_SIGNAL_SECONDS: Final = 7 * 24 * 3600
DEFAULT_CHILD_SECONDS: Final = 24 * 3600


def predict(scenario: Scenario) -> dict[Path, History]:
    """The history of the root run and of every run below it."""
    histories: dict[Path, History] = {}
    _Run(scenario, histories, (), scenario.root, 0, None).play()
    return histories


class TooManyRuns(Exception):
    """The scenario starts more runs than a test should wait for."""


class _Cancelled(Exception):
    """The run was cancelled."""


class _StepFailed(Exception):
    """A step failed for good: the run fails, and is compensated."""

    def __init__(self, row: Row) -> None:
        super().__init__(row)
        self.row = row


class _Structural(Exception):
    """The run itself is wrong: it fails, and nothing is compensated."""


@dataclass(frozen=True)
class _Stop:
    """When a run is cancelled, and whether its child is too. `given_up`: its time was over."""

    at: int
    cascade: bool = False
    given_up: bool = False


class _Run:
    def __init__(
        self,
        scenario: Scenario,
        histories: dict[Path, History],
        path: Path,
        workflow: str,
        start: int,
        stop: _Stop | None,
    ) -> None:
        """`stop` is how the run is cancelled from above, if it has not ended before."""
        self.scenario, self.histories, self.path, self.workflow = (
            scenario,
            histories,
            path,
            workflow,
        )
        self.now = start
        self.start_number = path[-1][1] if path else 1
        mine = [one for one in scenario.events if one.path == path and one.at >= start]
        cancels = [_Stop(one.at, one.cascade) for one in mine if one.signal is None]
        self.stop = min([*cancels, *([stop] if stop else [])], key=lambda one: one.at, default=None)
        # A key stands for one signal of a name: that which came first.
        keys = [(one.signal, one.key) for one in mine]
        self.signals = [
            one
            for index, one in enumerate(mine)
            if one.signal is not None
            and (one.key is None or (one.signal, one.key) not in keys[:index])
        ]
        self.rows: dict[str, Row] = {}
        self.spent = 0
        self.history = History(start)
        histories[path] = self.history
        if len(histories) > 40:
            raise TooManyRuns

    def play(self) -> History:
        """From the start to the end."""
        history = self.history
        try:
            history.status = self.forwards()
        except _Structural:
            history.status, history.last_error = "failed", "*"
            for step in self.steps()[history.cursor : history.cursor + 1]:  # it came there
                self.rows.setdefault(step["key"], Row(step["key"], step["kind"]))
        except _Cancelled:
            history.status = "cancelled"
        if history.compensation == "compensating":  # compensation did not come to its end
            history.compensation = "incomplete"
        history.ended = self.now
        for row in self.rows.values():
            if row.finished is None:
                row.end("cancelled", self.now)
        history.rows = self.shown()
        produced = [
            self.rows[step["key"]].output for step in self.steps() if step["key"] in self.rows
        ]
        history.output = next((one for one in reversed(produced) if one is not None), None)
        return history

    def forwards(self) -> str:
        """Step by step, until one fails; then backwards. The status that it comes to."""
        if self.scenario.workflows[self.workflow].state == "unreadable":
            raise _Structural
        try:
            for index, step in enumerate(self.steps()):
                self.history.cursor = index
                self.step(step)
        except _StepFailed as failed:
            self.history.last_error = failed.row.error
            self.compensate()
            return "failed"
        self.history.cursor = len(self.steps())
        return "succeeded"

    def step(self, step: Step) -> None:
        """One arm for each kind."""
        kind = step["kind"]
        if kind in ACTIONS:
            failed = self.try_all([(step["key"], step)])
            if failed is not None:
                raise _StepFailed(failed)
        elif kind == "sleep":
            row = self.begin(step, "sleeping")
            self.pass_to(self.now + duration(step["sleep_for"]))
            row.end("succeeded", self.now)
        elif kind == "wait_for_signal":
            self.wait_for_signal(step)
        elif kind == "fanout":
            self.begin(step, "running").end("succeeded", self.now)
            for child in step["children"]:
                self.rows[child["key"]] = Row(child["key"], child["kind"])
        elif kind == "join":
            self.join(step)
        else:
            self.subworkflow(step)

    # --- waiting ------------------------------------------------------------------------------

    def wait_for_signal(self, step: Step) -> None:
        """The oldest signal of the name, which may have come early; the wait is bounded."""
        row = self.begin(step, "waiting")
        deadline = self.now + round(1000 * step.get("timeout_seconds", DEFAULT_SIGNAL_SECONDS))
        first = next((one for one in self.signals if one.signal == step["signal"]), None)
        if first is not None and first.at <= deadline:
            self.pass_to(first.at)
            self.signals.remove(first)
            row.output = first.payload
            row.end("succeeded", self.now)
            return
        self.pass_to(deadline)
        self.fail(row, "*", "wait_timed_out")

    def subworkflow(self, step: Step) -> None:
        """A new child for each attempt; the wait for each is bounded."""
        if len(self.path) == self.scenario.bounds.depth:
            self.history.too_deep = True
            self.fail(self.begin(step, "waiting"), "*", "depth_exceeded")
        self.check_ceiling()
        row = self.begin(step, "waiting")
        if step["target"] not in self.scenario.workflows:
            self.spend()
            self.fail(row, "*", "unknown_resource")
        for attempt in range(1, attempts(step) + 1):
            self.spend()
            row.attempt, row.status, row.error, row.code, row.child = (
                attempt,
                "waiting",
                None,
                None,
                None,
            )
            if self.scenario.workflows[step["target"]].state == "disabled":
                row.error = "*"
            elif self.child_succeeds(step, row):
                return
            if self.history.too_deep or attempt == attempts(step):
                break
            row.status = "retrying"
            self.check_ceiling()  # at once: there will be no other attempt
            self.pass_to(self.now + backoff(attempt))
        self.fail(row, row.error or "", row.code)

    def child_succeeds(self, step: Step, row: Row) -> bool:
        """Start a child and wait for its end; whether it succeeded."""
        deadline = self.now + round(1000 * step.get("timeout_seconds", DEFAULT_CHILD_SECONDS))
        row.child = (*self.path, (row.key, row.attempt))
        if self.stop is None or deadline <= self.stop.at:
            stop: _Stop | None = _Stop(deadline, cascade=True, given_up=True)
        else:
            # Its parent is cancelled before: only `cascade` reaches the child, which else lives on.
            stop = self.stop if self.stop.cascade else None
        child = _Run(
            self.scenario, self.histories, row.child, step["target"], self.now, stop
        ).play()
        self.pass_to(min(child.ended, deadline))
        if self.goes_with(child, deadline):
            raise _Cancelled
        if child.status == "succeeded":
            row.output = child.output
            row.end("succeeded", self.now)
            return True
        if child.status == "cancelled" and child.ended < deadline:
            self.fail(row, "*", "child_cancelled")
        row.error, row.code = "*", "timeout"
        if child.status == "failed":
            row.error, row.code = f"*{child.last_error}", "child_failed"
            if child.too_deep:
                self.history.too_deep, row.code = True, "depth_exceeded"
        return False

    def goes_with(self, child: History, deadline: int) -> bool:
        """Whether the run is cancelled at once with its child."""
        stop = self.stop
        if stop is None or not stop.cascade or stop.at != child.ended:
            return False
        # Where the child's own time was over then, too, the deeper one is the first to see it.
        return not (stop.given_up and deadline <= stop.at)

    # --- actions ------------------------------------------------------------------------------

    def join(self, step: Step) -> None:
        """All children succeed, or the join fails with the one that failed first."""
        row = self.begin(step, "waiting")
        children = self.steps()[self.history.cursor - 1]["children"]
        failed = self.try_all([(child["key"], child) for child in children])
        if failed is not None:
            for child in children:
                if self.rows[child["key"]].finished is None:  # not started, or backing off
                    self.rows[child["key"]].end("cancelled", self.now)
            self.fail(row, f"*{failed.key}*{failed.error}", "child_failed")
        members = [f'"{one["key"]}":{self.rows[one["key"]].output or "null"}' for one in children]
        output = "{" + ",".join(members) + "}"
        if len(output.encode()) > self.scenario.bounds.output:
            self.fail(row, "*", "output_too_large")
        row.output = output
        row.end("succeeded", self.now)

    def compensate(self) -> None:
        """Backwards from the step before the failed one; only what succeeded is compensated."""
        for top in reversed(self.steps()[: self.history.cursor]):
            todo = [
                (f"compensate:{step['key']}", step["compensate"])
                for step in (top, *top.get("children", ()))
                if "compensate" in step and self.rows[step["key"]].status == "succeeded"
            ]
            if not todo:
                continue
            self.history.compensation, self.history.compensating = "compensating", top["key"]
            self.rows |= {key: Row(key, step["kind"]) for key, step in todo}
            try:
                failed = self.try_all(todo)
            except _Structural:
                self.history.compensation, self.history.last_error = "failed", "rollback stopped*"
                return
            if failed is not None:
                key = failed.key.removeprefix("compensate:")
                text = f'compensation of step "{key}" failed, rollback stopped: {failed.error}'
                self.history.compensation, self.history.compensating = "failed", key
                self.history.last_error = text
                return
        if self.history.compensation == "compensating":
            self.history.compensation, self.history.compensating = "compensated", None

    def try_all(self, todo: Sequence[tuple[str, Step]]) -> Row | None:
        """Try each, a bounded number at once, until all have succeeded or one failed for good.

        Once one has failed nothing new starts, and those in flight finish. The one that failed.
        """
        in_flight: dict[str, tuple[int, Try]] = {}
        failed: Row | None = None
        steps = dict(todo)
        while True:
            for key in [key for key, (ends, _) in in_flight.items() if ends <= self.now]:
                row = self.rows[key]
                self.complete(row, steps[key], in_flight.pop(key)[1])
                failed = failed or (row if row.status == "failed" else None)
            left = [key for key in steps if key not in in_flight and not self.is_finished(key)]
            if not in_flight and (failed is not None or not left):
                return failed
            if failed is None:
                if left and not in_flight:
                    self.check_ceiling()
                for key in left:
                    if len(in_flight) < self.scenario.bounds.at_once and self.may_start(key):
                        in_flight[key] = self.start(key, steps[key])
            ends = [ends for ends, _ in in_flight.values()]
            waits = [
                self.rows[key].due for key in left if key in self.rows and key not in in_flight
            ]
            later = [at for at in waits if at > self.now and failed is None]
            self.pass_to(min(ends + later), in_flight)

    def may_start(self, key: str) -> bool:
        backs_off = key in self.rows and self.rows[key].due > self.now
        return not backs_off and self.spent < self.scenario.bounds.attempts

    def start(self, key: str, step: Step) -> tuple[int, Try]:
        row = self.rows.setdefault(key, Row(key, step["kind"]))
        row.attempt += 1
        row.started = self.now if row.started is None else row.started
        self.spent += 1
        self.history.attempts.append((self.now, key, row.attempt))
        result = self.scenario.script(self.workflow, self.start_number, key, row.attempt)
        if len((result.output or "").encode()) > self.scenario.bounds.output:
            result = Try(result.takes, error="*", code="output_too_large", final=True)
        return self.now + result.takes, result

    def complete(self, row: Row, step: Step, result: Try) -> None:
        """An attempt ends."""
        row.output, row.error, row.code = result.output, result.error, result.code
        if result.error is None:
            row.end("succeeded", self.now)
        elif result.final or row.attempt == attempts(step):
            row.end("failed", self.now)
        else:
            asked = min(result.retry_after, LONGEST_BACKOFF)
            row.status, row.due = "retrying", self.now + max(backoff(row.attempt), asked)

    # --- what the steps share -----------------------------------------------------------------

    def steps(self) -> Sequence[Step]:
        workflow = self.scenario.workflows[self.workflow]
        return [] if workflow.state == "unreadable" else list(workflow.document["steps"])

    def shown(self) -> list[Row]:
        """Children after their parent, a compensation after its step."""
        rows = []
        for top in self.steps():
            for step in (top, *top.get("children", ())):
                for key in (step["key"], f"compensate:{step['key']}"):
                    if key in self.rows:
                        self.rows[key].parent = None if step is top else top["key"]
                        rows.append(self.rows[key])
        return rows

    def begin(self, step: Step, status: str) -> Row:
        row = Row(step["key"], step["kind"], self.now, status, 1)
        self.rows[step["key"]] = row
        return row

    def fail(self, row: Row, error: str, code: str | None) -> None:
        row.error, row.code = error, code
        row.end("failed", self.now)
        raise _StepFailed(row)

    def is_finished(self, key: str) -> bool:
        return key in self.rows and self.rows[key].finished is not None

    def check_ceiling(self) -> None:
        if self.spent >= self.scenario.bounds.attempts:
            raise _Structural

    def spend(self) -> None:
        self.check_ceiling()
        self.spent += 1

    def pass_to(self, at: int, in_flight: Mapping[str, tuple[int, Try]] = {}) -> None:
        """Let time pass. A cancel comes in between: what is in flight finishes, nothing follows."""
        if self.stop is not None and self.stop.at < at:
            self.now = self.stop.at
            for key, (ends, result) in in_flight.items():
                row = self.rows[key]
                row.output, row.error, row.code = result.output, result.error, result.code
                row.end("succeeded" if result.error is None else "failed", ends)
            raise _Cancelled
        self.now = max(self.now, at)
