"""The truth about a run, kept beside its head."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Definition, Kind, Step
from stepwell_engine.core.declared.kinds import ACTION_KINDS
from stepwell_engine.core.declared.progress import Progress
from stepwell_engine.core.run.attempt import Deferred, Outcome
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage
from stepwell_engine.core.run.journal import Journal, PageRef
from stepwell_engine.core.run.journal_codec import JournalCodec, decode_index
from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.records import Joined, Output, Record, Stored
from stepwell_engine.core.run.status import Status, StepStatus
from tests.sim.blame import Blame
from tests.sim.scheduler import Violation


@dataclass(slots=True)
class Execution:
    """One time that a step runner was asked to try, with a lease. True times.

    It must end by `ends_by`. `outcome` is None until the runner has answered, and for ever if
    the worker died; `over`: it has ended, or died; `seen`: the worker knows the outcome;
    `stopped`: its host stopped in order, without an outcome of it that is recorded.
    """

    key: StepKey
    attempt: int
    token: str
    ends_by: int
    outcome: Outcome | None = None
    ended_at: int = 0
    over: bool = False
    completed: bool = False
    seen: bool = False
    recorded: bool = False
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """How a run has ended, and when; `codes` are those of what failed."""

    status: Status
    ended_at: int | None
    codes: frozenset[str | None]


@dataclass(frozen=True, slots=True)
class InHand:
    """What a worker has in hand at a write: attempts in flight, and outcomes that it knows."""

    in_flight: tuple[Execution, ...]
    known: tuple[Execution, ...]


@dataclass(slots=True)
class Ledger:
    """A run as the simulator knows it. Times are true times.

    `records` are all finished steps, those on pages included; `referred` the blobs that the head
    has come to refer to; `unrecorded` the executions that may still be recorded, `stranded` those
    whose lease others took, but whose worker may come back with the outcome; `deferred` the
    last deferred one of each step; `lost` the leases that others took or closed; `blame` whom
    losses count against; `accepted` when each message came first; `pending` those that are not
    consumed, in the order in which they came, `numbered` which of them are in the overflow, with
    their numbers; `children` every run that a step of it has waited for, with the step and its
    attempt. `moved_at` is when a worker last wrote, `settled_at` when one last claimed, committed
    or closed, `moved_on_at` when the position last changed, `ready_since` when the run could be
    claimed, whatever its head says; `looked_at` when the lease's holder last had occasion to notice
    what others did; `cancelled_at` when it was cancelled or timed out; `told` whether its parent
    was notified of an end; `ends` how and when it has ended, once for each generation; `canceller`
    the run whose worker cancelled this one; `named` every child that a step was ever about to
    start. `pages` are those that hold records, whichever refers to them.
    `undecided`: a worker has let go, what follows from the outcomes is for the next one to decide.
    """

    definition: Definition
    broken: bool
    head: Head
    journal: Journal = field(default_factory=Journal)
    records: dict[StepKey, Record] = field(default_factory=dict)
    pages: tuple[PageRef, ...] = ()
    paged: tuple[Record, ...] = ()
    referred: dict[str, bytes] = field(default_factory=dict)
    executions: list[Execution] = field(default_factory=list)
    unrecorded: list[Execution] = field(default_factory=list)
    attempts: set[tuple[str, StepKey, int]] = field(default_factory=set)
    stranded: list[Execution] = field(default_factory=list)
    deferred: dict[StepKey, Execution] = field(default_factory=dict)
    consumed: set[str] = field(default_factory=set)
    accepted: dict[str, int] = field(default_factory=dict)
    pending: dict[str, InboxMessage] = field(default_factory=dict)
    numbered: dict[str, int] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)
    children: dict[str, tuple[StepKey, int]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    blame: Blame = field(default_factory=Blame)
    writes: int = 0
    ready_since: int = 0
    moved_at: int = 0
    settled_at: int = 0
    moved_on_at: int = 0
    looked_at: int = 0
    ended_at: int = 0
    cancelled_at: int | None = None
    told: bool = False
    ends: list[End] = field(default_factory=list)
    canceller: str | None = None
    cascaded_at: int | None = None
    named: set[str] = field(default_factory=set)
    stopped: set[str] = field(default_factory=set)  # leases whose host was told to stop
    undecided: bool = False

    @property
    def step(self) -> Step | None:
        """The step at which the run stands."""
        steps = self.definition.steps
        return steps[self.journal.position] if self.journal.position < len(steps) else None

    @property
    def kind(self) -> str:
        """What the run is at: a kind of step, `compensation`, `notification` or `end`."""
        if self.head.notify_pending:
            return "notification"
        if self.journal.failure is not None:
            return "compensation"
        step = self.step
        return "end" if step is None else step.kind.value

    @property
    def done(self) -> bool:
        """Whether nobody has to look at the run any more."""
        head = self.head
        return (
            not (head.live or head.notify_pending)
            and head.lease_token is None
            and head.wake_at is None
        )

    @property
    def codec(self) -> JournalCodec:
        """What decodes the run's journal."""
        return JournalCodec(self.head.created_at, self.definition.keys)

    def compensates(self, key: StepKey) -> bool:
        """Whether a record is that of a compensation."""
        return key in self.definition.compensations

    def compensated_by(self, key: StepKey) -> StepKey:
        """The key of the step that a compensation compensates."""
        return self.definition.flat[self.definition.by_key[key].ordinal].key

    def status(self, key: StepKey) -> StepStatus | None:
        """What a step or a compensation came to; None while it is not over."""
        record = self.records.get(key)
        return None if record is None else record.status

    def succeeded(self, key: StepKey) -> bool:
        """Whether that is recorded."""
        return self.status(key) is StepStatus.SUCCEEDED

    def restart(self, now: int) -> None:
        """The run was revived just now: what it has lost and how it ended is over."""
        self.blame = Blame()
        self.cancelled_at = self.canceller = self.cascaded_at = None
        self.ended_at = 0
        self.ready_since = self.moved_at = self.settled_at = self.moved_on_at = now

    def die(self, execution: Execution) -> None:
        """The child process of an execution died: no outcome of it is ever recorded."""
        execution.recorded = True
        self.attempts.discard((execution.token, execution.key, execution.attempt))
        self.blame.die(execution.key)

    def take(self, execution: Execution) -> None:
        """The worker knows the outcome now. A deferred attempt need not be recorded."""
        execution.seen = True
        if isinstance(execution.outcome, Deferred):
            execution.recorded = True
            self.unrecorded = [one for one in self.unrecorded if one is not execution]
            self.attempts.discard((execution.token, execution.key, execution.attempt))
            if execution.token == self.head.lease_token:  # else its worker records nothing
                self.deferred[execution.key] = execution

    def bring_back(self, before: str, token: str) -> None:
        """A worker whose lease `before` was taken has a new one, and what it has begun."""
        self.blame.bring_back(before)
        for one in [one for one in self.stranded if one.token == before]:
            self.stranded.remove(one)
            opened = self.journal.opened(one.key)
            awaited = one.key in due_actions(self) and one.attempt == 1 + (
                opened.attempt if opened else 0
            )
            if awaited and not one.recorded:
                one.token = token
                self.unrecorded.append(one)

    def in_hand(self, token: str) -> InHand:
        """What the holder of a lease has in hand now."""
        mine = [one for one in self.unrecorded if one.token == token]
        return InHand(
            in_flight=tuple(one for one in mine if not one.seen),
            known=tuple(one for one in mine if one.seen),
        )

    def in_flight(self, token: str) -> set[StepKey]:
        """What the holder of a lease has begun and not recorded."""
        return {one.key for one in self.unrecorded if one.token == token}


