"""A batch of hints, all advanced at the same time."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from stepwell_engine.lambdas import records
from stepwell_engine.wiring.aws import AwsHome

THREADS: Final = 10  # as many as the messages of a batch
# What is left when no act may run any more: an outcome has to be recorded, and a store that does
# not answer may take three calls of five seconds each.
MARGIN: Final = 20_000  # ms


class Concurrent(BatchProcessor):
    """Has a thread for each record; all have ended when the batch has."""

    def __init__(self, threads: int) -> None:
        super().__init__(EventType.SQS, raise_on_entire_batch_failure=False)
        self._threads = threads

    def process(self) -> list[Any]:
        """What became of each record."""
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(self._process_record, self.records))


def run(home: AwsHome, event: dict[str, Any], context: Any, threads: int = THREADS) -> Any:
    """Advance the runs of a batch; the answer names the messages that have to come again."""
    ends = home.clock.now() + context.get_remaining_time_in_millis() - MARGIN

    def advance(record: SQSRecord) -> None:
        budget = ends - home.clock.now()
        if budget <= 0:
            raise TimeoutError("no time is left to begin this one: it comes again")
        records.advance(home.engine.advance, record.body, budget, home.counters.add)

    return process_partial_response(event, advance, Concurrent(threads), context)
