"""Deadline of an attempt, in monotonic time, and what its time goes to before the call."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from stepwell_engine.core.run.attempt import Attempt
from stepwell_engine.core.values.units import Ms
from stepwell_engine.limits import SECOND
from stepwell_engine.ports import Clock


class Deadline:
    """When an attempt must be over. Look-ups (resources, secrets, names) count like the call.

    The wall clock is read once, as the runner begins; from then on time is monotonic. So a clock
    that jumps neither ends an attempt in flight nor lets it outlast its lease.

    Every runner looks at `passed` right before its side effect. What comes between that look and
    the effect (a thread that does not get to run, a new connection to AWS, which has a second of
    its own) is what the margin of the lease is for.
    """

    def __init__(self, timeout: Ms, left: Ms | None = None) -> None:
        """An attempt of a step with `timeout`, of which `left` ms (None: all) are ahead."""
        self.timeout = timeout
        self.at = time.monotonic() + (timeout if left is None else left) / SECOND
        self.longest_lookup = ("", 0.0)  # what it was, and the s that it took

    @classmethod
    def of(cls, attempt: Attempt, clock: Clock) -> "Deadline":
        """What the worker set, and never later than the step's timeout from now."""
        if attempt.deadline is None:
            return cls(attempt.timeout)
        return cls(attempt.timeout, min(attempt.timeout, attempt.deadline - clock.now()))

    @property
    def seconds(self) -> float:
        """What is left; above 0 also when it is over, as no library takes 0 for a timeout."""
        return max(0.001, self.at - time.monotonic())

    @property
    def ms(self) -> Ms:
        """What is left; at least 1."""
        return round(self.seconds * SECOND)

    def passed(self) -> bool:
        """Whether nothing may begin any more."""
        return self.at <= time.monotonic()

    @contextmanager
    def looking_up(self, what: str) -> Iterator[None]:
        """Note how long a look-up takes."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.looked_up(what, time.monotonic() - began)

    def looked_up(self, what: str, seconds: float) -> None:
        """Note how long a look-up took."""
        if seconds > self.longest_lookup[1]:
            self.longest_lookup = (what, seconds)