def reported_in_flight(ledger: Ledger, now: int) -> set[StepKey]:
    """The actions that a reader of the run sees in flight."""
    records = ledger.records | {one.key: one for one in ledger.journal.open}
    run = Progress(ledger.definition, ledger.head, ledger.journal, records, now)
    return {one.key for one in run.due()}


def outstanding(ledger: Ledger, index: int) -> list[StepKey]:
    """The compensations that the top-level step at `index` still needs."""
    top = ledger.definition.steps[index]
    return [
        step.compensate.key
        for step in (top, *top.children)
        if step.compensate is not None
        and ledger.succeeded(step.key)
        and not ledger.succeeded(step.compensate.key)
    ]


def due_actions(ledger: Ledger) -> list[StepKey]:
    """The actions that may start now: a step, the children of a join, or compensations."""
    journal, steps = ledger.journal, ledger.definition.steps
    if journal.failure is not None:
        failed = (one for one in ledger.records.values() if one.status is StepStatus.FAILED)
        if journal.failure.step is None or any(ledger.compensates(one.key) for one in failed):
            return []
        found = (outstanding(ledger, index) for index in range(journal.position - 1, -1, -1))
        return next(filter(None, found), [])
    step = ledger.step
    if step is None:
        return []
    if step.kind in ACTION_KINDS:
        return [step.key]
    if step.kind is not Kind.JOIN:
        return []
    children = [child.key for child in steps[journal.position - 1].children]
    if any(ledger.status(child) is StepStatus.FAILED for child in children):
        return []
    return [child for child in children if ledger.status(child) is None]


