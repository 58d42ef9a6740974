"""The overflow of a run's inbox: numbered messages beside the head, and which are consumed. Pure.

The head says the last number that counts and how many are pending; the journal says which numbers
are consumed. Messages of a name that nobody waits for stay behind, so there are gaps.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from stepwell_engine.core.run.inbox import InboxMessage, Slot

_NEAR: Final = 16  # consumed numbers that are read along rather than left out by another call
FIRST_PAGE: Final = 16  # numbers that are read first; each page after it may be twice as long
LONGEST_PAGE: Final = 256


@dataclass(frozen=True, slots=True)
class Taken:
    """The numbers that are consumed: all up to `mark`, and those of `ranges`, both ends included.

    The ranges are in order, above `mark` + 1, and do not touch.
    """

    mark: int = 0
    ranges: tuple[tuple[int, int], ...] = ()

    def __contains__(self, number: int) -> bool:
        return number <= self.mark or any(first <= number <= last for first, last in self.ranges)

    def plus(self, numbers: Iterable[int]) -> "Taken":
        """With these numbers, too."""
        spans = sorted([*self.ranges, *((one, one) for one in numbers)])
        mark, ranges = self.mark, list[tuple[int, int]]()
        for first, last in spans:
            if first <= mark + 1:
                mark = max(mark, last)
            elif ranges and first <= ranges[-1][1] + 1:
                ranges[-1] = (ranges[-1][0], max(ranges[-1][1], last))
            else:
                ranges.append((first, last))
        return Taken(mark, tuple(ranges))

    def untaken(self, after: int, last: int) -> Iterator[tuple[int, int]]:
        """The ranges of numbers above `after`, up to `last`, that are not consumed."""
        begin = max(after, self.mark) + 1
        for low, high in self.ranges:
            if begin < low and begin <= last:
                yield begin, min(low - 1, last)
            begin = max(begin, high + 1)
        if begin <= last:
            yield begin, last

    def page(self, after: int, last: int, most: int) -> tuple[int, int] | None:
        """The numbers to be read next, `most` at most; None if all up to `last` are consumed.

        Few of them are consumed: there is at most one page for each that is not.
        """
        spans = self.untaken(after, last)
        begun = next(spans, None)
        if begun is None:
            return None
        first, end = begun
        for low, high in spans:
            if low - end > _NEAR:
                break
            end = high
        return first, min(end, first + most - 1)


NOTHING_TAKEN: Final = Taken()


@dataclass(frozen=True, slots=True)
class Overflow:
    """What a worker has read of an overflow: all that was not consumed then, up to `read_to`.

    `voids` are numbers whose message does not count. `most` is how many the next page may have.
    """

    read_to: int = 0
    messages: Mapping[int, InboxMessage] = field(default_factory=lambda: MappingProxyType({}))
    voids: tuple[int, ...] = ()
    most: int = FIRST_PAGE

    def oldest(self, name: str | None, taken: Taken) -> int | None:
        """The number of the first message of that name that is not consumed."""
        numbers = (one for one, message in self.messages.items() if message.name == name)
        return next((one for one in numbers if one not in taken), None)

    def page(self, taken: Taken, last: int) -> tuple[int, int] | None:
        """The numbers to be read next, up to `last`."""
        return taken.page(self.read_to, last, self.most)

    def read(self, last: int, slots: Mapping[int, Slot]) -> "Overflow":
        """After a page up to `last`."""
        found = {number: slot.message for number, slot in slots.items() if not slot.void}
        voids = tuple(number for number, slot in slots.items() if slot.void)
        most = min(2 * self.most, LONGEST_PAGE)
        return Overflow(last, {**self.messages, **found}, self.voids + voids, most)


NOTHING_READ: Final = Overflow()
