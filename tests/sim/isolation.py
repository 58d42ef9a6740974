"""The Isolation port: an attempt in a child process, whose end its host survives."""

from stepwell_engine.adapters.process.line import Line
from stepwell_engine.core.run.attempt import Attempt, Outcome, WorkerLost
from stepwell_engine.core.values.subject import Subject
from stepwell_engine.ports import StepRunner
from tests.sim.links import Links
from tests.sim.scheduler import Actor, Violation


class ChildDied(Exception):
    """The child process of an attempt died."""


class SimIsolation:
    """The isolation of one host. A worker that dies gives its place back, and nobody is hinted.

    Whoever stands in `line` may be hinted at another host: so all share it.
    """

    def __init__(self, links: Links, runner: StepRunner, line: Line) -> None:
        self._links = links
        self._runner = runner
        self._line = line
        self._holder: Actor | None = None

    def enter(self, run: Subject) -> bool:
        """Take the place."""
        entered = self._line.enter(run)
        if entered:
            self._holder = self._links.scheduler.caller()
            self._holder.process.has_place = True
        return entered

    def leave(self) -> Subject | None:
        """Give it back."""
        if self._holder is not None:
            self._holder.process.has_place = False
        self._holder = None
        return self._line.leave()

    def turn(self) -> Subject | None:
        """Whose turn it is."""
        return self._line.turn()

    def forget(self, run: Subject) -> Subject | None:
        """A run does not come."""
        return self._line.forget(run)

    def run(self, attempt: Attempt) -> Outcome:
        """Run the attempt as one that may die alone."""
        actor = self._links.scheduler.caller()
        if self._holder is None or self._holder.process is not actor.process:
            raise Violation(5, f"{actor.name} isolates an attempt without the place for it")
        actor.isolated = True
        try:
            return self._runner.run(attempt)
        except ChildDied:
            self._links.scheduler.note("the child process of", attempt.step, "died")
            return WorkerLost(f"the process of step {attempt.step} ended")
        finally:
            actor.isolated = False