def ready_from(ledger: Ledger, now: int) -> int:
    """When a run that was just released can move again, if no message comes."""
    keys = due_actions(ledger)
    step = ledger.step
    if not keys and step is not None and ledger.journal.failure is None:
        keys = [step.key]
    opened = [ledger.journal.opened(key) for key in keys]
    times = [
        0 if one is None or one.status is StepStatus.PENDING else one.next_at or 0 for one in opened
    ]
    return max(now, min(times, default=0))


# --- what the head refers to --------------------------------------------------------------------

Read = Callable[[str], bytes | None]


def read_records(ledger: Ledger, journal: Journal, meant: Iterable[Blob], read: Read) -> None:
    """Check that all finished steps are there, with all blobs; then remember them. Property 1."""
    for blob in meant:
        if read(blob.name) != blob.data:
            raise Violation(1, f"blob {blob.name} is not what the writer of the head put there")
    pages, paged = ledger.pages, ledger.paged
    if journal.pages != ledger.journal.pages:
        pages = tuple(record_pages(ledger, journal.pages, read))
        known = len(ledger.pages)
        if pages[:known] != ledger.pages:
            raise Violation(1, f"pages {ledger.pages} became {pages}")
        for page in pages[known:]:
            found = ledger.codec.decode_page(refer(ledger, page.blob, read))
            if len(found) != page.count:
                raise Violation(1, f"page {page.blob} holds {len(found)} steps, not {page.count}")
            paged = (*paged, *found)
    everything = (*paged, *journal.records)
    records = {record.key: record for record in everything}
    if len(records) != len(everything):
        count = [one.key for one in everything].count
        twice = [one for one in everything if count(one.key) > 1]
        raise Violation(9 if ledger.compensates(twice[0].key) else 1, f"recorded twice: {twice}")
    for key, record in ledger.records.items():
        if records.get(key) != record:
            raise Violation(1, f"{record} became {records.get(key)}")
    for record in everything[len(ledger.records) :]:
        if isinstance(record.output, Stored):
            refer(ledger, record.output.blob, read)
    ledger.records, ledger.pages, ledger.paged = records, pages, paged


def record_pages(ledger: Ledger, pages: Iterable[PageRef], read: Read) -> Iterator[PageRef]:
    """The pages that hold records, those that index pages refer to included, in order."""
    for page in pages:
        if page.level == 0:
            yield page
            continue
        below = decode_index(refer(ledger, page.blob, read))
        if sum(one.count for one in below) != page.count:
            raise Violation(1, f"page {page.blob} is for {page.count} steps, {below} for others")
        if len(below) < limits.PAGES_OF_INDEX:
            raise Violation(14, f"page {page.blob} is written for {below} alone")
        if any(one.level != page.level - 1 for one in below):
            raise Violation(1, f"page {page.blob} of level {page.level} refers to {below}")
        yield from record_pages(ledger, below, read)


def refer(ledger: Ledger, name: str, read: Read) -> bytes:
    """The blob that a head refers to."""
    data = read(name)
    if data is None:
        raise Violation(1, f"the head refers to blob {name}, which is not there")
    ledger.referred[name] = data
    return data


def content(ledger: Ledger, step: Step, output: Output | None) -> bytes | None:
    """A step's output, wherever it is kept."""
    if isinstance(output, Joined):
        return joined(ledger, step)
    return ledger.referred[output.blob] if isinstance(output, Stored) else output


def joined(ledger: Ledger, join: Step) -> bytes:
    """What a join's output must be."""
    definition = ledger.definition
    members = []
    for child in definition.steps[definition.owner(join.key) - 1].children:
        output = content(ledger, child, ledger.records[child.key].output)
        members.append(b'"%s":%s' % (child.key.encode(), b"null" if output is None else output))
    return b"{" + b",".join(members) + b"}"


def run_output(ledger: Ledger) -> bytes | None:
    """A run's output: that of the last step that has one."""
    for step in reversed(ledger.definition.steps):
        record = ledger.records.get(step.key)
        if record is not None and record.output is not None:
            return content(ledger, step, record.output)
    return None


def message_content(ledger: Ledger, message: InboxMessage) -> bytes | None:
    """A signal's payload, wherever it is kept."""
    return message.body if message.blob is None else ledger.referred[message.blob]
