"""What every home has: the use cases over its adapters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from stepwell_engine.adapters.process.task_groups import ThreadTaskGroups
from stepwell_engine.ports import Clock, Dispatcher, Ids, LongPollSlots, StepRunner
from stepwell_engine.service.projects.definitions import Workflows
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.process import WorkerProcess
from stepwell_engine.service.worker.sweep import Sweep
from stepwell_engine.wiring.stores import Capabilities, Stores

if TYPE_CHECKING:
    from stepwell_engine.api.services import Services


@dataclass(frozen=True)
class Engine:
    """The use cases: a worker's, a tick's, and those behind the API."""

    advance: Advance
    sweep: Sweep
    make_services: "Callable[[], Services]"

    @cached_property
    def services(self) -> "Services":
        """The use cases behind the API, loaded when first asked for: a worker needs none."""
        return self.make_services()


def assemble(
    stores: Stores,
    runners: Mapping[str, StepRunner],
    dispatcher: Dispatcher,
    clock: Clock,
    ids: Ids,
    capabilities: Capabilities,
    slots: LongPollSlots | None = None,
    process: WorkerProcess | None = None,
) -> Engine:
    """The use cases over a home's adapters. `slots`: None lets every request wait.

    `process`: what the workers share, where it is not the plainest.
    """
    workflows = Workflows(stores.versions, stores.secrets, clock)
    process = process or WorkerProcess()

    def make_services() -> "Services":
        from stepwell_engine.wiring.services import services  # noqa: PLC0415

        return services(
            stores, workflows, dispatcher, clock, ids, capabilities, process.refusals, slots
        )

    return Engine(
        Advance(
            stores.runs, workflows, runners, ThreadTaskGroups(), dispatcher, clock, ids, process
        ),
        Sweep(stores.runs, dispatcher, clock, capabilities.look_ahead),
        make_services,
    )
