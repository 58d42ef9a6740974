"""Pages of finished records, and index pages: nothing is lost, and a head stays small."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from random import Random
from string import ascii_letters, digits
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell_engine import limits
from stepwell_engine.core.run.journal import Journal, PageRef
from stepwell_engine.core.run.journal_codec import JournalCodec, decode_index, index_pages
from stepwell_engine.core.run.keys import StepKeys
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import StepStatus

BASE = 1_700_000_000_000
CODEC = JournalCodec(BASE, StepKeys({number: f"s{number}" for number in range(10_000)}))
FULL = limits.PAGES_OF_INDEX
NOISE = ascii_letters + digits


def record(number: int, size: int = 100) -> Record:
    """A finished record whose output does not compress."""
    text = "".join(Random(number).choices(NOISE, k=size))
    at = BASE + 10 * number
    return Record(f"s{number}", StepStatus.SUCCEEDED, 1, at, at + 7, f'"{text}"'.encode())


def leaves(pages: Sequence[PageRef], blobs: Mapping[str, bytes]) -> Iterator[PageRef]:
    """The pages that hold records, in order."""
    for page in pages:
        if page.level == 0:
            yield page
        else:
            below = decode_index(blobs[page.blob])
            assert page.count == sum(one.count for one in below)
            yield from leaves(below, blobs)


def written(journal: Journal, blobs: Mapping[str, bytes]) -> tuple[Record, ...]:
    """All finished records."""
    pages = (CODEC.decode_page(blobs[page.blob]) for page in leaves(journal.pages, blobs))
    return (*chain.from_iterable(pages), *journal.records)


def pages_of(count: int, level: int = 0) -> tuple[PageRef, ...]:
    return tuple(PageRef("older", number, 5, level) for number in range(count))


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 320), st.booleans()), max_size=60),
    st.integers(0, 700),
    st.integers(2, 9),
)
def test_all_records_are_there_after_any_writes(
    writes: list[tuple[int, int, bool]], page_above: int, full: int
) -> None:
    journal, token = Journal(), 0
    blobs: dict[str, bytes] = {}
    expected: list[Record] = []
    with (
        patch.object(limits, "PAGE_ABOVE", page_above),
        patch.object(limits, "PAGES_OF_INDEX", full),
        patch.object(limits, "INLINE_OUTPUT", 400),
    ):
        for write, (count, size, another_lease) in enumerate(writes):
            token += another_lease
            fresh = [record(len(expected) + number, size) for number in range(count)]
            expected += fresh
            journal = replace(journal, records=(*journal.records, *fresh))
            packed = CODEC.pack(journal, f"T{token}", write)
            assert not {blob.name for blob in packed.blobs} & blobs.keys()
            blobs |= {blob.name: blob.data for blob in packed.blobs}
            journal = CODEC.decode(packed.data)
            assert journal == packed.journal
    assert written(journal, blobs) == tuple(expected)
    levels = [page.level for page in journal.pages]
    assert levels == sorted(levels, reverse=True)
    assert all(levels.count(level) < full for level in levels)


@pytest.mark.parametrize("per_lease", [1, 200])
def test_a_head_stays_small_after_10_000_steps(per_lease: int) -> None:
    dice, journal, token = Random(per_lease), Journal(), ""
    blobs: dict[str, bytes] = {}
    for number in range(10_000):
        if number % per_lease == 0:
            token = "".join(dice.choices(NOISE, k=12))
        journal = replace(journal, records=(*journal.records, record(number)))
        packed = CODEC.pack(journal, token, number)
        assert len(packed.data) <= limits.PAGE_ABOVE
        assert all(len(blob.data) <= limits.KIB for blob in packed.blobs)
        blobs |= {blob.name: blob.data for blob in packed.blobs}
        journal = packed.journal
    assert [one.key for one in written(journal, blobs)] == [f"s{n}" for n in range(10_000)]


# --- when references move -----------------------------------------------------------------------


@pytest.mark.parametrize(("pages", "moved"), [(FULL - 1, False), (FULL, True), (FULL + 1, True)])
def test_a_level_that_is_full_moves_to_an_index_page(pages: int, moved: bool) -> None:
    older, full = pages_of(2, 5), pages_of(pages)
    left, blobs = index_pages((*older, *full), "T", 9)
    if moved:
        assert left == (*older, PageRef("T", 9, 5 * pages, 1))
        assert [(blob.name, decode_index(blob.data)) for blob in blobs] == [("i.T.9.1", full)]
    else:
        assert (left, blobs) == ((*older, *full), ())


def test_one_write_may_fill_several_levels() -> None:
    levels = [pages_of(FULL - 1, 2), pages_of(FULL - 1, 1), pages_of(FULL)]
    left, blobs = index_pages(tuple(chain.from_iterable(levels)), "T", 9)
    assert [blob.name for blob in blobs] == ["i.T.9.1", "i.T.9.2", "i.T.9.3"]
    assert left == (PageRef("T", 9, 5 * (3 * FULL - 2), 3),)
    counts = (5 * FULL, 5 * (2 * FULL - 1))
    below = [levels[2], (*levels[1], PageRef("T", 9, counts[0], 1))]
    below.append((*levels[0], PageRef("T", 9, counts[1], 2)))
    assert [decode_index(blob.data) for blob in blobs] == below


# --- formats ------------------------------------------------------------------------------------


def test_a_journal_with_index_pages_is_of_the_second_format() -> None:
    flat, indexed = Journal(pages=pages_of(3)), Journal(pages=(*pages_of(1, 2), *pages_of(3)))
    for journal, expected in ((flat, 1), (indexed, 2)):
        packed = CODEC.pack(journal, "T", 9)
        assert packed.format == expected
        assert CODEC.decode(packed.data) == journal


def test_many_pages_of_the_first_format_move_to_one_index_page() -> None:
    flat = pages_of(400)
    stored = CODEC.encode(Journal(400, pages=flat, records=(record(0),)))
    packed = CODEC.pack(CODEC.decode(stored), "T", 9)
    page, index = packed.blobs
    assert packed.journal.pages == (PageRef("T", 9, 2_001, 1),)
    assert decode_index(index.data) == (*flat, PageRef("T", 9, 1))
    assert CODEC.decode_page(page.data) == (record(0),)
    assert packed.format == 2


def test_what_needs_the_second_format_raises_it_though_it_moves_to_a_page() -> None:
    lost = [replace(record(number), losses=1) for number in range(9)]
    packed = CODEC.pack(Journal(records=tuple(lost)), "T", 9)
    assert packed.journal.pages == (PageRef("T", 9, 9),)
    assert packed.format == 2


GOLDEN = b'[2,3,3,null,[["tok",40,320,2],["tok",48,40,1],["tok",52,6]],[],[]]'
GOLDEN_INDEX = b'[["tok",1,5],["tok",2,6]]'


def test_stored_references_keep_loading() -> None:
    pages = (PageRef("tok", 40, 320, 2), PageRef("tok", 48, 40, 1), PageRef("tok", 52, 6))
    assert CODEC.decode(GOLDEN) == Journal(3, 3, pages=pages)
    assert CODEC.encode(Journal(3, 3, pages=pages)) == GOLDEN
    assert [page.blob for page in pages] == ["i.tok.40.2", "i.tok.48.1", "p.tok.52"]
    below = (PageRef("tok", 1, 5), PageRef("tok", 2, 6))
    assert decode_index(GOLDEN_INDEX) == below
    with patch.object(limits, "PAGES_OF_INDEX", 2):
        _, (blob,) = index_pages(below, "tok", 3)
    assert (blob.name, blob.data) == ("i.tok.3.1", GOLDEN_INDEX)
