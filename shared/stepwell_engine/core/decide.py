"""What a run does next: head, mail and time in, an instruction out. Pure.

Times that end something (a sleep, a backoff, a wait) are read from the journal only:
`ready_at` and `wake_at` are caches for the store.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from stepwell_engine import limits
from stepwell_engine.core.definition import ACTION_KINDS, Definition, Kind, Step
from stepwell_engine.core.journal import Failure, Journal, Record, Stored
from stepwell_engine.core.outcome import Act
from stepwell_engine.core.run import Head, Mail, Status, StepStatus


@dataclass(frozen=True, slots=True)
class Perform:
    """Try a step."""

    act: Act


@dataclass(frozen=True, slots=True)
class Park:
    """Let go until `ready_at`; a decision from absence, void if new mail came."""

    status: Status
    ready_at: int


@dataclass(frozen=True, slots=True)
class Finish:
    """The run is over."""

    status: Status


@dataclass(frozen=True, slots=True)
class Decision:
    """What is next, the journal that goes with it, and the mail that was consumed for it.

    The journal is the very one that came in if nothing has to be recorded before.
    `absent`: decided because a signal was not there, void if new mail came.
    """

    journal: Journal
    next: Perform | Park | Finish
    consumed: tuple[str, ...] = ()
    absent: bool = False


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the arms look at."""

    definition: Definition
    head: Head
    mail: Mapping[str, Mail]
    now: int


@dataclass(frozen=True, slots=True)
class _Turn:
    """What one look at the current step came to; without `next`, look again."""

    journal: Journal
    next: Perform | Park | Finish | None = None
    consumed: tuple[str, ...] = ()
    absent: bool = False


def decide(
    definition: Definition, head: Head, journal: Journal, mail: Mapping[str, Mail], now: int
) -> Decision:
    """The next instruction for a run whose lease is held. `mail` is what is not consumed yet."""
    consumed: tuple[str, ...] = ()
    absent = False
    while True:
        if journal.failure is not None:
            return Decision(journal, Finish(Status.FAILED), consumed, absent)
        if journal.position >= len(definition.steps):
            return Decision(journal, Finish(Status.SUCCEEDED), consumed, absent)
        step = definition.steps[journal.position]
        left = {key: letter for key, letter in mail.items() if key not in consumed}
        turn = _look(_Scene(definition, head, left, now), step, journal)
        journal, consumed = turn.journal, consumed + turn.consumed
        absent = absent or turn.absent
        if turn.next is not None:
            return Decision(journal, turn.next, consumed, absent)


def _look(scene: _Scene, step: Step, journal: Journal) -> _Turn:
    """One arm for each kind of step."""
    if step.kind in ACTION_KINDS:
        return _action(scene, step, journal)
    if step.kind is Kind.SLEEP:
        return _sleep(scene, step, journal)
    if step.kind is Kind.WAIT_FOR_SIGNAL:
        return _wait_for_signal(scene, step, journal)
    text = f'step "{step.key}" has kind {step.kind}, which this version does not run'
    return _Turn(replace(journal, failure=Failure(text, None, None)))


def _action(scene: _Scene, step: Step, journal: Journal) -> _Turn:
    hopeless = _hopeless(step, journal, scene.head, scene.now)
    if hopeless is not None:
        return _Turn(hopeless)
    opened = journal.opened(step.ordinal)
    if opened is not None and scene.now < _ends(opened):
        return _Turn(journal, Park(Status.PENDING, _ends(opened)))
    return _Turn(journal, Perform(_act(scene, step, attempt=(opened.attempt if opened else 0) + 1)))


def _sleep(scene: _Scene, step: Step, journal: Journal) -> _Turn:
    now = scene.now
    opened = journal.opened(step.ordinal)
    if opened is None:
        ends = now + step.sleep_for
        opened = Record(step.ordinal, StepStatus.SLEEPING, 1, started_at=now, next_at=ends)
        journal = replace(journal, open=(*journal.open, opened))
    if now < _ends(opened):
        return _Turn(journal, Park(Status.SLEEPING, _ends(opened)))
    done = replace(opened, status=StepStatus.SUCCEEDED, finished_at=now, next_at=None)
    return _Turn(finish_step(journal, done))


