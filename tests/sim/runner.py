"""The outside world: attempts take simulated time and have random outcomes."""

from collections.abc import Callable, Iterator, Sequence

from stepwell_engine import limits
from stepwell_engine.core.run.attempt import Attempt, Deferred, Failed, Outcome, Succeeded
from stepwell_engine.ports import Clock
from tests.sim.faults import Fate
from tests.sim.isolation import ChildDied
from tests.sim.ledger import Execution
from tests.sim.links import LONGEST_PAUSE, Links
from tests.sim.lookups import Lookups, put_off
from tests.sim.scheduler import Actor, Crash, Violation
from tests.sim.workload import Nature, Slot, noise

_HUGE = b'"' + b"x" * limits.MAX_OUTPUT + b'"'
_LARGE = b"0" * int(limits.MAX_OUTPUT * 0.6)  # two of them are too large for a join
_MESSAGES = (0, 100, 900, 3_000)  # characters of an error's text
_HUGE_OUTPUT, _NO_OUTPUT, _RETRY_AFTER = 0.003, 0.05, 0.1
_STOPPED = Deferred("its host ended the attempt before it had an effect")

AttemptStarts = Callable[[Attempt, int], None]


def _stopped(actor: Actor) -> bool:
    return actor.process.stopped


class Defect(Exception):
    """An error in a step runner itself."""


