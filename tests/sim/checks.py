"""The properties of DESIGN.md section 3, checked at every head write and at every attempt."""

from collections.abc import Callable, Iterable

from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Attempt, Outcome
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.keys import StepKey
from stepwell_engine.core.run.lane import Lane
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import Status, StepStatus
from stepwell_engine.ports import KEEP, Commit
from tests.sim.compensation import check_compensation
from tests.sim.endings import check_in_time, check_revived, check_timed_out
from tests.sim.families import Families
from tests.sim.formats import LeftAlone
from tests.sim.gates import check_gate
from tests.sim.hints import HintCounts
from tests.sim.ledger import (
    Execution,
    InHand,
    Ledger,
    due_actions,
    read_records,
    ready_from,
    refer,
    reported_in_flight,
)
from tests.sim.messages import accept, check_inbox, check_parked
from tests.sim.outcomes import Look, check_finished, check_open, check_siblings
from tests.sim.scheduler import SKEW, Actor, Violation
from tests.sim.sizes import check_size
from tests.sim.standing import check_standing, check_wake_at
from tests.sim.starting import check_may_start
from tests.sim.stopped import left_out, let_go
from tests.sim.workload import Slot

PROMPT = 2_000  # in a calm world nothing that is ready waits longer, in ms
AFTER_A_REFUSAL = 90_000  # the next tick finds what nobody could hint, in ms
RETURN = 5_000  # a worker notices so soon that the store answers again, in ms
ReadBlob = Callable[[str, str], bytes | None]
_NOTHING = InHand((), ())


