"""Reading what the overflow of an inbox holds, a little at a time."""

from functools import partial

from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.overflow import Overflow, Taken
from stepwell_engine.errors import Unavailable
from stepwell_engine.ports import Runs
from stepwell_engine.service.worker.persistence import Persistence


def read_more(
    runs: Runs, persist: Persistence, head: Head, taken: Taken, overflow: Overflow
) -> Overflow | None:
    """The overflow with its next page read, up to what `head` counts.

    The head was read before: so all of the page is there. None if it is not, for another worker
    has the lease by now, and what it consumed may be gone. Unavailable if nobody has.
    """
    page = overflow.page(taken, head.overflow_last)
    if page is None:
        raise ValueError(f"run {head.run_id}: all of its overflow is read")
    first, last = page
    slots = persist(partial(runs.overflow, head.run_id, first, last))
    if all(number in slots or number in taken for number in range(first, last + 1)):
        return overflow.read(last, slots)
    stored = persist(partial(runs.get, head.run_id))
    if stored is not None and stored.writes == head.writes:
        raise Unavailable(f"run {head.run_id}: not all of messages {first} to {last} are there")
    return None