class SimStepRunner:
    """The StepRunner port. No two attempts have the same output or message."""

    def __init__(
        self,
        links: Links,
        slots: Sequence[Slot],
        starts: AttemptStarts,
        lookups: Lookups,
        clock: Clock,
        serials: Iterator[int],
    ) -> None:
        """`starts` is called with each attempt and how long it will take; `clock` is the host's."""
        self._links = links
        self._natures = {slot.workflow: slot.nature for slot in slots}
        self._starts = starts
        self._lookups = lookups
        self._clock = clock
        self._serials = serials

    def run(self, attempt: Attempt) -> Outcome:
        """Run an attempt: the effect happens as it begins, the answer comes at its end.

        Like the real ones it turns the deadline into time that does not jump as it begins, and
        looks at it once more right before the effect: with nothing left it is deferred.
        """
        links = self._links
        scheduler, faults = links.scheduler, links.faults
        kind, actor = links.kind(), scheduler.caller()
        if _stopped(actor):
            raise Violation(4, f"{actor.name} begins an attempt after its host was told to stop")
        if not actor.forked:
            links.checks.begins(attempt.run_id, actor.token)
        fate = faults.fate("run", kind)
        if fate is Fate.CRASH_BEFORE:
            links.crash(kind, "run", "before")
        ends = self._look_up(attempt)
        if _stopped(actor):
            return _STOPPED
        defect: Defect | None = None
        outcome: Outcome
        if ends is not None and ends <= scheduler.now:
            outcome = Deferred(f"slow look-up {next(self._serials)}")
            ledger = links.checks.ledgers[attempt.run_id]
            execution = put_off(ledger, attempt, actor, outcome, scheduler.now)
            scheduler.note("puts off", attempt.step, "attempt", attempt.number)
        else:
            scheduler.pause(LONGEST_PAUSE if fate is Fate.STALL_BEFORE else links.latency())
            if _stopped(actor):
                return _STOPPED
            left = attempt.timeout if ends is None else max(1, ends - scheduler.now)
            outcome, execution, defect = self._effect(attempt, left)
        if fate is Fate.CRASH_AFTER:
            links.crash(kind, "run", "after")
        if fate is Fate.STALL_AFTER or faults.happens(faults.profile.attempt_stall):
            links.stall()
        links.checks.attempt_completed(attempt.run_id, execution, alone=not actor.forked)
        if defect is not None:
            raise defect
        return outcome

    def _look_up(self, attempt: Attempt) -> int | None:
        """When the attempt must be over, after what it looks up; None: all its time is left."""
        scheduler, lookups = self._links.scheduler, self._lookups
        if not lookups.any:
            return None
        if stalls := lookups.stall():
            scheduler.note("stands still for", stalls, "ms")
            scheduler.pause(stalls)
            self._links.fault()
        ends = scheduler.now + self._time_of(attempt)
        if takes := lookups.takes(attempt.timeout):
            scheduler.note("looks up for", takes, "ms")
            scheduler.pause(min(takes, max(0, ends - scheduler.now)))
        return ends

    def _time_of(self, attempt: Attempt) -> int:
        if attempt.deadline is None:
            return attempt.timeout
        return min(attempt.timeout, attempt.deadline - self._clock.now())

    def _effect(self, attempt: Attempt, left: int) -> tuple[Outcome, Execution, Defect | None]:
        """The effect, and what it comes to within the time that is left."""
        links, nature = self._links, self._natures[attempt.workflow]
        scheduler, faults = links.scheduler, links.faults
        kind = links.kind()
        lasts, outcome, defect = self._draw(attempt, nature, left)
        scheduler.note("starts", attempt.step, "attempt", attempt.number, "for", lasts, "ms")
        execution = links.checks.attempt_starts(attempt, scheduler.caller(), left)
        self._starts(attempt, lasts)
        poisoned = not faults.profile.calm and attempt.step == f"step-{nature.poison}"
        dies = poisoned or faults.happens(faults.profile.attempt_crash)
        try:
            scheduler.pause(int(lasts * scheduler.random.random()) if dies else lasts)
        except Crash:  # of another actor of this process
            self._end(attempt, execution, None)
            raise
        self._end(attempt, execution, None if dies else outcome)
        if dies and scheduler.caller().isolated:
            links.checks.child_died(attempt, execution)
            links.fault()
            raise ChildDied
        if dies:
            links.crash(kind, "run", "after")
        return outcome, execution, defect

    def _end(self, attempt: Attempt, execution: Execution, outcome: Outcome | None) -> None:
        self._links.scheduler.note("ended", attempt.step, "attempt", attempt.number, outcome)
        self._links.checks.attempt_ended(attempt.run_id, execution, outcome)

    def _draw(
        self, attempt: Attempt, nature: Nature, left: int
    ) -> tuple[int, Outcome, Defect | None]:
        """How long the attempt takes, what has to be recorded, and what to raise instead."""
        random = self._links.scheduler.random
        compensates = self._links.checks.ledgers[attempt.run_id].compensates(attempt.step)
        serial = next(self._serials)
        if random.random() < nature.defect:
            defect = Defect(f"number {serial}")
            return 1, Failed(f"the engine failed to run this step: {defect!r}"), defect
        if random.random() < nature.shortage:
            return 1, Deferred(f"shortage {serial}"), None
        slow = random.random() < nature.slow
        lasts = int(attempt.timeout * (1.1 if slow else 0.2) * random.random())
        if lasts >= left:
            return left, Failed(f"timeout {serial}", "timeout"), None
        if random.random() < (nature.compensation_fails if compensates else nature.fails):
            hopeless = random.random() < nature.hopeless
            asked = random.random() < _RETRY_AFTER
            pause = int(random.random() * 600_000) if asked else None
            message = f"failure {serial} {noise(serial, self._one(_MESSAGES))}"
            return lasts, Failed(message, None, not hopeless, pause), None
        drawn = random.random()
        if drawn < _HUGE_OUTPUT:
            return lasts, Succeeded(_HUGE), None
        if drawn > 1 - _HUGE_OUTPUT:
            return lasts, Succeeded(b"%d%s" % (serial, _LARGE)), None
        if drawn < _NO_OUTPUT:
            return lasts, Succeeded(None), None
        size = self._one(nature.sizes)  # of {"n":12,"pad":"…"} in all, in bytes
        text = f'{{"n":{serial},"pad":"'
        return lasts, Succeeded(f'{text}{noise(serial, size - len(text) - 2)}"}}'.encode()), None

    def _one(self, options: Sequence[int]) -> int:
        return options[int(self._links.scheduler.random.random() * len(options))]
