"""From messages on the queue of hints to calls of the engine."""

import logging
from collections.abc import Callable
from typing import Any, assert_never

from aws_lambda_powertools.logging.formatter import clear_context_keys, set_context_keys

from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.values import subject as subjects
from stepwell_engine.core.values.subject import Subject, SubjectKind
from stepwell_engine.core.values.units import Ms
from stepwell_engine.errors import StoreError
from stepwell_engine.service.worker.advance import Advance

log = logging.getLogger(__name__)


def advance(
    engine: Advance, body: str, budget: Ms, count: Callable[[str], None], lane: Lane
) -> None:
    """Look at what a message names, within `budget` ms: advance a run.

    StoreError if the store does not answer or refuses: the message is worth delivering again.
    What is no hint, and a run on which the engine has a defect, are logged, counted
    (`HintsRefused`, `RunsFailed`) and done with: the tick finds every live run again, so a message
    is no loss, but one that fails each time would be delivered for days.
    """
    try:
        subject = subjects.decode(body)
    except ValueError as error:
        count("HintsRefused")
        log.warning("a message was dropped: %s", error)
        return
    count("HintsTaken")
    match subject.kind:
        case SubjectKind.RUN:
            _advance_run(engine, subject, budget, count, lane)
        case _:
            assert_never(subject.kind)


def _advance_run(
    engine: Advance, run: Subject, budget: Ms, count: Callable[[str], None], lane: Lane
) -> None:
    ids: Any = {"run_id": run.id, "project": run.project}
    set_context_keys(**ids)
    try:
        engine.run(run.id, run.project, budget, hard=True, lane=lane)
    except StoreError as error:
        count("StoreUnavailable")
        log.warning("run %s: %s; the hint will come again", run.id, error)
        raise
    except Exception:
        count("RunsFailed")
        log.exception("run %s: advancing failed", run.id)
    finally:
        clear_context_keys()
