"""Answers the API: the handler of the function `api`."""

from functools import cache
from typing import Any

from stepwell_engine.api.app import Handler, build
from stepwell_engine.lambdas.telemetry import Telemetry
from stepwell_engine.settings.aws import read
from stepwell_engine.wiring.aws import AwsHome, aws


@cache
def _begin() -> tuple[AwsHome, Handler, Telemetry]:
    """Once, with the first invocation."""
    settings = read()
    home = aws(settings)
    return home, build(home.engine.services), Telemetry(settings.log_level)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """An event of the HTTP API in, its answer out."""
    home, answer, telemetry = _begin()
    telemetry.begin(context.aws_request_id)
    try:
        return answer(event, context)
    finally:
        telemetry.report({"Invocations": 1, **home.counters.take()})
