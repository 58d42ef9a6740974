"""The Isolation port: an attempt in a child process, whose end its host survives."""

from stepwell_engine.core.run.attempt import Attempt, Outcome, WorkerLost
from stepwell_engine.ports import StepRunner
from tests.sim.links import Links
from tests.sim.scheduler import Actor, Violation


class ChildDied(Exception):
    """The child process of an attempt died."""


class SimIsolation:
    """The isolation of one host. Its place is free again once the worker that has it died."""

    def __init__(self, links: Links, runner: StepRunner) -> None:
        self._links = links
        self._runner = runner
        self._holder: Actor | None = None

    def enter(self) -> bool:
        """Take the place."""
        holder = self._holder
        if holder is not None and holder.process.alive:
            return False
        self._holder = self._links.scheduler.caller()
        return True

    def leave(self) -> None:
        """Give it back."""
        self._holder = None

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
