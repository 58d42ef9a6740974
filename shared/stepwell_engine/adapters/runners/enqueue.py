"""Steps of the kind enqueue: a message to one of the project's queues."""

from stepwell_engine.adapters.runners.attempts import (
    find,
    output_of,
    timed_out,
    unknown_resource,
)
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.run.attempt import Attempt, Deferred, Failed, Outcome
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.errors import NotWritten, QueueNotFound, StoreError
from stepwell_engine.ports import Clock, Queues, Resource, Resources


class EnqueueRunner:
    """Sends the payload; the output is `{"msg_id": …}`, the queue's own id of the message."""

    def __init__(self, resources: Resources, queues: Queues, clock: Clock) -> None:
        self._resources = resources
        self._queues = queues
        self._clock = clock

    def run(self, attempt: Attempt) -> Outcome:
        """Send one message. Fails with `unknown_resource`."""
        deadline = Deadline.of(attempt, self._clock)
        queue = find(self._resources, attempt, deadline, "queue", attempt.target)
        if not isinstance(queue, Resource):
            return queue
        body = jsonvalue.encode(attempt.payload)
        try:
            msg_id = self._queues.send(
                attempt.project, attempt.target, body, self._clock.now(), deadline.ms
            )
        except QueueNotFound:
            # Deleted in between.
            return unknown_resource(attempt, "queue", attempt.target)
        except NotWritten as error:  # its store is the engine's own: no fault of the step
            return Deferred(f'the queue "{attempt.target}" takes no message now: {error}')
        except StoreError as error:
            if deadline.passed():
                return timed_out(f'sending to the queue "{attempt.target}"', deadline)
            return Failed(f'the queue "{attempt.target}" did not take the message: {error}')
        return output_of({"msg_id": msg_id}, "the id of the message")
