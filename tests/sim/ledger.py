"""What is known to be true about a run, independent of its head."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from stepwell_engine import limits
from stepwell_engine.core import journal as journals
from stepwell_engine.core.definition import ACTION_KINDS, Definition, Kind, Step
from stepwell_engine.core.journal import Joined, Journal, Output, Record, Stored
from stepwell_engine.core.outcome import Failed, Outcome, Succeeded
from stepwell_engine.core.run import Blob, Head, Mail, StepStatus
from tests.sim.scheduler import Violation

SKEW = 900  # a clock is off by at most this, either way, in ms


@dataclass(slots=True)
class Execution:
    """One time that a performer was asked to act. `outcome` is None until it answered."""

    ordinal: int
    attempt: int
    token: str
    outcome: Outcome | None = None
    ended_at: int = 0
    recorded: bool = False


@dataclass(slots=True)
class Ledger:
    """A run as the simulator knows it. Times are true times.

    `records` are all finished steps, those on pages included; `referred` the blobs that the head
    has come to refer to; `in_hand` the executions that answered and are not recorded, by lease;
    `lost` the leases that others took or closed; `losses` how many in a row; `accepted` when each
    signal came. `moved_at` is when a worker last wrote, `moved_on_at` when the position last
    changed, `ready_since` when the run could be claimed, whatever its head says; `acting_until`
    when the act in progress ends, `may_act_until` when it must have ended.
    """

    definition: Definition
    broken: bool
    head: Head
    journal: Journal = field(default_factory=Journal)
    records: dict[tuple[int, bool], Record] = field(default_factory=dict)
    paged: tuple[Record, ...] = ()
    referred: dict[str, bytes] = field(default_factory=dict)
    executions: list[Execution] = field(default_factory=list)
    acts: set[tuple[str, int, int]] = field(default_factory=set)
    in_hand: dict[str, Execution] = field(default_factory=dict)
    consumed: set[str] = field(default_factory=set)
    accepted: dict[str, int] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    losses: int = 0
    writes: int = 0
    ready_since: int = 0
    moved_at: int = 0
    moved_on_at: int = 0
    acting_until: int = 0
    may_act_until: int = 0

    @property
    def step(self) -> Step | None:
        """The step at which the run stands."""
        steps = self.definition.steps
        return steps[self.journal.position] if self.journal.position < len(steps) else None

    @property
    def kind(self) -> str:
        """The kind of that step."""
        step = self.step
        return "end" if step is None else step.kind.value

    @property
    def done(self) -> bool:
        """Whether nobody has to look at the run any more."""
        return not self.head.live and self.head.token is None and self.head.wake_at is None


Read = Callable[[str], bytes | None]


def read_records(ledger: Ledger, journal: Journal, meant: Iterable[Blob], read: Read) -> None:
    """Check that all finished steps are there, with all blobs; then remember them. Property 1."""
    for blob in meant:
        if read(blob.name) != blob.data:
            raise Violation(1, f"blob {blob.name} is not what the writer of the head put there")
    before = ledger.journal
    paged = ledger.paged
    if journal.pages != before.pages:
        known = len(before.pages)
        if journal.pages[:known] != before.pages:
            raise Violation(1, f"pages {before.pages} became {journal.pages}")
        for page in journal.pages[known:]:
            data = refer(ledger, page.blob, read)
            found = journals.decode_page(data, ledger.head.created_at)
            if len(found) != page.count:
                raise Violation(1, f"page {page.blob} holds {len(found)} steps, not {page.count}")
            paged = (*paged, *found)
    everything = (*paged, *journal.records)
    records = {record.effect: record for record in everything}
    if len(records) != len(everything):
        raise Violation(1, f"a step is recorded twice: {[one.ordinal for one in everything]}")
    for effect, record in ledger.records.items():
        if records.get(effect) != record:
            raise Violation(1, f"{record} became {records.get(effect)}")
    for record in everything[len(ledger.records) :]:
        if isinstance(record.output, Stored):
            refer(ledger, record.output.blob, read)
    ledger.records, ledger.paged = records, paged


def refer(ledger: Ledger, name: str, read: Read) -> bytes:
    """The blob that a head refers to."""
    data = read(name)
    if data is None:
        raise Violation(1, f"the head refers to blob {name}, which is not there")
    ledger.referred[name] = data
    return data


def content(ledger: Ledger, output: Output | None) -> bytes | None:
    """An output, wherever it is kept; None for a join's, which is put together when it is read."""
    if isinstance(output, Joined):
        return None
    return ledger.referred[output.blob] if isinstance(output, Stored) else output


def letter_content(ledger: Ledger, letter: Mail) -> bytes | None:
    """A signal's payload, wherever it is kept."""
    return letter.body if letter.blob is None else ledger.referred[letter.blob]