class Checks:
    """Watches the store. `read` gives a blob's bytes without disturbing the world."""

    def __init__(
        self, slots: Iterable[Slot], clock: Callable[[], int], read: ReadBlob, calm: bool
    ) -> None:
        self.ledgers: dict[str, Ledger] = {}
        self.families = Families(self.ledgers, clock)
        self.hints = HintCounts(calm)
        self.last_fault = 0
        self.last_refusal = 0  # of a store that refuses everything for a while
        self.left_alone = LeftAlone()
        self.last_stop = 0  # of a host, in order
        self.stopped: set[str] = set()  # leases that it could not let go of
        self._slots = {slot.workflow: slot for slot in slots}
        self._clock = clock
        self._read = read
        self._calm = calm
        self.keys: dict[tuple[str, str], str] = {}
        self._creators: set[str] = set()
        self._blobs: dict[tuple[str, str], bytes] = {}

    # --- writes of heads ----------------------------------------------------------------------

    def created(self, new: Head) -> None:
        """A run was created."""
        slot = self._slots[new.workflow]
        now = self._clock()
        if new.parent is not None:
            self.families.born(new)
        ledger = Ledger(slot.definition, slot.broken, new, ready_since=now, moved_at=now)
        self.ledgers[new.run_id] = ledger
        if new.idempotency_key is not None:
            key = (new.workflow, new.idempotency_key)
            if self.keys.setdefault(key, new.run_id) != new.run_id:
                raise Violation(8, f"a second run, {new.run_id}, for the key of {self.keys[key]}")
        if new.input is None:
            self._refer(ledger, "input")
        self._rests(ledger, new)

    def claimed(self, old: Head, new: Head, before: str, lane: Lane) -> None:
        """A worker took the lease; `before` is the token that it had until now, if any."""
        ledger = self.ledgers[new.run_id]
        now = self._clock()
        if not old.live:
            raise Violation(10, f"a run that is {old.status} was claimed")
        check_in_time(old, new.claimed_at + SKEW, "claimed")  # which may come late
        if old.lease_token is not None:
            if now <= old.lease_expires_at:
                raise Violation(
                    4, f"the lease of {old.lease_token} was taken while it was in force"
                )
            self._lose(ledger, old.lease_token)
            ledger.blame.lose(old.lease_token, now)
        else:
            self.prompt(ledger.ready_since, "a claim")
        ledger.blame.claim(new.lease_token or "", lane)
        self.hints.claimed(new)
        ledger.bring_back(before, new.lease_token or "")
        ledger.moved_at = ledger.settled_at = ledger.looked_at = now
        self._rests(ledger, new)

    def extended(self, old: Head, new: Head, token: str) -> None:
        """A worker moved the end of its lease."""
        ledger = self.ledgers[new.run_id]
        self._held(old, token)
        if not old.live:
            raise Violation(10, f"the lease of a run that is {old.status} was extended")
        if any(one.ends_by > new.lease_expires_at for one in ledger.unrecorded if not one.over):
            raise Violation(4, f"the lease of {token} ends now before its attempt must")
        ledger.moved_at = self._clock()
        self._rests(ledger, new)

    def in_hand(self, run_id: str, token: str) -> InHand:
        """A worker is about to write: what it has in hand."""
        ledger = self.ledgers.get(run_id)
        return _NOTHING if ledger is None else ledger.in_hand(token)

    def committed(
        self, old: Head, new: Head, commit: Commit, hand: InHand, lets_go: bool = False
    ) -> None:
        """The lease's holder wrote, with `hand` in hand when it began to."""
        ledger = self.ledgers[new.run_id]
        self._held(old, commit.lease_token)
        if old.stopped:
            if new.status is not old.status:
                raise Violation(10, f"a run that is {old.status} became {new.status}")
        elif not old.live:
            raise Violation(10, f"a run that is {old.status} was written")
        in_flight = [one for one in hand.in_flight if not one.stopped]
        if new.lease_token is None and in_flight:
            raise Violation(4, f"{commit.lease_token} lets go while {in_flight[0]} is in flight")
        before, ledger.undecided = ledger.journal, lets_go
        self._journal(ledger, old, new, commit.blobs, hand)
        if new.lease_token is None:
            let_go(ledger, hand)
        # What is let go of undecided keeps its finished steps, until somebody decides what follows.
        if not ledger.undecided and new.journal != old.journal:
            check_size(ledger.codec, ledger.journal, new.journal)
        if ledger.journal.place != before.place:
            ledger.blame.move()
        if any(one.recorded for one in hand.known):
            ledger.blame.record()
        if ledger.journal != before and not new.stopped:
            self.families.begins(ledger)
        check_standing(ledger, new)
        if new.live and new.lease_token is None and commit.status is not KEEP:  # not just put back
            check_parked(ledger, new)
        now = self._clock()
        if old.live and not new.live:
            ledger.ended_at = now
            self.families.ended(new)
        ledger.moved_at = ledger.settled_at = now
        ledger.ready_since = ready_from(ledger, now)
        self._rests(ledger, new)

    def delivered(
        self, old: Head, new: Head, sent: tuple[str, InboxMessage], number: int | None = None
    ) -> None:
        """A message was put into the inbox, into its overflow with a number."""
        message_id, message = sent
        ledger = self.ledgers[new.run_id]
        if not old.live:
            raise Violation(10, f"a message was put into a run that is {old.status}")
        if message.blob is not None:
            self._refer(ledger, message.blob)
        if message.kind == "child":  # may come again once it was read
            self.families.notified(message, message_id)
        accept(ledger, message_id, message, number, self._clock())
        self._rests(ledger, new)

    def cancelled(self, old: Head, new: Head, canceller: str | None) -> None:
        """A caller cancelled the run, or a worker of the run `canceller` did."""
        ledger = self.ledgers[new.run_id]
        if not old.live:
            raise Violation(10, f"a run that is {old.status} was cancelled")
        ledger.cancelled_at = ledger.ended_at = self._clock()
        ledger.canceller = canceller
        self.families.ended(new)
        self._rests(ledger, new)

    def timed_out(self, old: Head, new: Head) -> None:
        """Whoever came after its deadline ended the run."""
        ledger, now = self.ledgers[new.run_id], self._clock()
        check_timed_out(old, now)
        if old.lease_token is None and old.status is not Status.PENDING:
            self.prompt(max(old.deadline or 0, ledger.settled_at), "the end at a deadline")
        ledger.cancelled_at = ledger.ended_at = now
        self.families.ended(new)
        self._rests(ledger, new)

    def is_live(self, run_id: str) -> bool:
        """Whether there is such a run, and it may still move."""
        return run_id in self.ledgers and self.ledgers[run_id].head.live

    def revived(self, old: Head, new: Head) -> None:
        """Somebody lets a run that has ended go on."""
        ledger = self.ledgers[new.run_id]
        if old.lease_token is not None:
            self._lose(ledger, old.lease_token)
        check_revived(ledger, old, new, self._clock())
        self._rests(ledger, new)

    def closed(self, old: Head, new: Head) -> None:
        """A cancelled run was settled for a worker that did not come back."""
        ledger = self.ledgers[new.run_id]
        if not old.stopped or new.status is not old.status:
            raise Violation(10, f"a run that is {old.status} was closed, it is {new.status} now")
        if self._clock() <= old.lease_expires_at:
            raise Violation(10, f"closed while the lease of {old.lease_token} was in force")
        self._lose(ledger, old.lease_token or "")
        self._journal(ledger, old, new, (), _NOTHING)
        check_standing(ledger, new)
        ledger.moved_at = ledger.settled_at = self._clock()
        self._rests(ledger, new)

    def mark_notified(self, new: Head) -> None:
        """The parent of a run was notified of its end."""
        ledger = self.ledgers[new.run_id]
        self.families.mark_notified(new)
        self.prompt(ledger.ended_at, f"the notification of {new.run_id}")
        self._rests(ledger, new)

    def blob_put(self, run_id: str, blob: Blob) -> None:
        """A blob was written: never other bytes under the same name. Property 1."""
        if self._blobs.setdefault((run_id, blob.name), blob.data) != blob.data:
            raise Violation(1, f"blob {blob.name} was overwritten by another")

    # --- parts of them ------------------------------------------------------------------------

    def prompt(self, since: int, what: str) -> None:
        """In a calm world nothing waits for long that could happen since a time."""
        late = self._clock() - since
        hindered = max(self.last_refusal, self.last_stop, self.left_alone.last)
        if self._calm and late > PROMPT and since > hindered + AFTER_A_REFUSAL:
            raise Violation(3, f"{what} comes {late} ms late")

    def _refer(self, ledger: Ledger, name: str) -> None:
        refer(ledger, name, lambda name: self._read(ledger.head.run_id, name))

    def _held(self, old: Head, token: str) -> None:
        if old.lease_token != token:
            raise Violation(4, f"{token} wrote, but the lease is {old.lease_token}'s")

    def _lose(self, ledger: Ledger, token: str) -> None:
        if any(not one.over for one in ledger.unrecorded):
            raise Violation(4, f"the lease of {token} was taken in the middle of its attempt")
        ended = ledger.head.lease_expires_at
        closed = ledger.cancelled_at is not None and token in self.left_alone.tokens
        hindered = ended - RETURN < self.last_refusal or token in self.stopped
        if self._calm and not (closed or hindered):
            raise Violation(4, f"the lease of {token} was lost in a calm world")
        ledger.lost.add(token)
        ledger.stranded += [one for one in ledger.unrecorded if one.token == token]
        ledger.unrecorded = [one for one in ledger.unrecorded if one.token != token]

    def _journal(
        self, ledger: Ledger, old: Head, new: Head, meant: Iterable[Blob], hand: InHand
    ) -> None:
        """What a write did to the journal is what happened, and all of it."""
        known = [one for one in hand.known if not one.recorded]
        journal, before = ledger.journal, ledger.records
        fresh: list[Record] = []
        if new.journal != old.journal:
            journal = ledger.codec.decode(new.journal)
            read_records(ledger, journal, meant, lambda name: self._read(new.run_id, name))
            fresh = [record for key, record in ledger.records.items() if key not in before]
            tried = {one.key: one for one in known}
            look = Look(ledger, new, journal, tuple(fresh), tried, self._clock(), self.families)
            for record in fresh:
                check_finished(look, record)
            child_starts = check_open(look)
            lost = sum(record.code == "worker_lost" for record in fresh)
            tries = sum(one.recorded for one in known)
            self._attempts(ledger.journal, journal, tries + child_starts + lost)
        if left := left_out(hand, old.lease_token in ledger.stopped):
            raise Violation(5, f"a write leaves out what was done: {left}")
        ledger.unrecorded = [one for one in ledger.unrecorded if not one.recorded]
        check_siblings(fresh, hand, ledger)
        passed = self._moved(ledger, journal, fresh, old, new)
        check_inbox(ledger, journal, old, new, passed, self.prompt)
        for one in ledger.journal.open:
            sleeps = ledger.definition.by_key[one.key].kind is Kind.SLEEP
            if sleeps and one.key in passed:
                self.prompt(one.next_at or 0, f"the end of step {one.key}")
        if passed:
            ledger.moved_on_at = self._clock()
        previous, ledger.journal = ledger.journal, journal
        check_compensation(ledger, previous, new)

    def _attempts(self, before: Journal, after: Journal, expected: int) -> None:
        if after.attempts - before.attempts != expected:
            raise Violation(5, f"{after.attempts} attempts after {before.attempts} + {expected}")

    def _moved(
        self, ledger: Ledger, journal: Journal, fresh: Iterable[Record], old: Head, new: Head
    ) -> list[StepKey]:
        """The position moved past the steps that this write finished. Property 2."""
        steps, begin = ledger.definition.steps, ledger.journal.position
        through = [step.key for step in steps[begin : journal.position]]
        tops = {step.key for step in steps}
        done = [one.key for one in fresh if one.status is StepStatus.SUCCEEDED]
        passed = [key for key in done if key in tops]
        moved = journal.position - begin
        if passed != through and not (new.stopped and moved == 0):
            raise Violation(2, f"moved past {through} when {passed} were recorded")
        if old.stopped and moved:
            raise Violation(10, f"a run that is {old.status} moved on past {through}")
        return passed

    def _rests(self, ledger: Ledger, new: Head) -> None:
        ledger.head = new
        ledger.writes += 1
        check_wake_at(ledger, new, self._clock())

    # --- attempts ---------------------------------------------------------------------------------

    def attempt_starts(self, attempt: Attempt, actor: Actor, left: int) -> Execution:
        """An attempt has its effect, within the ms `left`. Properties 2, 4, 5, 9, 10."""
        ledger, token = self.ledgers[attempt.run_id], actor.token
        now = self._clock()
        key = attempt.step
        self.families.begins(ledger)
        check_may_start(ledger, attempt, token, left, self._clock())
        if key not in due_actions(ledger):
            number = 9 if ledger.compensates(key) else 2
            raise Violation(number, f"{attempt.step} starts, {due_actions(ledger)} could")
        begun = opened.attempt if (opened := ledger.journal.opened(key)) else 0
        if attempt.number != begun + 1 or (token, key, attempt.number) in ledger.attempts:
            raise Violation(5, f"attempt {attempt.number} of {attempt.step}, {begun} are recorded")
        if opened is not None and now + SKEW < (opened.next_at or 0):
            raise Violation(5, f"{attempt.step} starts before its pause is over")
        check_gate(actor, now + left)
        ledger.blame.check_start(key, actor, now, bool(ledger.in_hand(token).in_flight))
        ledger.attempts.add((token, key, attempt.number))
        execution = Execution(key, attempt.number, token, now + left)
        ledger.executions.append(execution)
        ledger.unrecorded.append(execution)
        reported, in_flight = reported_in_flight(ledger, now + SKEW), ledger.in_flight(token)
        if ledger.head.live and not in_flight <= reported:
            raise Violation(2, f"{in_flight} are in flight, a reader sees {reported}")
        return execution

    def begins(self, run_id: str, token: str) -> None:
        """A worker begins an attempt, itself or by its group. Properties 5 and 10."""
        ledger = self.ledgers[run_id]
        check_in_time(ledger.head, self._clock(), f"{token} begins an attempt")
        known = ledger.in_hand(token).known
        if known:
            raise Violation(5, f"{token} begins another attempt before {known[0]} is recorded")
        if ledger.cancelled_at is not None and ledger.cancelled_at < ledger.looked_at:
            raise Violation(10, f"{token} begins an attempt, though it could know of the cancel")

    def attempt_ended(self, run_id: str, execution: Execution, outcome: Outcome | None) -> None:
        """The step runner answered, or its process died (None)."""
        if execution.stopped:
            return
        execution.over, execution.ended_at = True, self._clock()
        execution.outcome = outcome
        if outcome is None:
            self.ledgers[run_id].unrecorded.remove(execution)

    def child_died(self, attempt: Attempt, execution: Execution) -> None:
        """The child process in which an attempt was alone died: there is no outcome to record."""
        if not execution.stopped:
            self.ledgers[attempt.run_id].die(execution)

    def attempt_completed(self, run_id: str, execution: Execution, alone: bool) -> None:
        """The worker has the outcome, if it ran the attempt itself; else its task group has."""
        execution.completed = True
        if alone and not execution.stopped:
            self.ledgers[run_id].take(execution)
            self.ledgers[run_id].looked_at = self._clock()

    def waited(self, run_id: str, token: str) -> None:
        """A worker has waited for its task group, and takes what has completed."""
        ledger = self.ledgers[run_id]
        ledger.looked_at = self._clock()
        for one in (*ledger.unrecorded, *ledger.stranded):
            if one.token == token and one.completed:
                ledger.take(one)

    def looked(self, run_id: str, head: Head | None) -> None:
        """A worker has read its run anew."""
        ledger = self.ledgers.get(run_id)
        if ledger is not None and head is not None and not head.live:
            ledger.looked_at = self._clock()
