"""Random histories of one run: every adapter answers as the one in memory does."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepwell_engine.core.run.head import Blob
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.limits import CLOCK_MARGIN, SUSPECT_LOST_LEASES
from stepwell_engine.ports import KEEP, UNCHECKED, Commit, Due, Runs, Written
from tests.contract.heads import NOW, a_head, some_message
from tests.contract.homes import HOMES, MemoryHome

Call = Callable[[Runs, str], object]

TIMES = st.sampled_from([0, NOW, NOW + 1, NOW + CLOCK_MARGIN, NOW + CLOCK_MARGIN + 1])
TOKENS = st.sampled_from(["t1", "t2"])
NUMBERS = st.integers(0, 3)
MAILS = st.sampled_from(["m1", "m2", "m3", "m4", "m5", "m6"])
EXPECTED: st.SearchStrategy[Literal["live", "stopped"]] = st.sampled_from(["live", "stopped"])


@st.composite
def creates(draw: st.DrawFn) -> Call:
    head = a_head(
        "",
        ready_at=draw(TIMES),
        idempotency_key=draw(st.sampled_from([None, "k"])),
        parent=draw(st.sampled_from([None, "parent"])),
        lost_leases=draw(st.sampled_from([0, SUSPECT_LOST_LEASES - 1, SUSPECT_LOST_LEASES])),
        alone=draw(st.booleans()),
    )
    blobs = (Blob("input", draw(st.binary(max_size=3))),)

    def create(runs: Runs, run_id: str) -> Written:
        key = head.idempotency_key and run_id + head.idempotency_key
        return runs.create(replace(head, run_id=run_id, idempotency_key=key), blobs)

    return create


@st.composite
def commits(draw: st.DrawFn) -> Call:
    blob = draw(TOKENS)
    commit = Commit(
        "",
        draw(TOKENS),
        draw(NUMBERS),
        blob.encode(),
        expect=draw(EXPECTED),
        inbox_seq=draw(st.just(UNCHECKED) | NUMBERS),
        status=draw(st.just(KEEP) | st.sampled_from([*Status])),
        ready_at=draw(st.just(KEEP) | TIMES),
        wake_at=draw(st.just(KEEP) | st.none() | TIMES),
        ended_at=draw(st.just(KEEP) | TIMES),
        release=draw(st.booleans()),
        progress=draw(st.booleans()),
        recorded=draw(st.booleans()),
        consumed=tuple(draw(st.lists(MAILS, max_size=2))),
        taken=tuple(draw(st.lists(st.integers(1, 4), max_size=1))),
        wants=draw(st.just(KEEP) | st.sampled_from(["", "paid", "t1"])),
        blobs=(Blob(blob, b"x"),),
        notify_pending=draw(st.booleans()),
    )
    return lambda runs, run_id: runs.commit(replace(commit, run_id=run_id))


@st.composite
def leases(draw: st.DrawFn) -> Call:
    token, now, until = draw(TOKENS), draw(TIMES), draw(TIMES)
    lane = draw(st.sampled_from(Lane))
    if draw(st.booleans()):
        return lambda runs, run_id: runs.claim(run_id, token, now, until, lane)
    return lambda runs, run_id: runs.extend(run_id, token, until, now)


@st.composite
def outsiders(draw: st.DrawFn) -> Call:
    message_id, now, token, number = draw(MAILS), draw(TIMES), draw(TOKENS), draw(NUMBERS)
    key = draw(st.sampled_from([None, "k1", "k2"]))
    message = InboxMessage(draw(st.sampled_from(MessageKind)), token, now, b"{}")
    calls: list[Call] = [
        lambda runs, run_id: runs.deliver(run_id, message_id, some_message(), now, Blob("b", b"x")),
        lambda runs, run_id: runs.deliver(run_id, message_id, message, now, None, key),
        lambda runs, run_id: runs.cancel(run_id, now, key is None),
        lambda runs, run_id: runs.close(run_id, token, number, b"settled"),
        lambda runs, run_id: runs.mark_notified(run_id),
    ]
    return draw(st.sampled_from(calls))


HISTORIES = st.lists(creates() | commits() | leases() | leases() | outsiders(), max_size=15)


def seen(runs: Runs, run_id: str) -> list[object]:
    """All that can be read of a run; of a commit's blobs the one that the head refers to."""
    due, _ = runs.due(NOW + 10_000, None, 10_000)
    head = runs.get(run_id)
    assert head is not None
    return [
        head,
        runs.by_key("shop", "order", run_id + "k"),
        [one for one in due if one == Due(about_run(run_id, "shop"), one.wake_at)],
        [head for head in runs.list("shop", "order", None, 1, None) if head.run_id == run_id],
        [runs.blob(run_id, name) for name in ("input", "b", head.journal.decode())],
    ]


@pytest.mark.parametrize("name", [name for name in HOMES if name not in ("memory", "cached")])
def test_an_adapter_answers_as_the_one_in_memory_does(name: str, tmp_path: Path) -> None:
    ids = (f"run-{number:09}" for number in count())

    @settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
    @given(first=creates(), history=HISTORIES)
    def check(first: Call, history: list[Call]) -> None:
        run_id = next(ids)
        folder = tmp_path / run_id
        folder.mkdir()
        home, model = HOMES[name](folder), MemoryHome()
        try:
            for call in (first, *history):
                assert call(home.runs, run_id) == call(model.runs, run_id)
            assert seen(home.runs, run_id) == seen(model.runs, run_id)
        finally:
            home.close()

    check()
