"""The queue of hints, and where messages go that could not be delivered.

The queue is a standard one: hints may be doubled or out of order. Their sender gives each the
project as message group, so that one project's flood does not delay the others.
"""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions import EXECUTOR
from infra.nag import acknowledge

# Lambda's rule: a batch is hidden for six times as long as a function may take, so that it is not
# handed out again while Lambda still tries. A hint lost meanwhile is sent again by the tick.
VISIBILITY: Final = 6 * EXECUTOR.timeout
MAX_RECEIVES: Final = 5
# What is older has long been hinted again. Longer than MAX_RECEIVES deliveries take.
RETENTION: Final = cdk.Duration.days(1)
DEAD_RETENTION: Final = cdk.Duration.days(14)


class Messaging(Construct):
    """The queue `hints` and the dead-letter queues `dead_hints` and `dead_ticks`."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.dead_hints = self._dead_letters("DeadHints")
        self.dead_ticks = self._dead_letters("DeadTicks")
        acknowledge(
            self.dead_ticks,
            {
                "AwsSolutions-SQS3": "It is the dead-letter queue of the schedule; the rule knows "
                "only those of queues."
            },
        )
        self.hints = sqs.Queue(
            self,
            "Hints",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            visibility_timeout=cdk.Duration.seconds(VISIBILITY),
            retention_period=RETENTION,
            receive_message_wait_time=cdk.Duration.seconds(20),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_hints, max_receive_count=MAX_RECEIVES
            ),
        )

    def _dead_letters(self, construct_id: str) -> sqs.Queue:
        return sqs.Queue(
            self,
            construct_id,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=DEAD_RETENTION,
            receive_message_wait_time=cdk.Duration.seconds(20),
        )
