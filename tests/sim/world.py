"""One simulated world per seed: hosts run the real service, and faults happen around them."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random
from unittest.mock import patch

from stepwell_engine import limits
from stepwell_engine.adapters.process.line import Line
from stepwell_engine.core.run.attempt import Attempt
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.values.subject import Subject, about_run
from stepwell_engine.errors import NewerFormat, Unavailable
from stepwell_engine.limits import MAX_ACTION_TIMEOUT, SECOND
from stepwell_engine.ports import Done, StepRunner
from stepwell_engine.service.runs import controls
from stepwell_engine.service.runs.children import Children
from stepwell_engine.service.runs.controls import Controls
from stepwell_engine.service.runs.starts import Starts
from stepwell_engine.service.worker import abandon, process, tools
from stepwell_engine.service.worker import advance as advances
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.leased_run import LeasedRun
from stepwell_engine.service.worker.process import WorkerProcess
from stepwell_engine.service.worker.sweep import Sweep
from tests.sim.answers import Answers
from tests.sim.callers import Body, Callers
from tests.sim.checks import Checks
from tests.sim.clocks import CountedIds, HostClock, TrueClock
from tests.sim.coverage import Coverage
from tests.sim.definitions import ACTIONS
from tests.sim.endings import Endings
from tests.sim.faults import Faults, draw_profile
from tests.sim.formats import check_let_go, draw_formats
from tests.sim.gates import Gates
from tests.sim.history import check_histories, draw_program
from tests.sim.hosts import Host
from tests.sim.inbox_sizes import draw_sizes
from tests.sim.isolation import SimIsolation
from tests.sim.ledger import Ledger
from tests.sim.links import Links, Store
from tests.sim.lookups import Lookups
from tests.sim.outages import draw_outages
from tests.sim.ports import SimDispatcher, SimRuns
from tests.sim.rest import check_pace, check_rest
from tests.sim.runner import SimStepRunner
from tests.sim.scheduler import EPOCH, SKEW, Crash, Scheduler, Violation
from tests.sim.sizes import draw_limits
from tests.sim.stops import Stops, stop
from tests.sim.task_groups import SimTaskGroups
from tests.sim.workload import Catalog, draw_slots

_HOSTS = 3
_MOST_EVENTS = 60_000
_LATEST_TICK = 90 * SECOND
_MOST_TURNS = 20
_AGAIN = 3 * SECOND  # after which a worker looks again that the store did not answer
_PERIODS = (20 * SECOND, 60 * SECOND)
_BUDGETS = (2 * SECOND, 60 * SECOND, 900 * SECOND, 900 * SECOND)


@dataclass(frozen=True)
class Engine:
    """What is simulated: the real thing, or one with a class or a function replaced."""

    store: type[Store] = Store
    runs: type[SimRuns] = SimRuns
    advance: type[Advance] = Advance
    leased_run: type[LeasedRun] = LeasedRun
    children: type[Children] = Children
    starts: type[Starts] = Starts
    runner: type[SimStepRunner] = SimStepRunner
    patches: tuple[tuple[str, object], ...] = ()


REAL = Engine()


class World:
    """Everything of one seed."""

    def __init__(self, seed: int, engine: Engine, coverage: Coverage, keep: int) -> None:
        """`keep` is how many lines of the trace are kept."""
        self._seed = seed
        self.scheduler = Scheduler(seed, keep)
        random = self.scheduler.random
        profile = draw_profile(random)
        self._faults = Faults(profile, random)
        self._sizes = draw_sizes(seed)
        self._slots = self._sizes.crowd(draw_slots(random))
        self._period = _PERIODS[int(random.random() * len(_PERIODS))]
        self._budget = _BUDGETS[int(random.random() * len(_BUDGETS))]
        self._hard = self._budget >= MAX_ACTION_TIMEOUT and random.random() < 0.5
        self._tick_budget = None if random.random() < 0.5 else 0
        self._formats = draw_formats(seed, _HOSTS)
        store = engine.store()
        store.older = self._sizes.is_older
        versions = self._formats.versions(store)
        self.checks = Checks(self._slots, self._true_now, versions[0].peek_blob, profile.calm)
        self.checks.left_alone.mixed = len(versions) > 1
        outages = draw_outages(Random(f"refusals {seed}"), profile.ends, profile.calm)
        self._endings, self._gates = Endings(seed, self._faults), Gates(seed, self._faults)
        self._links = Links(
            self.scheduler,
            self._faults,
            self.checks,
            coverage,
            versions[0],
            self._react,
            outages,
            self._endings,
        )
        answers = Answers(self.checks.ledgers, self.checks.keys)
        self._callers = Callers(self._links, self._slots, answers, self._call)
        self._limits = draw_limits(seed)
        self._program = draw_program(seed)
        self._aws = Random(f"lanes {seed}").random() < 0.5  # suspects have a lane of their own
        self._own = Random(f"catalog {seed}")
        self._silence = self._own.choice((0.0, 0.0, 0.5))  # how often the catalog does not answer
        # The hosts of the newest version, and of an older one.
        self._versions = self._build(engine, versions)
        self._stops = Stops(seed, embedded=not self._aws)
        self._visits = 0
        self._last_tick: int | None = None

    def _build(self, engine: Engine, versions: Sequence[Store]) -> list[list[Host]]:
        seen = self._runs = engine.runs(self._links)
        catalog = Catalog(
            self._slots,
            lambda: self.scheduler.now - EPOCH,
            self._catalog_is_down,
            self._program,
        )
        dispatcher = self._dispatcher = SimDispatcher(self._links, self._hint_arrives)
        lookups, serials = Lookups(self._seed, self._faults), count(1)
        task_groups, ids = SimTaskGroups(self._links), CountedIds()
        line = Line()

        def host(runs: SimRuns) -> Host:
            clock = HostClock(self._links)
            begun = self._attempt_begun
            runner = engine.runner(self._links, self._slots, begun, lookups, clock, serials)
            runners: dict[str, StepRunner] = dict.fromkeys(ACTIONS, runner)

            def boot() -> tuple[Advance, WorkerProcess]:
                isolation = SimIsolation(self._links, runner, line)
                workers = WorkerProcess(isolation=None if self._aws else isolation)
                advance = engine.advance(
                    runs, catalog, runners, task_groups, dispatcher, clock, ids, workers
                )
                return advance, workers

            starts = engine.starts(runs, catalog, dispatcher, clock, ids)
            sweep = Sweep(runs, dispatcher, clock, self._period + _LATEST_TICK)
            control = Controls(runs, catalog, dispatcher, clock, ids)
            return Host(clock, starts, control, sweep, boot)

        return [[host(seen.of(version)) for _ in range(_HOSTS)] for version in versions]

    def run(self) -> None:
        """Run until everything is over. Violation."""
        self._callers.begin()
        self.scheduler.at(EPOCH + self._faults.profile.ends, self._calm_down)
        self.scheduler.at(EPOCH + self._period, self._tick)
        with ExitStack() as stack:
            stack.enter_context(self._sizes.in_force())
            for name, value in self._limits.items():
                stack.enter_context(patch.object(limits, name, value))
            for log in (abandon.log, advances.log, controls.log, process.log, tools.log):
                stack.enter_context(patch.object(log, "disabled", True))
            self.scheduler.run(_MOST_EVENTS)
            for ledger in self.checks.ledgers.values():
                check_histories(ledger, self._program)
        check_rest(self.checks, self._links.store, TrueClock(self.scheduler))

    def _catalog_is_down(self) -> bool:
        return self._faults.active and self._own.random() < self._silence

    # --- what is planned ----------------------------------------------------------------------

    def _calm_down(self) -> None:
        self.scheduler.note("no faults from here on")
        self._faults.active = False

    def _tick(self, late: bool = False) -> None:
        """Every period, unless it is late; skipping those that would find nothing."""
        if late:
            self._links.fault()
        check_pace(self.checks, self.scheduler.now, self._period)
        now, following = self.scheduler.now, self.scheduler.next_at()
        if following is None and all(one.done for one in self.checks.ledgers.values()):
            return
        self._actor("tick", self._sweep, now)
        finds = self._links.store.earliest()
        if finds is not None:
            finds -= self._period + _LATEST_TICK + 2 * SKEW
        idle_until = min((at for at in (finds, following) if at is not None), default=now)
        when = now + max(1, (idle_until - now) // self._period) * self._period
        if self._faults.happens(self._faults.profile.tick_late):
            lateness = int(self.scheduler.random.random() * _LATEST_TICK)
            self.scheduler.at(when + lateness, lambda: self._tick(late=True))
        else:
            self.scheduler.at(when, self._tick)

    def _sweep(self) -> None:
        """A tick that does not see everything in its time is continued by another."""
        cursor = began = None
        since = self._last_tick
        for _ in range(_MOST_TURNS):
            host = self._any_host()
            if host in self._versions[-1]:
                self.checks.left_alone.passed_over(self.checks.ledgers.values(), self._true_now())
            swept = host.sweep.tick(cursor, self._tick_budget, since=since, began=began)
            cursor, began = swept.cursor, swept.began
            if cursor is None:
                self._last_tick = began
                return

    def _hint_arrives(self, subject: Subject, alone: bool) -> None:
        self._visit(subject.id, subject.project, alone)

    def _visit(self, run_id: str, project: str, alone: bool) -> None:
        """A worker follows a hint; if it crashes, the queue may deliver the hint once more.

        If the store did not answer, the worker asks for it again within seconds.
        """
        self._visits += 1
        lane = (Lane.ALONE if alone else Lane.SHARED) if self._aws else Lane.HOST

        def again() -> None:
            self._visit(run_id, project, alone)

        def body() -> None:
            host, actor = self._any_host(), self.scheduler.caller()
            actor.host, actor.lane = host, lane
            actor.gate_expires_at = self._gates.expires_at(host.clock.now())
            workers = host.workers
            workers.append(actor)
            if host.process.refusals.in_hand(run_id, host.clock.now()):
                self._links.fault()  # nobody follows this hint
            try:
                host.advance.run(
                    run_id,
                    project,
                    self._budget,
                    hard=self._hard,
                    lane=lane,
                    gate_expires_at=actor.gate_expires_at,
                )
                if not self._hard:  # else it may have no time left for that
                    check_let_go(actor, self._links.store.peek(run_id))
            finally:
                actor.host = actor.gate_expires_at = None
                workers.remove(actor)

        def failed(crashed: bool) -> None:
            if not crashed:
                self.scheduler.at(self.scheduler.now + _AGAIN, again)
            elif self._faults.happens(self._faults.profile.hint_again):
                later = self.scheduler.now + self._faults.lateness()
                self.scheduler.at(later, again)

        self._actor(f"worker {self._visits}", body, self.scheduler.now, run_id, failed)

    def _stop(self, host: Host) -> None:
        """A host stops in order. Its next process looks at all that is due as it begins."""
        if host.process.abandoned:
            return

        def body() -> None:
            try:
                stop(self._links, host)
            finally:
                self._actor("start", partial(self._begin, host), self.scheduler.now)

        self._actor("stop", body, self.scheduler.now)

    def _begin(self, host: Host) -> None:
        host.sweep.tick()

    def _call(self, name: str, body: Body, when: int, failed: Callable[[], None]) -> None:
        self._actor(name, lambda: body(self._any_host()), when, failed=lambda _: failed())

    def _actor(
        self,
        name: str,
        body: Callable[[], None],
        when: int,
        run_id: str | None = None,
        failed: Callable[[bool], None] = lambda _: None,
    ) -> None:
        def guarded() -> None:
            try:
                body()
            except Unavailable:
                failed(False)
            except Crash:
                failed(True)
            except Exception as error:
                raise Violation(0, f"{name} failed: {error!r}") from error

        self.scheduler.spawn(name, guarded, when, run_id)

    def _any_host(self) -> Host:
        random = self.scheduler.random
        number = int(random.random() * _HOSTS)
        hosts = self._versions[self._formats.is_older(number, self.scheduler.now)]
        others = (hosts[(number + more) % _HOSTS] for more in range(_HOSTS))
        host = next((one for one in others if not one.process.abandoned), hosts[number])
        if self._faults.happens(self._faults.profile.clock_jump):
            host.clock.jump()
        return host

    def _react(self, what: str, run_id: str) -> None:
        self._plan_newer(what, run_id)
        actor = self.scheduler.current
        host = None if actor is None else actor.host
        if isinstance(host, Host) and (later := self._stops.draw(what)) is not None:
            self.scheduler.at(self.scheduler.now + later, partial(self._stop, host))
        self._callers.react(what, run_id)
        ledger = self.checks.ledgers[run_id]
        for when in self._endings.signals(what, ledger.head, self.scheduler.now):
            self._callers.signal_at(ledger, when)
        pause = self._endings.pause(what, ledger.head)
        if pause is not None:
            hinted = self._endings.is_hinted(what)
            reviver = partial(self._revive, ledger, hinted)
            self._actor("reviver", reviver, self.scheduler.now + pause)

    def _revive(self, ledger: Ledger, hinted: bool) -> None:
        run_id, now = ledger.head.run_id, self._any_host().clock.now()
        try:
            head = self._runs.get(run_id)
        except NewerFormat:
            return
        if head is None:
            return
        revival = self._endings.revival(ledger, head, now, self.checks.is_live)
        if revival is not None and isinstance(self._runs.revive(revival), Done) and hinted:
            self._dispatcher.hint(about_run(run_id, head.project))

    def _attempt_begun(self, attempt: Attempt, lasts: int) -> None:
        self._plan_newer("attempt", attempt.run_id)
        self._callers.attempt_started(attempt, lasts)

    def _plan_newer(self, what: str, run_id: str) -> None:
        pause = self._formats.disturbs(what)
        if pause is not None:
            self.scheduler.at(self.scheduler.now + pause, partial(self._write_newer, run_id))

    def _write_newer(self, run_id: str) -> None:
        if self._formats.any_newer(_HOSTS, self.scheduler.now):
            self.scheduler.note("a newer version writes to", run_id)
            self.checks.ledgers[run_id].head = self._links.store.write_something_new(run_id)

    def _true_now(self) -> int:
        return self.scheduler.now


@dataclass(frozen=True)
class Found:
    """A violation, the seed that shows it, and the events before it."""

    seed: int
    violation: Violation
    trace: tuple[str, ...]

    def __str__(self) -> str:
        lines = "\n".join(self.trace)
        return (
            f"{lines}\nseed {self.seed}: {self.violation}\n"
            f"repeat with: make sim SEEDS=1 START={self.seed}"
        )


def simulate(
    seeds: Iterable[int],
    engine: Engine = REAL,
    coverage: Coverage | None = None,
    keep: int = 60,
) -> Found | None:
    """Run the seeds one after the other; the first violation, or None."""
    coverage = coverage or Coverage()
    with ExitStack() as stack:
        stack.enter_context(patch.object(advances, "LeasedRun", engine.leased_run))
        for users in (advances, controls):
            stack.enter_context(patch.object(users, "Children", engine.children))
        for target, replacement in engine.patches:
            stack.enter_context(patch(target, replacement))
        for seed in seeds:
            world = World(seed, engine, coverage, keep)
            try:
                world.run()
            except Violation as violation:
                return Found(seed, violation, world.scheduler.lines())
    return None
