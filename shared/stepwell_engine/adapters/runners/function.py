"""Steps of the kind function, of all kinds that a home can call."""

from collections.abc import Callable, Mapping
from typing import Any

from stepwell_engine.adapters.runners.attempts import find
from stepwell_engine.core.run.attempt import Attempt, Failed, Outcome
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.ports import Resource, Resources

# Takes what the resource says of the function (URL, ARN, command, module:callable) and the attempt.
Call = Callable[[Any, Attempt], Outcome]


class FunctionRunner:
    """Calls the function resource that the target names; the output is what it returned."""

    def __init__(self, resources: Resources, calls: Mapping[str, Call]) -> None:
        """`calls`: how to call each kind of function, by the name of its kind."""
        self._resources = resources
        self._calls = calls

    def run(self, attempt: Attempt) -> Outcome:
        """Call once. Fails with `unknown_resource`."""
        resource = find(self._resources, attempt, "function", attempt.target)
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
        return call(target, attempt)
