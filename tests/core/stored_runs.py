"""Runs in every state that they can be stored in, and what a reader sees of each."""

from dataclasses import dataclass, field, replace
from typing import Any

from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.progress import Progress
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Failure, Journal
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.core.run.view import Compensation
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


def done(key: str) -> Record:
    return Record(key, StepStatus.SUCCEEDED, 1, START, START + 5)


def failed(key: str) -> Record:
    record = Record(key, StepStatus.FAILED, 3, START, START + 7, error="no")
    return replace(record, code="child_failed")


def backing(key: str, at: int = SOON) -> Record:
    return Record(key, StepStatus.RETRYING, 1, START, next_at=at, error="busy")


def cancelled(key: str) -> Record:
    return Record(key, StepStatus.CANCELLED, 1, START, START + 7)


JOINING = Record("join", StepStatus.WAITING, 1, START)
NO_CHILD = Failure("child", "child_failed", "join")
LIVE = Head("run", "demo", "orders", 1, START)
HELD = replace(LIVE, lease_token="token", lease_expires_at=NOW + 1)
LOST = replace(HELD, lease_expires_at=NOW)
FAILED = replace(LIVE, status=Status.FAILED, ended_at=ENDED)
CANCELLED = replace(LIVE, status=Status.CANCELLED, ended_at=ENDED)
CANCELLED_IN_FLIGHT = replace(HELD, status=Status.CANCELLED, ended_at=ENDED)

FANNING = Journal(
    2,
    records=(done("pay"), done("fan"), done("mail")),
    open=(JOINING, backing("crm")),
    children_done=0b001,
)
JOINED = tuple(done(key) for key in ("pay", "fan", "mail", "crm", "index", "join"))
COMPENSATING = Journal(
    2,
    records=(done("pay"), done("fan"), done("mail"), failed("crm"), done("index"), failed("join")),
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
        records = {record.key: record for record in (*journal.records, *journal.open)}
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
        Journal(1, records=(done("pay"),)),
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
        replace(FANNING, open=(JOINING, backing("crm", NOW))),
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
        replace(FANNING, open=(JOINING, backing("crm"), backing("index", SOON + 1_000))),
        "pay succeeded, fan succeeded, mail succeeded, crm retrying, index retrying, "
        "join waiting, ship pending, tell pending",
        reason="retrying step crm at 2023-11-14T22:13:32.000Z, attempt 2 of 3; 1 more backs off",
    ),
    "a wide fan-out has eight in flight": Case(
        HELD,
        Journal(
            1,
            records=(done("fan"), done("c2")),
            open=(Record("join", StepStatus.WAITING, 1),),
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
        replace(FANNING, open=(JOINING, backing("crm", ENDED + 1))),
        "pay succeeded, fan succeeded, mail succeeded, crm cancelled, index running, "
        "join cancelled",
    ),
    "cancelled before the fan-out": Case(
        CANCELLED,
        Journal(1, records=(done("pay"),)),
        "pay succeeded, fan cancelled",
    ),
    "cancelled at its child run": Case(
        CANCELLED,
        Journal(3, records=JOINED, open=(Record("ship", StepStatus.WAITING, 1, START, child="r"),)),
        "pay succeeded, fan succeeded, mail succeeded, crm succeeded, index succeeded, "
        "join succeeded, ship cancelled",
    ),
    "starting a child run": Case(
        HELD,
        Journal(
            3,
            records=JOINED,
            open=(Record("ship", StepStatus.PENDING, 1, START, next_at=SOON, child="r"),),
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
            open=(Record("ship", StepStatus.WAITING, 1, START, next_at=SOON, child="r"),),
        ),
        "pay succeeded, fan succeeded, mail succeeded, crm succeeded, index succeeded, "
        "join succeeded, ship waiting, tell pending",
        reason='waiting for run r of workflow "f", until 2023-11-14T22:13:32.000Z',
    ),
    "a child run that failed": Case(
        LIVE,
        Journal(3, records=JOINED, open=(replace(backing("ship"), child="r"),)),
        "pay succeeded, fan succeeded, mail succeeded, crm succeeded, index succeeded, "
        "join succeeded, ship retrying, tell pending",
        reason="retrying step ship at 2023-11-14T22:13:32.000Z, attempt 2 of 3",
    ),
    "a child failed, two siblings are compensated together": Case(
        HELD,
        COMPENSATING,
        "pay succeeded, fan succeeded, mail succeeded, compensate:mail running, "
        "crm failed, index succeeded, compensate:index running, join failed",
        Compensation("compensating", "fan"),
        "running the compensations of steps mail and index",
    ),
    "a compensation backs off, its sibling's turn has come": Case(
        LIVE,
        replace(COMPENSATING, open=(backing("compensate:mail"),)),
        "pay succeeded, fan succeeded, mail succeeded, compensate:mail retrying, "
        "crm failed, index succeeded, compensate:index pending, join failed",
        Compensation("compensating", "fan"),
        "waiting for a worker to go on at the compensation of step index, attempt 1 of 3",
    ),
    "the last compensation backs off": Case(
        LIVE,
        replace(
            COMPENSATING,
            records=(*COMPENSATING.records, done("compensate:mail"), done("compensate:index")),
            open=(backing("compensate:pay"),),
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
            COMPENSATING,
            records=(done("pay"), done("fan"), done("mail"), failed("crm"), failed("join")),
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
            COMPENSATING,
            records=(
                *(
                    done("pay"),
                    done("fan"),
                    done("mail"),
                    failed("crm"),
                    cancelled("index"),
                    failed("join"),
                ),
                *(done("compensate:mail"), done("compensate:pay")),
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
            COMPENSATING,
            records=(*COMPENSATING.records, failed("compensate:index")),
            failure=Failure("stuck", None, "join", stuck=True),
        ),
        "pay succeeded, fan succeeded, mail succeeded, compensate:mail cancelled, "
        "crm failed, index succeeded, compensate:index failed, join failed",
        Compensation("failed", "index"),
    ),
    "cancelled while compensating": Case(
        CANCELLED,
        replace(
            COMPENSATING,
            records=(*COMPENSATING.records, done("compensate:mail")),
            children_compensated=0b001,
        ),
        "pay succeeded, fan succeeded, mail succeeded, compensate:mail succeeded, "
        "crm failed, index succeeded, compensate:index cancelled, join failed",
        Compensation("incomplete", "fan"),
    ),
    "cancelled while compensating, a compensation in flight": Case(
        CANCELLED_IN_FLIGHT,
        replace(COMPENSATING, compensating=0),
        "pay succeeded, compensate:pay running, fan succeeded, mail succeeded, crm failed, "
        "index succeeded, join failed",
        Compensation("incomplete", "pay"),
    ),
    "failed of its first step": Case(
        FAILED,
        Journal(0, records=(failed("pay"),), failure=Failure("no", None, "pay")),
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
    "failed of the ceiling while compensating": Case(
        FAILED,
        replace(
            COMPENSATING,
            compensating=0,
            failure=Failure("stopped", "child_failed", "join", stuck=True),
        ),
        "pay succeeded, compensate:pay cancelled, fan succeeded, mail succeeded, "
        "crm failed, index succeeded, join failed",
        Compensation("failed", "pay"),
    ),
    "succeeded": Case(
        replace(LIVE, status=Status.SUCCEEDED, ended_at=ENDED),
        Journal(5, records=(*JOINED, done("ship"), done("tell"))),
        "pay succeeded, fan succeeded, mail succeeded, crm succeeded, index succeeded, "
        "join succeeded, ship succeeded, tell succeeded",
    ),
}
