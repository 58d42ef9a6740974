"""Which numbers of an overflow are consumed, what is read of it next, and what a wait takes."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell_engine import limits
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind, Slot
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.journal_codec import JournalCodec, format_of
from stepwell_engine.core.run.keys import UNNAMED
from stepwell_engine.core.run.overflow import (
    FIRST_PAGE,
    LONGEST_PAGE,
    NOTHING_READ,
    NOTHING_TAKEN,
    Overflow,
    Taken,
)
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import StepStatus
from tests.sim.workload import noise

LAST = 120
NUMBERS = st.lists(st.integers(1, LAST), max_size=60)
CODEC = JournalCodec(0, UNNAMED)


def taken_of(numbers: list[int]) -> Taken:
    taken = NOTHING_TAKEN
    for first in range(0, len(numbers), 3):
        taken = taken.plus(numbers[first : first + 3])
    return taken


@given(NUMBERS)
def test_what_is_taken_is_known_for_ever_and_nothing_else(numbers: list[int]) -> None:
    taken = taken_of(numbers)
    assert {one for one in range(1, LAST + 2) if one in taken} == set(numbers)
    assert taken == NOTHING_TAKEN.plus(numbers)
    ends = [0, *(end for span in ((taken.mark, taken.mark), *taken.ranges) for end in span)]
    assert ends == sorted(ends)
    assert all(low - high > 1 for high, low in zip(ends[2::2], ends[3::2], strict=False))


@given(NUMBERS)
def test_a_journal_keeps_what_is_taken(numbers: list[int]) -> None:
    journal = Journal(position=1, taken=taken_of(numbers))
    assert CODEC.decode(CODEC.encode(journal)) == journal
    newest = limits.RUN_FORMAT if numbers else limits.BASE_RUN_FORMAT
    assert format_of(journal) == newest


@pytest.mark.parametrize(
    ("taken", "stored"),
    [(Taken(7), "[7]"), (Taken(7, ((9, 9), (12, 20))), "[7,1,1,2,9]"), (Taken(0), None)],
)
def test_what_is_taken_is_stored_as_lengths(taken: Taken, stored: str | None) -> None:
    plain = "[2,0,0,null,[],[],[],0,0,null,0,{}]"
    expected = "[1,0,0,null,[],[],[]]" if stored is None else plain.replace("{}", stored)
    assert CODEC.encode(Journal(taken=taken)).decode() == expected


def test_a_thousand_left_between_others_take_less_than_one_kib() -> None:
    """The worst that interleaved names do to a head: every second message is waited for."""
    left = range(1, 2 * limits.MAX_PENDING_SIGNALS, 2)
    taken = NOTHING_TAKEN.plus(one + 1 for one in left)
    assert len(CODEC.encode(Journal(taken=taken))) < limits.KIB


def test_what_is_taken_sends_no_step_to_a_page() -> None:
    dice = Random(1)
    taken = NOTHING_TAKEN.plus(one for one in range(1, 5_000) if dice.random() < 0.8)
    assert len(CODEC.encode(Journal(taken=taken))) > limits.PAGE_ABOVE
    done = Record("#0", StepStatus.SUCCEEDED, 1, 0, 1, output=b"1")
    packed = CODEC.pack(Journal(records=(done,), taken=taken), "t", 1)
    assert (packed.blobs, packed.journal.records) == ((), (done,))
    outputs = (noise(number, limits.INLINE_OUTPUT - 2) for number in range(0, 80, 10))
    steps = tuple(
        replace(done, key=f"#{number}", output=f'"{text}"'.encode())
        for number, text in enumerate(outputs)
    )
    assert CODEC.pack(Journal(records=steps, taken=taken), "t", 1).journal.records == ()


def pages(taken: Taken, last: int, most: int) -> Iterator[tuple[int, int]]:
    after = 0
    while (page := taken.page(after, last, most)) is not None:
        yield page
        after = page[1]


@given(NUMBERS, st.integers(0, LAST), st.integers(1, 40))
def test_pages_have_all_that_is_not_taken_once_and_in_order(
    numbers: list[int], last: int, most: int
) -> None:
    taken = taken_of(numbers)
    found = list(pages(taken, last, most))
    read = [one for first, end in found for one in range(first, end + 1)]
    assert read == sorted(set(read))
    assert [one for one in read if one not in taken] == [
        one for one in range(1, last + 1) if one not in taken
    ]
    assert all(first not in taken and end - first < most for first, end in found)


def test_many_that_are_taken_are_left_out() -> None:
    taken = Taken(0, ((2, 100_000),))
    assert list(pages(taken, 100_001, 16)) == [(1, 1), (100_001, 100_001)]


def signal(name: str) -> InboxMessage:
    return InboxMessage(MessageKind.SIGNAL, name, 0, b"1")


def test_the_oldest_of_a_name_that_is_not_taken() -> None:
    slots = {
        1: Slot("a", signal("x")),
        2: Slot("b", signal("y"), "k", void=True),
        3: Slot("c", signal("y")),
        4: Slot("d", signal("y")),
    }
    overflow = NOTHING_READ.read(4, slots)
    assert overflow.oldest("y", NOTHING_TAKEN) == 3
    assert overflow.oldest("y", Taken(3)) == 4
    assert overflow.oldest("y", Taken(4)) is None
    assert overflow.voids == (2,)


def test_each_page_may_be_twice_as_long_up_to_the_longest() -> None:
    overflow, sizes = NOTHING_READ, []
    while overflow.read_to < 2_000:
        first, last = overflow.page(NOTHING_TAKEN, 2_000) or (1, 0)
        sizes.append(last - first + 1)
        overflow = overflow.read(last, {})
    assert sizes[:3] == [FIRST_PAGE, 2 * FIRST_PAGE, 4 * FIRST_PAGE]
    assert max(sizes) == LONGEST_PAGE
    assert overflow.page(NOTHING_TAKEN, 2_000) is None
    assert Overflow(read_to=2_000).page(NOTHING_TAKEN, 2_001) == (2_001, 2_001)
