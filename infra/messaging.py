"""The queues of hints, and where messages go that could not be delivered.

The queues are standard ones: hints may be doubled or out of order. Their sender gives each the
project as message group, so that one project's flood does not delay the others.
"""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions import EXECUTOR
from infra.nag import acknowledge

# The least that Lambda takes. An executor that fails on a hint has it delivered again in seconds;
# only one that crashes, or that Lambda cannot invoke, leaves its batch hidden for so long. Lambda
# may then still try while the batch is handed out again, which does no harm: leases see to that.
VISIBILITY: Final = EXECUTOR.timeout
# Pauses of 5 s that double up to 5 min: some 20 minutes of a store that does not answer.
MAX_RECEIVES: Final = 10
# What is older has long been hinted again. Longer than MAX_RECEIVES deliveries take.
RETENTION: Final = cdk.Duration.days(1)
DEAD_RETENTION: Final = cdk.Duration.days(14)


class Messaging(Construct):
    """The queues `hints` and `alone`, and the dead-letter queues `dead_hints` and `dead_ticks`.

    `alone` is for runs that may be what ends their workers: each has an invocation of its own.
    """

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
        self.hints = self._hints("Hints")
        self.alone = self._hints("Alone")

    def _hints(self, construct_id: str) -> sqs.Queue:
        return sqs.Queue(
            self,
            construct_id,
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
