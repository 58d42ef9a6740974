"""From messages on the queue of hints to calls of the engine."""

import logging
from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.logging.formatter import clear_context_keys, set_context_keys

from stepwell_engine.core.run import hint as hints
from stepwell_engine.errors import Unavailable
from stepwell_engine.service.worker.advance import Advance

log = logging.getLogger(__name__)


def advance(engine: Advance, body: str, budget: int, count: Callable[[str], None]) -> None:
    """Advance the run that a message names, within `budget` ms.

    Unavailable if the store does not answer: the message is worth delivering again. What is no
    hint, and a run on which the engine has a defect, are logged, counted (`HintsRefused`,
    `RunsFailed`) and done with: the tick finds every live run again, so a message is no loss, but
    one that fails each time would be delivered for days.
    """
    try:
        hint = hints.decode(body)
    except ValueError as error:
        count("HintsRefused")
        log.warning("a message was dropped: %s", error)
        return
    count("HintsTaken")
    ids: Any = {"run_id": hint.run_id, "project": hint.project}
    set_context_keys(**ids)
    try:
        engine.run(hint.run_id, hint.project, budget, hard=True)
    except Unavailable as error:
        count("StoreUnavailable")
        log.warning("run %s: %s; the hint will come again", hint.run_id, error)
        raise
    except Exception:
        count("RunsFailed")
        log.exception("run %s: advancing failed", hint.run_id)
    finally:
        clear_context_keys()
