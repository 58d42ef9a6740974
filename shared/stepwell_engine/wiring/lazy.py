"""Step runners whose libraries load with the first step that needs them."""

import threading
from collections.abc import Callable

from stepwell_engine.adapters.runners.attempts import is_shortage
from stepwell_engine.core.run.attempt import Attempt, Deferred, Outcome
from stepwell_engine.ports import StepRunner


def not_loaded(error: OSError) -> Deferred:
    """The outcome of a step whose runner could not be made; raises what is no shortage."""
    if not is_shortage(error):
        raise error
    return Deferred(f"what runs this step cannot be loaded now: {error}")


class LazyStepRunner:
    """Made when its first step comes, by one thread for all."""

    def __init__(self, make: Callable[[], StepRunner]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: StepRunner | None = None

    def run(self, attempt: Attempt) -> Outcome:
        """Run with the step runner, made now if it is the first time."""
        if self._made is None:
            with self._lock:
                if self._made is None:
                    try:
                        self._made = self._make()
                    except OSError as error:
                        return not_loaded(error)
        return self._made.run(attempt)
