"""A batch of hints, all advanced at the same time."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from stepwell_engine.lambdas import hints
from stepwell_engine.ports import Clock
from stepwell_engine.service.worker.advance import Advance

THREADS: Final = 10  # as many as the messages of a batch
# What is left when no attempt may run any more: an outcome has to be recorded, and a store that
# does not answer may take three calls of five seconds each.
MARGIN: Final = 20_000  # ms


class ConcurrentProcessor(BatchProcessor):
    """Has a thread for each record; all have ended when the batch has."""

    def __init__(self, threads: int) -> None:
        super().__init__(EventType.SQS, raise_on_entire_batch_failure=False)
        self._threads = threads

    def process(self) -> list[Any]:
        """The result of each record."""
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(self._process_record, self.records))


def advance_batch(
    engine: Advance,
    clock: Clock,
    count: Callable[[str], None],
    again: Callable[[str, int], None],
    event: dict[str, Any],
    context: Any,
    threads: int = THREADS,
) -> Any:
    """Advance the runs of a batch; the answer names the messages that have to come again.

    `count` takes the name of a metric; `again` has a message come again in seconds, given its
    receipt and how often it was received.
    """
    ends = clock.now() + context.get_remaining_time_in_millis() - MARGIN

    def advance(record: SQSRecord) -> None:
        try:
            budget = ends - clock.now()
            if budget <= 0:
                raise TimeoutError("no time is left to begin this one: it comes again")
            hints.advance(engine, record.body, budget, count)
        except Exception:
            attributes = record.raw_event["attributes"]
            again(record.receipt_handle, int(attributes["ApproximateReceiveCount"]))
            raise

    return process_partial_response(event, advance, ConcurrentProcessor(threads), context)
