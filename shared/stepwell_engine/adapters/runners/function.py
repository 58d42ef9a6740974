"""Steps of the kind function, of all kinds that a home can call."""

from collections.abc import Callable, Mapping
from typing import Any

from stepwell_engine.adapters.runners.attempts import find
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.run.attempt import Attempt, Failed, Outcome
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.ports import Clock, Resource, Resources

# Takes what the resource says of the function (URL, ARN, command, module:callable), the attempt,
# and its deadline, which looking up the resource has brought nearer.
Call = Callable[[Any, Attempt, Deadline], Outcome]


class FunctionRunner:
    """Calls the function resource that the target names; the output is what it returned."""

    def __init__(self, resources: Resources, calls: Mapping[str, Call], clock: Clock) -> None:
        """`calls`: how to call each kind of function, by the name of its kind."""
        self._resources = resources
        self._calls = calls
        self._clock = clock

    def run(self, attempt: Attempt) -> Outcome:
        """Call once. Fails with `unknown_resource`."""
        deadline = Deadline.of(attempt, self._clock)
        resource = find(self._resources, attempt, deadline, "function", attempt.target)
        if not isinstance(resource, Resource):
            return resource
        ((kind, target),) = jsonvalue.decode(resource.config).items()
        call = self._calls.get(kind)
        if call is None:
            return Failed(
                f'the function "{attempt.target}" is one by {kind}, which this installation cannot '
                f"call, only those by {', '.join(self._calls)}",
                code="unknown_resource",
                retryable=False,
            )
        return call(target, attempt, deadline)
