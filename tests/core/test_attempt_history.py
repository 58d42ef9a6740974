"""The attempts of a step, kept with its record: the newest, in few bytes."""

from dataclasses import replace
from random import Random
from string import ascii_letters, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell_engine import limits
from stepwell_engine.core.run.attempt_history import history_cells, history_of, record_attempt
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.journal_codec import JournalCodec
from stepwell_engine.core.run.keys import StepKeys
from stepwell_engine.core.run.records import AttemptRecord, Record
from stepwell_engine.core.run.status import StepStatus

BASE = 1_700_000_000_000
KEYS = StepKeys({number: f"s{number}" for number in range(limits.MAX_CHILDREN)})
CODEC = JournalCodec(BASE, KEYS)
MOST = limits.HISTORY_ATTEMPTS
OPENED = Record("s0", StepStatus.RETRYING, started_at=BASE)


def attempt(number: int, error: str | None = "no answer") -> AttemptRecord:
    """One of a failing step."""
    at = BASE + 60_000 * number
    return AttemptRecord(number, StepStatus.FAILED, at, at + 30_000, error, "timeout")


def tried(record: Record, attempts: int, error_size: int, seed: int = 0) -> Record:
    """The record after failed attempts with errors that do not compress."""
    dice = Random(seed)
    for number in range(1, attempts + 1):
        error = "".join(dice.choices(ascii_letters + digits, k=error_size))
        record = replace(record, attempt=number, error=error)
        record = record_attempt(record, attempt(number, error))
    return record


attempts = st.builds(
    AttemptRecord,
    number=st.integers(1, 10_000),
    outcome=st.sampled_from([StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.CANCELLED]),
    started_at=st.integers(BASE - 5_000, BASE + 90 * limits.DAY),
    finished_at=st.integers(BASE - 5_000, BASE + 90 * limits.DAY),
    error=st.none() | st.text(max_size=500),
    code=st.none() | st.sampled_from(["timeout", "worker_lost"]),
)


@given(st.lists(attempts, max_size=30))
def test_any_history_is_bounded_and_comes_back_as_it_was(made: list[AttemptRecord]) -> None:
    record = OPENED
    for one in made:
        record = record_attempt(record, one)
    history = record.history
    assert len(history) <= MOST
    assert sum(len((one.error or "").encode()) for one in history) <= limits.HISTORY_ERRORS
    assert history_of(history_cells(history, BASE), BASE) == history
    for journal in (Journal(open=(record,)), Journal(records=(record,))):
        assert CODEC.decode(CODEC.encode(journal)) == journal


@pytest.mark.parametrize("more", [0, 1])
def test_the_newest_attempts_are_kept(more: int) -> None:
    record = tried(OPENED, MOST + more, 3)
    assert [one.number for one in record.history] == list(range(1 + more, MOST + 1 + more))


@pytest.mark.parametrize(("made", "more"), [(1, 0), (1, 1), (MOST, 0), (MOST, 1)])
def test_errors_share_what_may_be_kept_of_them(made: int, more: int) -> None:
    share = limits.HISTORY_ERRORS // made
    record = tried(OPENED, made, share + more)
    assert [len(one.error or "") for one in record.history] == [share] * made
    assert (record.error or "").startswith(record.history[-1].error or "-")
    assert len(record.error or "") == share + more


def test_an_error_is_cut_between_characters_and_is_valid_unicode() -> None:
    text = "日" * limits.HISTORY_ERRORS + "\ud800"
    kept = record_attempt(OPENED, attempt(1, text)).history[0].error or ""
    assert kept == "日" * (limits.HISTORY_ERRORS // 3)
    assert record_attempt(OPENED, attempt(1, "a\ud800")).history[0].error == "a?"


def test_an_attempt_is_recorded_once_but_one_that_was_lost_is_made_again() -> None:
    lost = replace(attempt(1), code="worker_lost")
    again = replace(attempt(1), started_at=lost.finished_at + 1)
    record = record_attempt(record_attempt(OPENED, lost), lost)
    assert record.history == (lost,)
    assert record_attempt(record, again).history == (lost, again)


# --- in a head ----------------------------------------------------------------------------------


def test_a_step_that_was_tried_for_long_leaves_a_head_small() -> None:
    record = tried(OPENED, limits.MAX_ATTEMPTS, 100)
    packed = CODEC.pack(Journal(open=(record,)), "T", 9)
    assert packed.journal.open == (record,)
    assert len(packed.data) <= limits.PAGE_ABOVE


def test_a_history_needs_the_second_format_also_on_a_page() -> None:
    records = tuple(tried(replace(OPENED, key=f"s{n}"), 8, 100, seed=n) for n in range(5))
    for journal in (Journal(open=records[:1]), Journal(records=records)):
        packed = CODEC.pack(journal, "T", 9)
        assert packed.format == 2
    (page,) = packed.blobs
    assert CODEC.decode_page(page.data) == records


@pytest.mark.parametrize("children", [8, 40, limits.MAX_CHILDREN])
def test_children_that_all_back_off_share_the_room_for_their_histories(children: int) -> None:
    opened = tuple(
        tried(replace(OPENED, key=f"s{number}"), 8, limits.MAX_ERROR_TEXT, seed=number)
        for number in range(children)
    )
    packed = CODEC.pack(Journal(open=opened), "T", 9)
    assert len(packed.data) <= 2 * limits.OPEN_ERRORS
    assert CODEC.decode(packed.data) == packed.journal
    for kept, before in zip(packed.journal.open, opened, strict=True):
        assert kept.error
        assert (before.error or "").startswith(kept.error)
        assert before.history[len(before.history) - len(kept.history) :] == kept.history
        assert len(kept.history) == 8 or children > 8
