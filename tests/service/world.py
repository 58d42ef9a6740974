"""One worker's whole surroundings, in memory, with time that a test moves."""

from collections.abc import Callable, Iterator, Sequence

from stepwell_engine.adapters.memory.hints import MemoryDispatcher
from stepwell_engine.adapters.memory.runs import MemoryRuns
from stepwell_engine.adapters.process.line import Line
from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.program import DeclaredProgram
from stepwell_engine.core.run.attempt import Attempt, Outcome, Succeeded, WorkerLost
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.values.subject import Subject
from stepwell_engine.errors import Problem, Unavailable
from stepwell_engine.ports import Commit, StepRunner, Written
from stepwell_engine.service.runs.controls import Controls
from stepwell_engine.service.runs.run_reader import journal_of
from stepwell_engine.service.runs.starts import Starts
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.process import WorkerProcess

START = 1_700_000_000_000


class ManualClock:
    """Time that moves only when somebody sleeps or a test says so."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> int:
        return self.at

    def sleep(self, ms: int) -> None:
        self.at += ms


class CountedIds:
    def __init__(self) -> None:
        self._made = 0

    def run_id(self) -> str:
        self._made += 1
        return f"run-{self._made}"

    def token(self) -> str:
        self._made += 1
        return f"token-{self._made}"


class FlakyRuns(MemoryRuns):
    """Answers get lost: the named method is applied, then raises Unavailable."""

    def __init__(self) -> None:
        super().__init__()
        self.lose_answer_of: list[str] = []
        self.seen: list[Commit] = []

    def _lose(self, name: str) -> None:
        if name in self.lose_answer_of:
            self.lose_answer_of.remove(name)
            raise Unavailable("no answer")

    def create(self, head: Head, blobs: Sequence[Blob] = ()) -> Written:
        written = super().create(head, blobs)
        self._lose("create")
        return written

    def claim(
        self, run_id: str, token: str, now: int, until: int, lane: Lane = Lane.HOST
    ) -> Written:
        written = super().claim(run_id, token, now, until, lane)
        self._lose("claim")
        return written

    def commit(self, commit: Commit) -> Written:
        self.seen.append(commit)
        written = super().commit(commit)
        self._lose("commit")
        return written

    def cancel(self, run_id: str, now: int, cascade: bool = False, generation: int = 0) -> Written:
        written = super().cancel(run_id, now, cascade, generation)
        self._lose("cancel")
        return written


class InlineTaskGroups:
    """A task group that does each task when it is started."""

    def open(self) -> "InlineTaskGroups":
        return self

    def start(self, task: Callable[[], None]) -> None:
        task()

    def wait(self, ms: int | None) -> None:
        pass

    def close(self) -> None:
        pass


class InlineIsolation:
    """A child process in name only: what would end it is a KeyboardInterrupt."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.line = Line()
        self.taken = False
        self.deaths: list[Attempt] = []
        self.seen: list[Attempt] = []

    def enter(self, run: Subject) -> bool:
        self.taken |= (entered := self.line.enter(run))
        return entered

    def leave(self) -> Subject | None:
        self.taken = False
        return self.line.leave()

    def turn(self) -> Subject | None:
        return self.line.turn()

    def forget(self, run: Subject) -> Subject | None:
        return self.line.forget(run)

    def run(self, attempt: Attempt) -> Outcome:
        assert self.taken
        self.seen.append(attempt)
        try:
            return self._world.run(attempt)
        except KeyboardInterrupt:
            self.deaths.append(attempt)
            return WorkerLost("the process in which the step ran ended: killed by signal 9")


class World:
    """A run's whole surroundings. `outcomes` are handed out in order, then every act succeeds."""

    def __init__(self, *steps: Step) -> None:
        self.clock = ManualClock()
        self.runs = FlakyRuns()
        self.hints = MemoryDispatcher(self.clock)
        self.definition = Definition("demo", "orders", 1, steps)
        self.others: dict[str, Definition] = {}
        self.attempts: list[Attempt] = []
        self.outcomes: list[Outcome] = []
        self.during: Callable[[Attempt], None] = lambda _: None
        self.isolation = InlineIsolation(self)
        ids = CountedIds()
        runners: dict[str, StepRunner] = dict.fromkeys(Kind, self)
        self.advance = Advance(
            self.runs,
            self,
            runners,
            InlineTaskGroups(),
            self.hints,
            self.clock,
            ids,
            WorkerProcess(isolation=self.isolation),
        )
        self.starts = Starts(self.runs, self, self.hints, self.clock, ids)
        self.controls = Controls(self.runs, self, self.hints, self.clock, ids)

    def enabled(self, project: str, workflow: str) -> int:
        if workflow != "orders" and workflow not in self.others:
            raise Problem("not_found", f"there is no workflow {workflow}")
        return 1

    def load(self, project: str, workflow: str, version: int) -> DeclaredProgram:
        return DeclaredProgram(self.others.get(workflow, self.definition))

    def unreadable(self, project: str, workflow: str, version: int) -> DeclaredProgram:
        return DeclaredProgram(Definition(project, workflow, version, ()))

    def run(self, attempt: Attempt) -> Outcome:
        self.attempts.append(attempt)
        self.during(attempt)
        return self.outcomes.pop(0) if self.outcomes else Succeeded(b"%d" % len(self.attempts))

    def add(self, workflow: str, *steps: Step) -> None:
        """Another workflow of the project."""
        self.others[workflow] = Definition("demo", workflow, 1, steps)

    def drain(self) -> None:
        """Follow the hints, skipping the time between them, until none is left."""
        for _ in range(1_000):
            at = self.hints.next_at()
            if at is None:
                return
            self.clock.at = max(self.clock.at, at)
            hint = self.hints.pop_due(self.clock.at)
            assert hint is not None
            self.advance.run(hint.subject.id, hint.subject.project, 60_000)
        raise AssertionError("the hints do not end")

    def children(self, workflow: str) -> list[Head]:
        """The runs of a workflow, oldest first."""
        return self.runs.list("demo", workflow, None, 100, None)[::-1]

    def start(self) -> str:
        return self.starts.start("demo", "orders", b"{}").head.run_id

    def turn(self, run_id: str, budget: int = 60_000) -> Head:
        self.advance.run(run_id, "demo", budget)
        return self.head(run_id)

    def head(self, run_id: str) -> Head:
        head = self.runs.get(run_id)
        assert head is not None
        return head

    def journal(self, run_id: str) -> Journal:
        head = self.head(run_id)
        return journal_of(head, self.others.get(head.workflow, self.definition).keys)

    def delays(self) -> Iterator[int]:
        while (at := self.hints.next_at()) is not None:
            yield at - self.clock.at
            self.hints.pop_due(at)


def void(value: object) -> None:
    """Throw a result away."""
