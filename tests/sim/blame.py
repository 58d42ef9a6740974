"""Whom the loss of a worker counts against: who is a suspect, and who is given up. Property 5."""

from collections import Counter
from dataclasses import dataclass, field

from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.records import Record
from tests.sim.scheduler import SKEW, Actor, Violation

SUSPECT, GUILTY = 3, 5
_HOSTS, _PAUSE, _LONGEST = 5, 10_000, 600_000


@dataclass(slots=True)
class Blame:
    """The losses of a run. `lost` since it moved, the last at `lost_at`; `alone` of workers in the
    lane ALONE since an outcome was recorded; `deaths` of child processes, of each attempt in turn,
    of which the `unwritten` are not in the store. `lanes` is where each lease was taken. `stranded`
    are deaths that only a worker knows of whose lease was lost.
    """

    lost: int = 0
    lost_at: int = 0
    alone: int = 0
    deaths: Counter[StepKey] = field(default_factory=Counter)
    unwritten: Counter[StepKey] = field(default_factory=Counter)
    lanes: dict[str, Lane] = field(default_factory=dict)
    stranded: dict[str, Counter[StepKey]] = field(default_factory=dict)

    def claim(self, token: str, lane: Lane) -> None:
        """A worker took the lease."""
        self.lanes[token] = lane

    def lose(self, token: str, now: int) -> None:
        """Another worker took it over."""
        self.lost += 1
        self.lost_at = now
        self.alone += self.lanes[token] is Lane.ALONE
        self.deaths -= self.unwritten  # unless that worker comes back
        self.stranded[token] = self.unwritten.copy()
        self.unwritten.clear()

    def bring_back(self, before: str) -> None:
        """A worker whose lease `before` was lost has a new one."""
        deaths = self.stranded.pop(before, Counter())
        self.deaths += deaths
        self.unwritten += deaths

    def move(self) -> None:
        """A step or a compensation is over."""
        self.lost = self.alone = 0

    def record(self) -> None:
        """The outcome of an attempt is recorded."""
        self.alone = 0

    def die(self, key: StepKey) -> None:
        """The child process of an attempt died, its host lives."""
        self.deaths[key] += 1
        self.unwritten[key] += 1

    def check_start(self, key: StepKey, actor: Actor, now: int, beside: bool) -> None:
        """An attempt starts: that of a suspect alone, in its turn, and not after too many.

        Whoever took the lease to be alone is alone with one attempt for as long as it has it.
        """
        if actor.lane is not self.lanes[actor.token]:
            raise Violation(5, f"{key} starts, but {actor.token} was for another lane")
        if actor.lane is Lane.ALONE and beside:
            raise Violation(5, f"{key} starts beside another, though its worker is alone")
        if self.lost < SUSPECT:
            if actor.process.has_place:
                raise Violation(3, f"{key} starts in the place of suspects, though its run moved")
            return
        if not (actor.isolated or actor.lane is Lane.ALONE) or beside:
            raise Violation(5, f"{key} starts after {self.lost} lost workers, and not alone")
        if self.deaths[key] + self.alone >= GUILTY:
            raise Violation(5, f"{key} starts after {GUILTY} workers were lost that were alone")
        more = self.lost - self.alone - SUSPECT - _HOSTS
        if (
            actor.isolated
            and more >= 0
            and now < self.lost_at + min(_PAUSE * 2**more, _LONGEST) - 2 * SKEW
        ):
            raise Violation(5, f"{key} starts at once after {self.lost} lost hosts")

    def check_lost(self, before: Record | None, new: Record) -> bool:
        """Whether an open record says that its attempt lost a worker, or waits for that reason."""
        losses = 0 if before is None else before.losses
        if new.losses == losses + 1 and self.unwritten[new.key]:
            self.unwritten[new.key] -= 1
            return True
        return SUSPECT + _HOSTS <= self.lost == new.hosts_lost and new.losses == losses

    def check_given_up(self, record: Record) -> None:
        """A step failed since its attempt lost too many workers."""
        if self.deaths[record.key] + self.alone < GUILTY:
            raise Violation(5, f"{record} after {self.deaths[record.key]} + {self.alone} losses")
        self.forget(record.key)

    def forget(self, key: StepKey) -> None:
        """An outcome of the attempt is recorded."""
        for deaths in (self.deaths, self.unwritten, *self.stranded.values()):
            del deaths[key]
