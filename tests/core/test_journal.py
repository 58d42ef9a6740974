"""The journal's stored form: nothing is lost by packing, paging, compressing."""

import string
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell_engine import limits
from stepwell_engine.core.run.head import Blob
from stepwell_engine.core.run.journal import Failure, Journal, PageRef
from stepwell_engine.core.run.journal_codec import JournalCodec
from stepwell_engine.core.run.keys import UNNAMED, StepKeys
from stepwell_engine.core.run.records import AttemptRecord, Record, Stored
from stepwell_engine.core.run.status import StepStatus
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.errors import NewerFormat

BASE = 1_700_000_000_000
KEYS = StepKeys(
    {number: f"s{number}" for number in range(401)},
    {number: f"compensate:s{number}" for number in range(0, 401, 2)},
)
CODEC = JournalCodec(BASE, KEYS)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=3
        )
    ),
    max_leaves=8,
)
times = st.none() | st.integers(BASE - 5_000, BASE + 90 * limits.DAY)
texts = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
finished = st.sampled_from([StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.CANCELLED])
unfinished = st.sampled_from([StepStatus.RETRYING, StepStatus.SLEEPING, StepStatus.WAITING])


attempts = st.builds(
    AttemptRecord,
    number=st.integers(1, 21),
    outcome=finished,
    started_at=st.integers(BASE, BASE + limits.DAY),
    finished_at=st.integers(BASE, BASE + limits.DAY),
    error=texts,
    code=texts,
)


def records(status: st.SearchStrategy[StepStatus]) -> st.SearchStrategy[Record]:
    return st.builds(
        Record,
        key=st.sampled_from([*KEYS.numbers, "#401", "#402c"]),
        status=status,
        attempt=st.integers(0, 20),
        started_at=times,
        finished_at=times,
        output=st.none() | json_values.map(jsonvalue.encode),
        error=texts,
        code=texts,
        next_at=times,
        losses=st.integers(0, 4),
        history=st.lists(attempts, max_size=limits.HISTORY_ATTEMPTS).map(tuple),
    )


journal_values = st.builds(
    Journal,
    position=st.integers(0, 200),
    attempts=st.integers(0, 10_000),
    records=st.lists(records(finished), max_size=30).map(tuple),
    open=st.lists(records(unfinished), max_size=3).map(tuple),
    pages=st.lists(
        st.builds(PageRef, st.just("tok"), st.integers(0, 99), st.integers(1, 9)), max_size=3
    ).map(tuple),
    failure=st.none()
    | st.builds(
        Failure,
        st.text(st.characters(exclude_categories=["Cs"])),
        texts,
        st.none() | st.sampled_from(list(KEYS.steps.values())),
    ),
)


@given(journal_values)
def test_a_packed_journal_and_its_blobs_hold_everything(journal: Journal) -> None:
    packed = CODEC.pack(journal, "TOKEN", 7)
    blobs = {blob.name: blob.data for blob in packed.blobs}
    stored = CODEC.decode(packed.data)
    assert stored == packed.journal
    kept = stored.records
    if len(stored.pages) > len(journal.pages):
        page = stored.pages[-1]
        kept = CODEC.decode_page(blobs[page.blob])
        assert page == PageRef("TOKEN", 7, len(journal.records))
        assert stored.records == ()
    assert len(kept) == len(journal.records)
    for before, after in zip(journal.records, kept, strict=True):
        output = after.output
        if isinstance(output, Stored):
            assert output.size > limits.INLINE_OUTPUT
            output = blobs[output.blob]
        assert output == before.output
        assert after.key == before.key
        assert after.status == before.status
        assert after.next_at == before.next_at
        assert (after.losses, after.history) == (before.losses, before.history)
    assert (stored.position, stored.attempts) == (journal.position, journal.attempts)
    assert (stored.open, stored.failure) == (journal.open, journal.failure)


@given(journal_values)
def test_every_blob_name_carries_the_token_and_the_commit_number(journal: Journal) -> None:
    packed = CODEC.pack(journal, "TOKEN", 7)
    assert all(".TOKEN.7" in blob.name for blob in packed.blobs)


def done(number: int, output: bytes) -> Record:
    return Record(f"s{number}", StepStatus.SUCCEEDED, 1, BASE, BASE + 5, output)


@pytest.mark.parametrize(("over", "blobs"), [(0, 0), (1, 1)])
def test_an_output_moves_to_a_blob_above_the_inline_size(over: int, blobs: int) -> None:
    output = b'"' + b"x" * (limits.INLINE_OUTPUT - 2 + over) + b'"'
    packed = CODEC.pack(Journal(records=(done(0, output),)), "T", 1)
    assert len(packed.blobs) == blobs


