"""Sends hints for all that is due: the handler of the function `tick`."""

from functools import cache
from typing import Any

from functions.tick import sweep
from stepwell_engine.lambdas.telemetry import Telemetry
from stepwell_engine.settings.aws import read
from stepwell_engine.wiring.aws import AwsHome, aws


@cache
def _begin() -> tuple[AwsHome, Telemetry]:
    """Once, with the first invocation."""
    settings = read()
    return aws(settings), Telemetry(settings.log_level)


def handler(event: dict[str, Any], context: Any) -> None:
    """An event of the scheduler, or of a tick that did not see everything."""
    home, telemetry = _begin()
    telemetry.begin(context.aws_request_id)
    ages: dict[str, int] = {}
    try:
        ages = sweep.run(home, event, context)
    finally:
        telemetry.report({"Invocations": 1, **home.counters.take()}, ages)
