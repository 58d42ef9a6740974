"""Advances the runs that a batch of hints names: the handler of the function `executor`."""

from functools import cache
from typing import Any

from functions.executor import batch
from stepwell_engine.lambdas.telemetry import Telemetry
from stepwell_engine.settings.aws import read
from stepwell_engine.wiring.aws import AwsHome, aws


@cache
def _begin() -> tuple[AwsHome, Telemetry]:
    """Once, with the first invocation."""
    settings = read()
    return aws(settings), Telemetry(settings.log_level)


def handler(event: dict[str, Any], context: Any) -> Any:
    """An event of SQS in, the messages that failed out."""
    home, telemetry = _begin()
    telemetry.begin(context.aws_request_id)
    try:
        return batch.run(home, event, context)
    finally:
        telemetry.report({"Invocations": 1, **home.counters.take()})