def _wait_for_signal(scene: _Scene, step: Step, journal: Journal) -> _Turn:
    now = scene.now
    opened = journal.opened(step.ordinal)
    if opened is None:
        ends = now + step.timeout
        opened = Record(step.ordinal, StepStatus.WAITING, 1, started_at=now, next_at=ends)
        journal = replace(journal, open=(*journal.open, opened))
    arrived = _oldest(scene.mail, step.signal)
    if arrived is not None:
        done = _received(opened, scene.mail[arrived], now)
        return _Turn(finish_step(journal, done), consumed=(arrived,))
    if now < _ends(opened):
        return _Turn(journal, Park(Status.WAITING, _ends(opened)), absent=True)
    text = f'signal "{step.signal}" did not come within {step.timeout // 1000} s'
    return _Turn(fail_step(journal, opened, text, "wait_timed_out", now), absent=True)


def finish_step(journal: Journal, done: Record) -> Journal:
    """Record a top-level step's success and move on."""
    return replace(
        journal,
        position=journal.position + 1,
        records=(*journal.records, done),
        open=without(journal.open, done.ordinal),
    )


def fail_step(
    journal: Journal, record: Record, message: str, code: str | None, now: int
) -> Journal:
    """Record that a step failed for good, and with it the run."""
    message = message[: limits.MAX_ERROR_TEXT]
    failed = replace(
        record,
        status=StepStatus.FAILED,
        finished_at=now,
        next_at=None,
        error=message,
        code=code,
    )
    return replace(
        journal,
        records=(*journal.records, failed),
        open=without(journal.open, record.ordinal),
        failure=Failure(message, code, record.ordinal),
    )


def without(records: tuple[Record, ...], ordinal: int) -> tuple[Record, ...]:
    """The records but that of one step."""
    return tuple(record for record in records if record.ordinal != ordinal)


def _hopeless(step: Step, journal: Journal, head: Head, now: int) -> Journal | None:
    """The journal of a run that must not try its step again."""
    record = journal.opened(step.ordinal) or Record(step.ordinal, StepStatus.RETRYING, 0, now)
    if head.lost >= limits.MAX_LOST_IN_A_ROW:
        text = (
            f"the worker was lost {head.lost} times in a row while it ran this step "
            f"(attempt {record.attempt + 1}): it may exhaust memory or crash its process"
        )
        return fail_step(journal, record, text, "worker_lost", now)
    if journal.attempts >= limits.MAX_RUN_ATTEMPTS:
        text = f"this run has executed {limits.MAX_RUN_ATTEMPTS} attempts, the most a run may"
        return replace(journal, failure=Failure(text, "step_ceiling", None))
    return None


def _act(scene: _Scene, step: Step, attempt: int) -> Act:
    run_id = scene.head.run_id
    return Act(
        project=scene.head.project,
        workflow=scene.definition.workflow,
        run_id=run_id,
        ordinal=step.ordinal,
        step=step.key,
        kind=step.kind,
        attempt=attempt,
        effect_id=f"{run_id}:{step.key}",
        target=step.target or "",
        payload=step.payload,
        secret=step.secret,
        timeout=step.timeout,
    )


def _ends(opened: Record) -> int:
    return opened.next_at or 0


def _oldest(mail: Mapping[str, Mail], name: str | None) -> str | None:
    """The first signal of that name: a mailbox keeps the order of arrival."""
    return next(
        (key for key, letter in mail.items() if letter.kind == "signal" and letter.name == name),
        None,
    )


def _received(opened: Record, letter: Mail, now: int) -> Record:
    output = letter.body if letter.blob is None else Stored(letter.blob, 0)
    return replace(
        opened, status=StepStatus.SUCCEEDED, finished_at=now, next_at=None, output=output
    )