def test_the_finished_steps_of_a_large_journal_move_to_a_page() -> None:
    output = b'"' + b"x" * 200 + b'"'
    journal = Journal()
    pages: list[Blob] = []
    for ordinal in range(40):
        journal = Journal(
            ordinal + 1, records=(*journal.records, done(ordinal, output)), pages=journal.pages
        )
        packed = CODEC.pack(journal, "T", ordinal)
        journal = packed.journal
        pages += packed.blobs
    seen = [r for page in pages for r in CODEC.decode_page(page.data)]
    assert [r.key for r in (*seen, *journal.records)] == [f"s{n}" for n in range(40)]
    assert len(packed.data) <= limits.PAGE_ABOVE


def backing_off(children: int, alphabet: str) -> Journal:
    """Children whose errors do not compress."""
    errors = Random(children)
    return Journal(
        open=tuple(
            Record(
                f"s{number}",
                StepStatus.RETRYING,
                1,
                BASE,
                error="".join(errors.choices(alphabet, k=limits.MAX_ERROR_TEXT)),
                next_at=BASE + 2_000,
            )
            for number in range(children)
        )
    )


@pytest.mark.parametrize("children", [1, 3, 40, limits.MAX_CHILDREN])
@pytest.mark.parametrize(
    "alphabet", [string.printable, "\U0001f4a5\U0001f6a8日本é", "\x01\x02\x03\x04"]
)
def test_children_that_all_back_off_leave_room_in_an_item(alphabet: str, children: int) -> None:
    journal = backing_off(children, alphabet)
    packed = CODEC.pack(journal, "T", 1)
    assert len(packed.data) <= 2 * limits.OPEN_ERRORS
    for kept, record in zip(packed.journal.open, journal.open, strict=True):
        assert kept.error
        assert (record.error or "").startswith(kept.error)
        assert replace(kept, error=record.error) == record
        assert len(kept.error.encode()) > limits.OPEN_ERRORS // children - 4 or kept == record
    assert CODEC.decode(packed.data) == packed.journal


def test_errors_of_children_that_back_off_are_whole_as_long_as_there_is_room() -> None:
    failed = replace(done(0, b"1"), error="".join(Random(0).choices("日本語テキスト", k=2_000)))
    records = tuple(replace(failed, key=f"s{number}") for number in range(8))
    journal = replace(backing_off(8, string.ascii_letters), records=records)
    packed = CODEC.pack(journal, "T", 1)
    assert packed.journal.open == journal.open


def test_no_stored_journal_means_a_run_that_has_not_begun() -> None:
    assert CODEC.decode(b"") == Journal()


def test_a_journal_is_of_the_oldest_format_that_has_all_that_is_in_it() -> None:
    lost = Record("s0", StepStatus.RETRYING, losses=2)
    plain, newer = Journal(open=(replace(lost, losses=0),)), Journal(open=(lost,))
    for journal, expected in ((plain, limits.BASE_RUN_FORMAT), (newer, limits.RUN_FORMAT)):
        packed = CODEC.pack(journal, "tok", 1)
        assert packed.format == expected
        assert packed.data.startswith(b"[%d," % expected)
        assert CODEC.decode(packed.data) == journal


def test_a_journal_of_a_newer_format_is_refused() -> None:
    with pytest.raises(NewerFormat, match="upgrade"):
        CODEC.decode(b"[%d,0,0,null,[],[],[]]" % (limits.RUN_FORMAT + 1))


GOLDEN = (
    b'[1,2,3,null,[["tok",4,6]],[[0,"s",2,10,2010,[{"n":2}]],'
    b'[1,"s",1,0,5,["o.tok.5.1",999]]],[[2,"r",1,7,null,null,"boom","timeout",2007]]]'
)


def test_a_stored_journal_keeps_loading() -> None:
    journal = CODEC.decode(GOLDEN)
    assert journal == Journal(
        position=2,
        attempts=3,
        pages=(PageRef("tok", 4, 6),),
        records=(
            Record("s0", StepStatus.SUCCEEDED, 2, BASE + 10, BASE + 2010, b'{"n":2}'),
            Record("s1", StepStatus.SUCCEEDED, 1, BASE, BASE + 5, Stored("o.tok.5.1", 999)),
        ),
        open=(
            Record(
                "s2", StepStatus.RETRYING, 1, BASE + 7, None, None, "boom", "timeout", BASE + 2007
            ),
        ),
    )
    assert CODEC.pack(journal, "tok", 9).data == GOLDEN


def test_a_journal_read_without_its_program_is_written_again_as_it_was() -> None:
    codec = JournalCodec(BASE, UNNAMED)
    journal = codec.decode(GOLDEN)
    assert [record.key for record in (*journal.records, *journal.open)] == ["#0", "#1", "#2"]
    assert codec.encode(journal) == GOLDEN
    compensated = CODEC.encode(
        Journal(open=(Record("compensate:s2", StepStatus.RETRYING, 1, BASE),))
    )
    assert codec.decode(compensated).open[0].key == "#2c"
    assert codec.encode(codec.decode(compensated)) == compensated


def test_a_record_of_no_step_cannot_be_stored() -> None:
    with pytest.raises(KeyError, match="other"):
        CODEC.encode(Journal(records=(Record("other", StepStatus.SUCCEEDED),)))