def check_open(ledger: Ledger, journal: Journal, tried: Execution | None) -> None:
    """The times that govern a begun step stay as they are until it is tried again."""
    for old in ledger.journal.open:
        new = journal.opened(old.ordinal)
        if new == old or old.effect in ledger.records:
            continue
        if new is None or tried is None or tried.ordinal != old.ordinal:
            raise Violation(2, f"{old} became {new}, and it was not tried")
    for new in journal.open:
        old_attempt = next((o.attempt for o in ledger.journal.open if o.ordinal == new.ordinal), 0)
        if new.effect in ledger.records:
            raise Violation(1, f"{new} is finished and begun")
        step = ledger.definition.steps[new.ordinal]
        if step.kind in ACTION_KINDS:
            _check_retry(ledger, step, new, old_attempt, tried)
        elif new.next_at != (new.started_at or 0) + step.sleep_for + step.timeout:
            raise Violation(6, f"{new} does not end when it should")


def _check_retry(
    ledger: Ledger, step: Step, new: Record, old_attempt: int, tried: Execution | None
) -> None:
    if new.attempt == old_attempt:
        return
    if tried is None or (tried.ordinal, tried.attempt) != (new.ordinal, new.attempt):
        raise Violation(5, f"{new}: no such attempt was made with this lease")
    if new.attempt != old_attempt + 1:
        raise Violation(5, f"attempt {old_attempt} of {step.key} is followed by {new.attempt}")
    outcome = tried.outcome
    if not isinstance(outcome, Failed) or not outcome.retryable or not _tells(new, outcome):
        raise Violation(1, f"{new} was recorded for {outcome}")
    pause = max(
        min(2_000 * 2 ** (new.attempt - 1), limits.BACKOFF_CAP),
        min(outcome.retry_after or 0, limits.BACKOFF_CAP),
    )
    if (new.next_at or 0) < tried.ended_at - SKEW + pause:
        raise Violation(5, f"{new} is tried again before {pause} ms are over")
    tried.recorded = True


def check_finished(
    ledger: Ledger, record: Record, head: Head, tried: Execution | None, now: int
) -> None:
    """A newly finished step came to what really happened."""
    step = ledger.definition.steps[record.ordinal]
    if record.status is StepStatus.CANCELLED:
        if head.status != "cancelled":
            raise Violation(10, f"{record} in a run that is {head.status}")
        if tried is not None and (tried.ordinal, tried.attempt) == (record.ordinal, record.attempt):
            _check_backing_off(step, record, head, tried)
        return
    if step.kind is Kind.SLEEP:
        if record.status is not StepStatus.SUCCEEDED or _too_early(record, step.sleep_for, now):
            raise Violation(6, f"{record}: it sleeps {step.sleep_for} ms")
        return
    if step.kind is Kind.WAIT_FOR_SIGNAL:
        if record.status is StepStatus.FAILED:
            if record.code != "wait_timed_out" or _too_early(record, step.timeout, now):
                raise Violation(6, f"{record}: it waits {step.timeout} ms")
            if any(letter.name == step.signal for letter in head.mail.values()):
                raise Violation(6, f"{record}, though the signal is there")
        return
    if record.code == "worker_lost":
        if ledger.losses < limits.MAX_LOST_IN_A_ROW:
            raise Violation(5, f"{record} after {ledger.losses} lost workers")
        return
    _check_act(ledger, step, record, head, tried)


def _check_act(
    ledger: Ledger, step: Step, record: Record, head: Head, tried: Execution | None
) -> None:
    if tried is None or (tried.ordinal, tried.attempt) != (record.ordinal, record.attempt):
        raise Violation(1, f"{record} was recorded, but the act in hand is {tried}")
    outcome = tried.outcome
    if isinstance(outcome, Failed):
        final = not outcome.retryable or record.attempt >= step.max_attempts
        told = record.status is StepStatus.FAILED and _tells(record, outcome)
        if not told or not (final or head.status == "cancelled"):
            raise Violation(1, f"{record} was recorded for {outcome}")
    elif isinstance(outcome, Succeeded):
        large = len(outcome.output or b"") > limits.MAX_OUTPUT
        expected = StepStatus.FAILED if large else StepStatus.SUCCEEDED
        kept = large or content(ledger, record.output) == outcome.output
        if record.status is not expected or not kept:
            raise Violation(1, f"{record} was recorded for {outcome}")
    tried.recorded = True


def _check_backing_off(step: Step, record: Record, head: Head, tried: Execution) -> None:
    """An attempt failed, another was to come, but the run was cancelled in between."""
    outcome = tried.outcome
    if (
        not isinstance(outcome, Failed)
        or not outcome.retryable
        or record.attempt >= step.max_attempts
        or not _tells(record, outcome)
        or tried.ended_at > (head.ended_at or 0) + 2 * SKEW
    ):
        raise Violation(10, f"{record} was recorded for {outcome}")
    tried.recorded = True


def _tells(record: Record, failed: Failed) -> bool:
    return record.error == failed.message[: limits.MAX_ERROR_TEXT]


def _too_early(record: Record, lasts: int, now: int) -> bool:
    return now + SKEW < (record.started_at or 0) + lasts
