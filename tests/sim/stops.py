"""Hosts that are told to stop: each lets go of the runs that its workers hold, and ends."""

from collections.abc import Sequence
from functools import partial
from random import Random

from stepwell_engine.limits import SECOND
from tests.sim.hosts import Host
from tests.sim.links import Links
from tests.sim.scheduler import Actor, Violation

_COUNTS = (0, 0, 0, 1, 3, 12)
_LONGEST_LOG, _SOON_LOG = 4.5, 1.5  # of a pause in ms
_PAGE = 0.5
_WITHIN = 5 * SECOND  # that letting go of everything may take


class Stops:
    """When they are, drawn apart from everything else: some seeds have none."""

    def __init__(self, seed: int, embedded: bool) -> None:
        """Only an `embedded` home has hosts that can be told to."""
        self._own = Random(f"stops {seed}")
        self._left = self._own.choice(_COUNTS) if embedded else 0
        self._often = self._own.choice((0.02, 0.2))

    def draw(self, what: str) -> int | None:
        """After how many ms the host of a worker that does something is told to; None: it is not.

        More often, and soon, where a page is written: then outcomes are in hand.
        """
        page = what == "page"
        if not self._left or self._own.random() >= (_PAGE if page else self._often):
            return None
        self._left -= 1
        return int(10 ** ((_SOON_LOG if page else _LONGEST_LOG) * self._own.random()))


def stop(links: Links, host: Host) -> None:
    """Stop a host in order, unless something goes wrong meanwhile.

    What it holds is let go of, and no loss will be counted, if the store took that. Property 5.
    """
    links.fault()
    links.checks.last_stop = links.scheduler.now
    workers = tuple(host.workers)
    try:
        kept = host.advance.abandon([partial(_end_attempts, links, workers)], _WITHIN)
        links.scheduler.note("stops in order, but for", kept, "runs")
        alive = (one for one in (*workers, *host.workers) if one.process.alive)
        tokens = {worker.token for worker in alive}
        tokens -= set(host.process.unanswered._tokens.values())
        for run_id, ledger in links.checks.ledgers.items():
            token = ledger.head.lease_token
            if token is None or token not in tokens:
                continue
            if ledger.head.live and not kept:
                raise Violation(5, f"{run_id} is held by a host that has stopped in order")
            links.checks.stopped.add(token)  # one that was cancelled is closed by another
    finally:
        links.fault()
        links.checks.last_stop = links.scheduler.now
        links.scheduler.kill([worker.process for worker in host.workers])
        host.restart()


def _end_attempts(links: Links, workers: Sequence[Actor]) -> None:
    """What is in flight is ended, or has no outcome any more; what has completed is in hand."""
    for worker in workers:
        worker.process.stopped = True
        ledger = links.checks.ledgers.get(worker.run_id or "")
        if ledger is None:
            continue
        tokens = {worker.token, worker.before}
        ledger.stopped |= tokens
        for one in (*ledger.unrecorded, *ledger.stranded):
            if one.token in tokens and not one.completed:
                one.over = one.stopped = True
            elif one.token in tokens and not one.seen:
                ledger.take(one)
