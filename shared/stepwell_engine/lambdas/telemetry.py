"""What a function tells about itself: logs as JSON, metrics in the embedded metric format."""

import logging
from collections.abc import Mapping
from typing import Final

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

ENGINE: Final = "stepwell_engine"


class Telemetry:
    """The logs and metrics of one function. Namespace and service are Powertools' variables."""

    def __init__(self, level: str) -> None:
        """From now on the engine logs as JSON, with the ids of the invocation and of the run."""
        self._logger = Logger(level=level)
        engine = logging.getLogger(ENGINE)
        engine.handlers = list(self._logger.handlers)
        engine.setLevel(level)
        engine.propagate = False

    def begin(self, request_id: str) -> None:
        """An invocation begins."""
        self._logger.append_keys(function_request_id=request_id)

    def report(self, counts: Mapping[str, int], ages: Mapping[str, int] | None = None) -> None:
        """Write metrics: counts, and ages in ms."""
        metrics = EphemeralMetrics()
        for name, count in counts.items():
            metrics.add_metric(name, MetricUnit.Count, count)
        for name, ms in (ages or {}).items():
            metrics.add_metric(name, MetricUnit.Milliseconds, ms)
        metrics.flush_metrics()
