"""An invocation of a function on AWS: the first one wires the home, each one is reported."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from stepwell_engine.lambdas.telemetry import Telemetry
from stepwell_engine.settings.aws import read
from stepwell_engine.wiring.aws import AwsHome, aws


@cache
def started() -> tuple[AwsHome, Telemetry]:
    """The home and the telemetry of this process. ValueError if a setting is missing."""
    settings = read()
    return aws(settings), Telemetry(settings.log_level)


@contextmanager
def invocation(context: Any) -> Iterator[tuple[AwsHome, dict[str, int]]]:
    """The home, and an empty dict for ages in ms: they are reported with the counts at the end."""
    home, telemetry = started()
    telemetry.begin(context.aws_request_id)
    ages: dict[str, int] = {}
    try:
        yield home, ages
    finally:
        telemetry.report({"Invocations": 1, **home.counters.take()}, ages)
