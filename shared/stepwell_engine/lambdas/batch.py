"""A batch of hints, all advanced at the same time."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from stepwell_engine.core.run.lane import Lane
from stepwell_engine.lambdas import hints
from stepwell_engine.ports import Clock
from stepwell_engine.service.worker.advance import Advance

THREADS: Final = 10  # as many as the messages of a batch
# What is left when no attempt may run any more: an outcome has to be recorded, and a store that
# does not answer may take three calls of five seconds each.
MARGIN: Final = 20_000  # ms


class Again(Protocol):
    """Has a message come again; `alone`: it came alone."""

    def __call__(self, receipt: str, receives: int, *, alone: bool) -> None:
        """See adapters.sqs.hints.SqsRedeliveries."""
        ...


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
    again: Again,
    alone_queue: str,
    event: dict[str, Any],
    context: Any,
    threads: int = THREADS,
) -> Any:
    """Advance the runs of a batch; the answer names the messages that have to come again.

    `count` takes the name of a metric; `again` has a message come again in seconds, given its
    receipt and how often it was received. What comes from the queue named `alone_queue` comes
    alone: whatever ends this process, it was that.
    """
    ends = clock.now() + context.get_remaining_time_in_millis() - MARGIN

    def lane(record: SQSRecord) -> Lane:
        queue = record.event_source_arn.rpartition(":")[2]
        return Lane.ALONE if queue == alone_queue else Lane.SHARED

    def advance(record: SQSRecord) -> None:
        try:
            budget = ends - clock.now()
            if budget <= 0:
                raise TimeoutError("no time is left to begin this one: it comes again")
            hints.advance(engine, record.body, budget, count, lane(record))
        except Exception:
            attributes = record.raw_event["attributes"]
            receives = int(attributes["ApproximateReceiveCount"])
            again(record.receipt_handle, receives, alone=lane(record) is Lane.ALONE)
            raise

    return process_partial_response(event, advance, ConcurrentProcessor(threads), context)
