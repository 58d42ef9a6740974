"""A worker lets go of a head that it may not be able to read any more."""

from dataclasses import replace

import pytest

from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.status import LIVE, Status
from stepwell_engine.errors import NewerFormat
from stepwell_engine.limits import BASE_RUN_FORMAT
from stepwell_engine.limits import RUN_FORMAT as FORMAT
from stepwell_engine.ports import Commit, Runs
from tests.contract.heads import COMMIT, NOW, OTHER, RUN, UNTIL, held, inbox, put
from tests.contract.homes import Home

LET_GO = replace(
    COMMIT, status=Status.PENDING, ready_at=0, wake_at=NOW, release=True, progress=True
)
RECORD_CANCELLED = replace(COMMIT, expect="stopped", progress=True)


def let_go_of(head: Head) -> Head:
    """The head after LET_GO."""
    return replace(
        head,
        commit_seq=1,
        journal=b"moved",
        status=Status.PENDING,
        ready_at=0,
        wake_at=NOW,
        lease_token=None,
        lease_expires_at=0,
        claimed_at=0,
        lost_leases=0,
    )


@pytest.mark.parametrize("written", [BASE_RUN_FORMAT, FORMAT])
def test_a_newer_head_is_written_once_and_its_format_stays(home: Home, written: int) -> None:
    put(home.runs, held(format=FORMAT + 1, inbox=inbox([1])))
    before = home.stored(RUN)
    commit = replace(LET_GO, format=written, blobs=(Blob("page", b"1"),))
    assert home.runs.let_go(commit)
    after = home.stored(RUN)
    assert after != before
    assert home.runs.blob(RUN, "page") == b"1"
    with pytest.raises(NewerFormat, match=f"was written in format {FORMAT + 1}"):
        home.runs.get(RUN)
    assert not home.runs.let_go(commit)
    assert home.stored(RUN) == after


@pytest.mark.parametrize("stored", [BASE_RUN_FORMAT, FORMAT])
@pytest.mark.parametrize("written", [BASE_RUN_FORMAT, FORMAT])
def test_a_readable_head_is_written_and_its_format_raised(
    runs: Runs, stored: int, written: int
) -> None:
    head = put(runs, held(format=stored))
    assert runs.let_go(replace(LET_GO, format=written))
    assert runs.get(RUN) == replace(let_go_of(head), format=max(stored, written))


def test_a_cancelled_run_keeps_its_lease_for_who_closes_it(runs: Runs) -> None:
    head = put(runs, held(status=Status.CANCELLED, ended_at=NOW))
    assert not runs.let_go(LET_GO)
    assert runs.let_go(RECORD_CANCELLED)
    after = replace(head, commit_seq=1, journal=b"moved")
    assert runs.get(RUN) == after
    assert after.wake_at == UNTIL


@pytest.mark.parametrize(
    "commit",
    [
        replace(LET_GO, lease_token=OTHER),
        replace(LET_GO, commit_seq=1),
        RECORD_CANCELLED,
        replace(LET_GO, run_id="nobody"),
    ],
)
@pytest.mark.parametrize("written", [BASE_RUN_FORMAT, FORMAT])
@pytest.mark.parametrize("stored", [FORMAT, FORMAT + 1])
def test_a_head_that_is_not_the_workers_is_left_alone(
    home: Home, commit: Commit, written: int, stored: int
) -> None:
    put(home.runs, held(format=stored))
    before = home.stored(RUN)
    assert not home.runs.let_go(replace(commit, format=written))
    assert home.stored(RUN) == before


@pytest.mark.parametrize("status", sorted(set(Status) - LIVE))
def test_an_ended_run_is_left_alone(home: Home, status: Status) -> None:
    put(home.runs, held(status=status))
    before = home.stored(RUN)
    assert not home.runs.let_go(LET_GO)
    assert home.stored(RUN) == before
