"""What the workers of one process share."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.values.units import EpochMs, LeaseToken, RunId
from stepwell_engine.errors import NewerFormat
from stepwell_engine.ports import Done, Isolation, Written
from stepwell_engine.service.runs.store_refusals import StoreRefusals

log = logging.getLogger(__name__)

MOST_REMEMBERED: Final = 10_000  # runs that it said of that they are newer
MOST_UNANSWERED: Final = 1_000


class Held(Protocol):
    """A run whose lease a worker of this process holds."""

    def abandon(self, ends: EpochMs) -> bool:
        """Let go of it, from any thread; False if the store does not take that by `ends`."""
        ...


class Unanswered:
    """Tokens of claims that the store did not answer. They may have succeeded, and are used again.

    Only in their lane: a lease tells whether its holder is alone. Of too many the oldest are
    forgotten; their leases run out. Each call is some operations of a dict: threads may share it.
    """

    def __init__(self) -> None:
        self._tokens: dict[tuple[RunId, Lane], LeaseToken] = {}

    def keep(self, run_id: RunId, lane: Lane, token: LeaseToken) -> None:
        """A claim with this token was not answered."""
        self._tokens[run_id, lane] = token
        for oldest in list(self._tokens)[:-MOST_UNANSWERED]:
            self._tokens.pop(oldest, None)

    def take(self, run_id: RunId, lane: Lane) -> LeaseToken | None:
        """The token of such a claim, once."""
        return self._tokens.pop((run_id, lane), None)


@dataclass(slots=True)
class WorkerProcess:
    """What they share. In the lane HOST there is an `isolation` for suspects.

    `held` are the runs whose lease was taken, by the token with which that was done; `claims` the
    tokens of claims that are not answered yet. `abandoned`: the process ends without waiting for
    its runs, so that no worker may begin or claim anything more. `count` takes the name of a
    metric.
    """

    refusals: StoreRefusals = field(default_factory=StoreRefusals)
    unanswered: Unanswered = field(default_factory=Unanswered)
    isolation: Isolation | None = None
    held: dict[LeaseToken, Held] = field(default_factory=dict)
    claims: set[LeaseToken] = field(default_factory=set)
    abandoned: bool = False
    count: Callable[[str], None] = lambda _: None
    newer: set[RunId] = field(default_factory=set)

    def claim(
        self, token: LeaseToken, call: Callable[[], Written], take: Callable[[Head], None]
    ) -> Written | None:
        """The answer of a claim with this token; None, without a call, if the process is abandoned.

        `take` gets the head before anybody who abandons the process looks for what is held.
        """
        self.claims.add(token)
        try:
            if self.abandoned:
                return None
            written = call()
            if isinstance(written, Done):
                take(written.head)
            return written
        finally:
            self.claims.discard(token)

    def met_newer(self, run_id: RunId, error: NewerFormat) -> None:
        """A worker leaves a run to newer ones: counted each time, said once."""
        self.count("NewerFormats")
        if run_id in self.newer:
            return
        if len(self.newer) >= MOST_REMEMBERED:
            self.newer.clear()
        self.newer.add(run_id)
        log.warning("run %s: %s", run_id, error)
