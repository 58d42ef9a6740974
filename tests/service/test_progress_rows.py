"""The row of every step and compensation, in every state that a run can be stored in."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Failure, Journal
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.service.runs.progress import Compensation, Progress, compensation, step_rows
from stepwell_engine.service.runs.reasons import reason
from tests.service.world import START

NOW = START + 10_000
SOON = NOW + 2_000
ENDED = START + 9_000


def step(ordinal: int, key: str, kind: Kind = Kind.FUNCTION, **fields: Any) -> Step:
    return Step(ordinal, key, kind, "f", max_attempts=3, **fields)


def compensated(ordinal: int, key: str) -> Step:
    return step(ordinal, key, compensate=step(ordinal, f"compensate:{key}"))


MANY = tuple(step(ordinal, f"c{ordinal}") for ordinal in range(1, 13))
CHILDREN = (compensated(2, "mail"), compensated(3, "crm"), compensated(4, "index"))
DEFINITION = Definition(
    "demo",
    "orders",
    1,
    (
        compensated(0, "pay"),
        step(1, "fan", Kind.FANOUT, children=CHILDREN),
        step(5, "join", Kind.JOIN),
        step(6, "ship", Kind.SUBWORKFLOW),
        step(7, "tell"),
    ),
)
WIDE = Definition(
    "demo", "wide", 1, (step(0, "fan", Kind.FANOUT, children=MANY), step(13, "join", Kind.JOIN))
)


def done(ordinal: int, compensation: bool = False) -> Record:
    return Record(ordinal, StepStatus.SUCCEEDED, 1, START, START + 5, compensation=compensation)


def failed(ordinal: int, compensation: bool = False) -> Record:
    record = Record(
        ordinal, StepStatus.FAILED, 3, START, START + 7, error="no", compensation=compensation
    )
    return replace(record, code="child_failed")


def backing(ordinal: int, at: int = SOON, compensation: bool = False) -> Record:
    return Record(
        ordinal, StepStatus.RETRYING, 1, START, next_at=at, error="busy", compensation=compensation
    )


def cancelled(ordinal: int) -> Record:
    return Record(ordinal, StepStatus.CANCELLED, 1, START, START + 7)


JOINING = Record(5, StepStatus.WAITING, 1, START)
NO_CHILD = Failure("child", "child_failed", 5)
LIVE = Head("run", "demo", "orders", 1, START)
HELD = replace(LIVE, lease_token="token", lease_expires_at=NOW + 1)
LOST = replace(HELD, lease_expires_at=NOW)
FAILED = replace(LIVE, status=Status.FAILED, ended_at=ENDED)
CANCELLED = replace(LIVE, status=Status.CANCELLED, ended_at=ENDED)
CANCELLED_IN_FLIGHT = replace(HELD, status=Status.CANCELLED, ended_at=ENDED)

FANNING = Journal(
    2, records=(done(0), done(1), done(2)), open=(JOINING, backing(3)), children_done=0b001
)
JOINED = tuple(done(ordinal) for ordinal in range(6))
UNWINDING = Journal(
    2,
    records=(done(0), done(1), done(2), failed(3), done(4), failed(5)),
    failure=NO_CHILD,
    children_done=0b101,
    compensating=1,
)


@dataclass(frozen=True)
class Case:
    """A stored run, and what its reader sees."""

    head: Head
    journal: Journal
    rows: str
    compensation: Compensation = field(default=Compensation("none"))
    reason: str | None = None
    definition: Definition = DEFINITION

    @property
    def progress(self) -> Progress:
        journal = self.journal
        records = {record.action_key: record for record in (*journal.records, *journal.open)}
        return Progress(self.definition, self.head, journal, records, NOW)


CASES = {
    "new": Case(
        LIVE,
        Journal(),
        "pay pending, fan pending, mail pending, crm pending, index pending, join pending, "
        "ship pending, tell pending",
        reason="waiting for a worker to go on at step pay, attempt 1 of 3",
    ),
    "before the fan-out": Case(
        HELD,
        Journal(1, records=(done(0),)),
        "pay succeeded, fan pending, mail pending, crm pending, index pending, "
        "join pending, ship pending, tell pending",
        reason="going on at step fan",
    ),
    "fanning out, nobody at it": Case(
        LIVE,
        FANNING,
        "pay succeeded, fan succeeded, mail succeeded, crm retrying, index pending, "
        "join waiting, ship pending, tell pending",
        reason="waiting for a worker to go on at step index, attempt 1 of 3",
    ),
    "fanning out, a child in flight": Case(
        HELD,
        FANNING,
        "pay succeeded, fan succeeded, mail succeeded, crm retrying, index running, "
        "join waiting, ship pending, tell pending",
        reason="running step index, attempt 1 of 3",
    ),
    "fanning out, a backoff over": Case(
        HELD,
        replace(FANNING, open=(JOINING, backing(3, NOW))),
        "pay succeeded, fan succeeded, mail succeeded, crm running, index running, "
        "join waiting, ship pending, tell pending",
        reason="running steps index and crm",
    ),
    "fanning out, its worker lost": Case(
        LOST,
        FANNING,
        "pay succeeded, fan succeeded, mail succeeded, crm retrying, index pending, "
        "join waiting, ship pending, tell pending",
        reason="its worker was lost: another one takes over within a minute or two",
    ),
    "all children back off": Case(
        LIVE,
        replace(FANNING, open=(JOINING, backing(3), backing(4, SOON + 1_000))),
        "pay succeeded, fan succeeded, mail succeeded, crm retrying, index retrying, "
        "join waiting, ship pending, tell pending",
        reason="retrying step crm at 2023-11-14T22:13:32.000Z, attempt 2 of 3; 1 more backs off",
    ),
    "a wide fan-out has eight in flight": Case(
        HELD,
        Journal(
            1,
            records=(done(0), done(2)),
            open=(Record(13, StepStatus.WAITING, 1),),
            children_done=2,
        ),
        "fan succeeded, c1 running, c2 succeeded, c3 running, c4 running, c5 running, "
        "c6 running, c7 running, c8 running, c9 running, c10 pending, c11 pending, "
        "c12 pending, join waiting",
        reason="running steps c1, c3, c4 and 5 more",
        definition=WIDE,
    ),
    "cancelled in the fan-out": Case(
        CANCELLED,
        FANNING,
        "pay succeeded, fan succeeded, mail succeeded, crm cancelled, index cancelled, "
        "join cancelled",
    ),
    "cancelled in the fan-out, a child in flight": Case(
        CANCELLED_IN_FLIGHT,
        replace(FANNING, open=(JOINING, backing(3, ENDED + 1))),
        "pay succeeded, fan succeeded, mail succeeded, crm cancelled, index running, "
        "join cancelled",
    ),
    "cancelled before the fan-out": Case(
        CANCELLED,
        Journal(1, records=(done(0),)),
        "pay succeeded, fan cancelled",
    ),
    "cancelled at its child run": Case(
        CANCELLED,
        Journal(3, records=JOINED, open=(Record(6, StepStatus.WAITING, 1, START, child="r"),)),
        "pay succeeded, fan succeeded, mail succeeded, crm succeeded, index succeeded, "
        "join succeeded, ship cancelled",
    ),
    "starting a child run": Case(
        HELD,
        Journal(
            3,
            records=JOINED,
            open=(Record(6, StepStatus.PENDING, 1, START, next_at=SOON, child="r"),),
        ),
        "pay succeeded, fan succeeded, mail succeeded, crm succeeded, index succeeded, "
        "join succeeded, ship pending, tell pending",
        reason='starting run r of workflow "f"',
    ),
    "waiting for a child run": Case(
        LIVE,
        Journal(
            3,
            records=JOINED,
            open=(Record(6, StepStatus.WAITING, 1, START, next_at=SOON, child="r"),),
        ),
        "pay succeeded, fan succeeded, mail succeeded, crm succeeded, index succeeded, "
        "join succeeded, ship waiting, tell pending",
        reason='waiting for run r of workflow "f", until 2023-11-14T22:13:32.000Z',
    ),
    "a child run that failed": Case(
        LIVE,
        Journal(3, records=JOINED, open=(replace(backing(6), child="r"),)),
        "pay succeeded, fan succeeded, mail succeeded, crm succeeded, index succeeded, "
        "join succeeded, ship retrying, tell pending",
        reason="retrying step ship at 2023-11-14T22:13:32.000Z, attempt 2 of 3",
    ),
    "a child failed, two siblings are undone together": Case(
        HELD,
        UNWINDING,
        "pay succeeded, fan succeeded, mail succeeded, compensate:mail running, "
        "crm failed, index succeeded, compensate:index running, join failed",
        Compensation("compensating", "fan"),
        "running the compensations of steps mail and index",
    ),
    "a compensation backs off, its sibling's turn has come": Case(
        LIVE,
        replace(UNWINDING, open=(backing(2, compensation=True),)),
        "pay succeeded, fan succeeded, mail succeeded, compensate:mail retrying, "
        "crm failed, index succeeded, compensate:index pending, join failed",
        Compensation("compensating", "fan"),
        "waiting for a worker to go on at the compensation of step index, attempt 1 of 3",
    ),
    "the last compensation backs off": Case(
        LIVE,
        replace(
            UNWINDING,
            records=(*UNWINDING.records, done(2, compensation=True), done(4, compensation=True)),
            open=(backing(0, compensation=True),),
            compensating=0,
        ),
        "pay succeeded, compensate:pay retrying, fan succeeded, mail succeeded, "
        "compensate:mail succeeded, crm failed, index succeeded, "
        "compensate:index succeeded, join failed",
        Compensation("compensating", "pay"),
        "retrying the compensation of step pay at 2023-11-14T22:13:32.000Z, attempt 2 of 3",
    ),
    "children that never started, compensating": Case(
        HELD,
        replace(
            UNWINDING,
            records=(done(0), done(1), done(2), failed(3), failed(5)),
            children_done=0b001,
        ),
        "pay succeeded, fan succeeded, mail succeeded, compensate:mail running, "
        "crm failed, index cancelled, join failed",
        Compensation("compensating", "fan"),
        "running the compensation of step mail, attempt 1 of 3",
    ),
    "compensated": Case(
        FAILED,
        replace(
            UNWINDING,
            records=(
                *(done(0), done(1), done(2), failed(3), cancelled(4), failed(5)),
                *(done(2, compensation=True), done(0, compensation=True)),
            ),
            children_done=0b001,
            compensating=-1,
        ),
        "pay succeeded, compensate:pay succeeded, fan succeeded, mail succeeded, "
        "compensate:mail succeeded, crm failed, index cancelled, join failed",
        Compensation("compensated"),
    ),
    "a compensation that failed": Case(
        FAILED,
        replace(
            UNWINDING,
            records=(*UNWINDING.records, failed(4, compensation=True)),
            failure=Failure("stuck", None, 5, stuck=True),
        ),
        "pay succeeded, fan succeeded, mail succeeded, compensate:mail cancelled, "
        "crm failed, index succeeded, compensate:index failed, join failed",
        Compensation("failed", "index"),
    ),
    "cancelled in the rollback": Case(
        CANCELLED,
        replace(
            UNWINDING,
            records=(*UNWINDING.records, done(2, compensation=True)),
            children_compensated=0b001,
        ),
        "pay succeeded, fan succeeded, mail succeeded, compensate:mail succeeded, "
        "crm failed, index succeeded, compensate:index cancelled, join failed",
        Compensation("incomplete", "fan"),
    ),
    "cancelled in the rollback, a compensation in flight": Case(
        CANCELLED_IN_FLIGHT,
        replace(UNWINDING, compensating=0),
        "pay succeeded, compensate:pay running, fan succeeded, mail succeeded, crm failed, "
        "index succeeded, join failed",
        Compensation("incomplete", "pay"),
    ),
    "failed of its first step": Case(
        FAILED,
        Journal(0, records=(failed(0),), failure=Failure("no", None, 0)),
        "pay failed",
    ),
    "failed of the ceiling at a step that never began": Case(
        FAILED,
        Journal(3, records=JOINED, failure=Failure("too many", "step_ceiling", None)),
        "pay succeeded, fan succeeded, mail succeeded, crm succeeded, index succeeded, "
        "join succeeded, ship cancelled",
    ),
    "failed of the ceiling in the fan-out": Case(
        FAILED,
        replace(FANNING, failure=Failure("too many", "step_ceiling", None)),
        "pay succeeded, fan succeeded, mail succeeded, crm cancelled, index cancelled, "
        "join cancelled",
    ),
    "failed of the ceiling in the rollback": Case(
        FAILED,
        replace(
            UNWINDING, compensating=0, failure=Failure("stopped", "child_failed", 5, stuck=True)
        ),
        "pay succeeded, compensate:pay cancelled, fan succeeded, mail succeeded, "
        "crm failed, index succeeded, join failed",
        Compensation("failed", "pay"),
    ),
    "succeeded": Case(
        replace(LIVE, status=Status.SUCCEEDED, ended_at=ENDED),
        Journal(5, records=(*JOINED, done(6), done(7))),
        "pay succeeded, fan succeeded, mail succeeded, crm succeeded, index succeeded, "
        "join succeeded, ship succeeded, tell succeeded",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_reader_sees(case: Case) -> None:
    rows = list(step_rows(case.progress))
    assert ", ".join(f"{row.step.key} {row.record.status}" for row in rows) == case.rows
    assert compensation(case.progress) == case.compensation
    assert reason(case.progress) == case.reason


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_times_and_attempts_go_with_the_status(case: Case) -> None:
    for row in step_rows(case.progress):
        record = row.record
        ended = record.status in ("succeeded", "failed", "cancelled")
        assert (record.finished_at is not None) is ended
        if record.status not in ("retrying", "waiting", "pending"):
            assert record.next_at is None
        if record.status == "running":
            before = case.progress.records.get(record.action_key)
            assert record.attempt == (before.attempt if before else 0) + 1


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_children_and_their_compensations_name_their_fanout(case: Case) -> None:
    for row in step_rows(case.progress):
        key = row.step.key.removeprefix("compensate:")
        child = key in {"mail", "crm", "index"} or key[1:].isdigit()
        assert row.parent == ("fan" if child else None)
        assert row.record.compensation is row.step.key.startswith("compensate:")


def test_what_never_started_was_cancelled_when_its_sibling_failed_the_join() -> None:
    rows = {row.step.key: row for row in step_rows(CASES["compensated"].progress)}
    assert rows["index"].record.finished_at == START + 7
    journal = replace(
        UNWINDING, records=(done(0), done(1), failed(3), failed(5)), children_done=0, compensating=0
    )
    rows = {row.step.key: row for row in step_rows(Case(LIVE, journal, "").progress)}
    assert (rows["index"].record.status, rows["index"].record.finished_at) == (
        "cancelled",
        START + 7,
    )


@pytest.mark.parametrize(
    ("status", "shown"), [("pending", None), ("waiting", "r"), ("retrying", "r"), ("failed", "r")]
)
def test_a_child_run_is_named_once_it_exists(status: str, shown: str | None) -> None:
    record = Record(6, StepStatus(status), 1, START, next_at=SOON, child="r")
    journal = Journal(3, records=JOINED, open=(record,))
    rows = {row.step.key: row for row in step_rows(Case(LIVE, journal, "").progress)}
    assert rows["ship"].child == shown
