"""The machines of a simulated world: a clock and a process of workers each."""

from collections.abc import Callable
from dataclasses import dataclass

from stepwell_engine.service.runs.controls import Controls
from stepwell_engine.service.runs.starts import Starts
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.process import WorkerProcess
from stepwell_engine.service.worker.sweep import Sweep
from tests.sim.clocks import HostClock
from tests.sim.scheduler import Actor


@dataclass(eq=False)
class Host:
    """A machine with a clock of its own. `boot` makes what a new process of it begins with."""

    clock: HostClock
    starts: Starts
    controls: Controls
    sweep: Sweep
    boot: Callable[[], tuple[Advance, WorkerProcess]]

    def __post_init__(self) -> None:
        """It is on."""
        self.workers: list[Actor] = []
        self.advance, self.process = self.boot()

    def restart(self) -> None:
        """Its process ended; the next one knows nothing."""
        self.workers = []
        self.advance, self.process = self.boot()
