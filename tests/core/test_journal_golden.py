"""Journals of the second format, as they are stored: today's bytes are those of the golden file.

A change that breaks this breaks the installations of people who upgrade: it needs a new format.
"""

import base64
import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from stepwell_engine import limits
from stepwell_engine.core.run.journal import Failure, Journal, PageRef
from stepwell_engine.core.run.journal_codec import JournalCodec, decode_index
from stepwell_engine.core.run.keys import StepKeys
from stepwell_engine.core.run.records import AttemptRecord, Joined, Record, Stored
from stepwell_engine.core.run.status import StepStatus

AT = 1_800_000_000_000
CHILD = "01890000-0000-7000-8000-000000000002"
NAMES = ("charge", "fan", "mail", "crm", "join", "ship", "wait", "nap")
KEYS = StepKeys(dict(enumerate(NAMES)), {0: "compensate:charge", 5: "compensate:ship"})
CODEC = JournalCodec(AT, KEYS)
GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "journal_format_2.json").read_text("utf-8")
)

HISTORY = (
    AttemptRecord(1, StepStatus.FAILED, AT + 100, AT + 350, "503 from the receiver"),
    AttemptRecord(2, StepStatus.FAILED, AT + 2_400, AT + 32_400, "no answer", "timeout"),
    AttemptRecord(2, StepStatus.FAILED, AT + 40_000, AT + 100_000, None, "worker_lost"),
    AttemptRecord(3, StepStatus.SUCCEEDED, AT + 104_000, AT + 104_090),
)
CHARGE = Record("charge", StepStatus.SUCCEEDED, 3, AT + 100, AT + 104_090, b'{"ok":true}')
RETRYING = Record(
    "ship",
    StepStatus.RETRYING,
    2,
    AT + 100,
    error="no answer",
    code="timeout",
    next_at=AT + 36_400,
    losses=2,
    history=HISTORY[:3],
)
JOURNALS = {
    "a step that was tried often": Journal(1, 3, records=(replace(CHARGE, history=HISTORY),)),
    "a step that backs off and lost its worker": Journal(5, 2, open=(RETRYING,)),
    "index pages": Journal(
        400,
        400,
        pages=(PageRef("tok", 320, 320, 2), PageRef("tok", 360, 40, 1), PageRef("tok", 366, 6)),
    ),
    "a fan-out": Journal(
        2,
        5,
        records=(
            CHARGE,
            Record("fan", StepStatus.SUCCEEDED, started_at=AT + 7, finished_at=AT + 7),
            Record("mail", StepStatus.SUCCEEDED, 1, AT + 8, AT + 9, Stored("o.tok.8.2", 301)),
        ),
        open=(replace(RETRYING, key="crm", losses=1),),
        children_done=1,
        children_bytes=301,
    ),
    "compensations": Journal(
        6,
        9,
        records=(
            Record("join", StepStatus.SUCCEEDED, 0, AT, AT + 5, Joined()),
            Record("ship", StepStatus.FAILED, 1, AT, AT + 5, error="no", child=CHILD),
            Record("nap", StepStatus.CANCELLED, finished_at=AT + 6),
        ),
        open=(replace(RETRYING, key="compensate:charge", history=HISTORY[:1]),),
        failure=Failure("rollback stopped", "child_failed", "ship", stuck=True),
        compensating=0,
        children_compensated=5,
    ),
    "a page with histories": Journal(
        8, 30, records=tuple(replace(CHARGE, history=HISTORY, key=name) for name in NAMES)
    ),
    "a page that fills an index": Journal(
        9, 9, records=(CHARGE,), pages=tuple(PageRef("tok", at, 5) for at in (1, 2))
    ),
}


def expanded(data: bytes) -> str:
    """The text that was stored, compressed or not: how well it is compressed may change."""
    return (data if data[:1] == b"[" else zlib.decompress(data)).decode()


def stored(name: str) -> dict[str, Any]:
    """What a write of this journal stores."""
    with (
        patch.object(limits, "PAGES_OF_INDEX", 3),
        patch.object(limits, "PAGE_ABOVE", 0 if name.startswith("a page") else 2_000),
    ):
        packed = CODEC.pack(JOURNALS[name], "tok", 9)
    blobs = {blob.name: expanded(blob.data) for blob in packed.blobs}
    return {"format": packed.format, "journal": expanded(packed.data), "blobs": blobs}


def test_every_journal_has_its_golden_form() -> None:
    assert GOLDEN["journals"].keys() == JOURNALS.keys()


@pytest.mark.parametrize("name", JOURNALS)
def test_a_journal_is_stored_as_it_always_was_and_read_again(name: str) -> None:
    golden = GOLDEN["journals"][name]
    assert stored(name) == golden
    found, meant = CODEC.decode(golden["journal"].encode()), JOURNALS[name]
    pages = list(found.pages)
    if pages and pages[0].blob in golden["blobs"] and pages[0].level:
        pages = list(decode_index(golden["blobs"][pages[0].blob].encode()))
    records = found.records
    if pages and pages[-1].blob in golden["blobs"]:
        records = CODEC.decode_page(golden["blobs"][pages.pop().blob].encode())
    assert replace(found, records=records, pages=tuple(pages)) == meant


def test_a_compressed_journal_is_read() -> None:
    (name, text), data = GOLDEN["compressed"]["of"], GOLDEN["compressed"]["data"]
    assert GOLDEN["journals"][name]["blobs"][text] == expanded(base64.b64decode(data))
    assert CODEC.decode_page(base64.b64decode(data)) == JOURNALS[name].records
