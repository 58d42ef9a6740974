"""What goes out after a write that makes it true: hints, and the news of a run's end."""

from stepwell_engine import limits
from stepwell_engine.core.run.decision import Decision, Finish, Park
from stepwell_engine.core.run.head import Head, wake_time
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.core.values.units import EpochMs
from stepwell_engine.service.worker.tools import Tools


def dispatch(tools: Tools, head: Head, decision: Decision, now: EpochMs, release: bool) -> None:
    """Dispatch what follows from a decision of `now` whose commit left the head as it is."""
    run = about_run(head.run_id, head.project)
    match decision.next:
        case Park(ready_at=ready_at):
            delay = max(0, wake_time(ready_at, head.deadline) - now)
            if delay <= limits.MAX_HINT_DELAY:
                tools.dispatcher.hint(run, delay)
        case Finish():
            tools.children.notify(head)
        case _ if release:
            tools.dispatcher.hint(run)
