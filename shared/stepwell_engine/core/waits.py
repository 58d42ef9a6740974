"""Steps that wait for time or for a signal. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from stepwell_engine import limits
from stepwell_engine.core.definition import Step
from stepwell_engine.core.durations import in_seconds
from stepwell_engine.core.instructions import Park, Scene, Turn
from stepwell_engine.core.journal import Journal, Record, Stored
from stepwell_engine.core.run import Mail, Status, StepStatus
from stepwell_engine.core.transitions import ends, fail_step, finish_step, record_open


def sleep(scene: Scene, step: Step, journal: Journal) -> Turn:
    """Park until the time is over, counted from when the run came here."""
    opened = journal.opened(step.ordinal)
    if opened is None:
        until = scene.now + step.sleep_for
        opened = Record(step.ordinal, StepStatus.SLEEPING, 1, scene.now, next_at=until)
        journal = record_open(journal, opened)
    if scene.now < ends(opened):
        return Turn(journal, Park(Status.SLEEPING, ends(opened)))
    done = replace(opened, status=StepStatus.SUCCEEDED, finished_at=scene.now, next_at=None)
    return Turn(finish_step(journal, done))


def wait_for_signal(scene: Scene, step: Step, journal: Journal) -> Turn:
    """Take the oldest signal of the name, park for one, or fail when the wait expires."""
    opened = journal.opened(step.ordinal)
    if opened is None:
        until = scene.now + step.timeout
        opened = Record(step.ordinal, StepStatus.WAITING, 1, scene.now, next_at=until)
        journal = record_open(journal, opened)
    arrived = _oldest(scene.mail, step.signal)
    if arrived is not None:
        done = _received(opened, scene.mail[arrived], scene.now)
        return Turn(finish_step(journal, done), consumed=(arrived,))
    if scene.now < ends(opened):
        return Turn(journal, Park(Status.WAITING, ends(opened)), absent=True)
    text = f'signal "{step.signal}" did not come within {in_seconds(step.timeout)}'
    return Turn(fail_step(journal, opened, text, "wait_timed_out", scene.now), absent=True)


def _oldest(mail: Mapping[str, Mail], name: str | None) -> str | None:
    """The first signal of that name: a mailbox keeps the order of arrival."""
    return next(
        (key for key, letter in mail.items() if letter.kind == "signal" and letter.name == name),
        None,
    )


def _received(opened: Record, letter: Mail, now: int) -> Record:
    output: bytes | Stored | None = letter.body
    if letter.blob is not None:
        output = Stored(letter.blob, int(letter.body or limits.MAX_SIGNAL_PAYLOAD))
    return replace(
        opened, status=StepStatus.SUCCEEDED, finished_at=now, next_at=None, output=output
    )
