"""The properties of DESIGN.md section 3, checked at every write, every act, and at rest."""

from collections.abc import Callable, Iterable
from typing import Literal

from stepwell_engine.core import journal as journals
from stepwell_engine.core.definition import ACTION_KINDS, Kind
from stepwell_engine.core.outcome import Act, Outcome
from stepwell_engine.core.run import Blob, Head, Status, StepStatus
from stepwell_engine.limits import CLOCK_MARGIN, LEASE, MAX_LOST_IN_A_ROW
from stepwell_engine.ports import Commit
from tests.sim.ledger import (
    SKEW,
    Execution,
    Ledger,
    check_finished,
    check_open,
    content,
    letter_content,
    read_records,
    refer,
)
from tests.sim.scheduler import Violation
from tests.sim.workload import Slot

PROMPT = 2_000  # in a calm world nothing that is ready waits longer, in ms
_SLACK = 5_000  # calls under way, in ms
_STANDS = {Kind.SLEEP: Status.SLEEPING, Kind.WAIT_FOR_SIGNAL: Status.WAITING}

ReadBlob = Callable[[str, str], bytes | None]


class Checks:
    """Watches the store. `read` gives a blob's bytes without disturbing the world."""

    def __init__(
        self, slots: Iterable[Slot], clock: Callable[[], int], read: ReadBlob, calm: bool
    ) -> None:
        self.ledgers: dict[str, Ledger] = {}
        self.last_fault = 0
        self._slots = {slot.workflow: slot for slot in slots}
        self._clock = clock
        self._read = read
        self._calm = calm
        self._keys: dict[tuple[str, str], str] = {}
        self._creators: set[str] = set()
        self._blobs: dict[tuple[str, str], bytes] = {}

    # --- writes of heads ----------------------------------------------------------------------

    def created(self, new: Head) -> None:
        """A run was created."""
        slot = self._slots[new.workflow]
        now = self._clock()
        ledger = Ledger(slot.definition, slot.broken, new, ready_since=now, moved_at=now)
        self.ledgers[new.run_id] = ledger
        if new.idempotency_key is not None:
            key = (new.workflow, new.idempotency_key)
            if self._keys.setdefault(key, new.run_id) != new.run_id:
                raise Violation(8, f"a second run, {new.run_id}, for the key of {self._keys[key]}")
        if new.input is None:
            refer(ledger, "input", lambda name: self._read(new.run_id, name))
        self._rests(ledger, new)

    def claimed(self, old: Head, new: Head) -> None:
        """A worker took the lease."""
        ledger = self.ledgers[new.run_id]
        now = self._clock()
        if not old.live:
            raise Violation(10, f"a run that is {old.status} was claimed")
        if old.token is not None:
            if now <= old.until:
                raise Violation(4, f"the lease of {old.token} was taken while it was in force")
            self._lose(ledger, old.token)
            ledger.losses += 1
        else:
            self._prompt(ledger.ready_since, "a claim")
        ledger.moved_at = now
        self._rests(ledger, new)

    def extended(self, old: Head, new: Head, token: str) -> None:
        """A worker moved the end of its lease."""
        ledger = self.ledgers[new.run_id]
        self._held(old, token)
        if not old.live:
            raise Violation(10, f"the lease of a run that is {old.status} was extended")
        if ledger.acting_until > self._clock() and ledger.may_act_until > new.until:
            raise Violation(4, f"the lease of {token} ends now before its act must")
        ledger.moved_at = self._clock()
        self._rests(ledger, new)

    def committed(self, old: Head, new: Head, commit: Commit) -> None:
        """The lease's holder wrote."""
        ledger = self.ledgers[new.run_id]
        self._held(old, commit.token)
        if old.status is Status.CANCELLED:
            if new.status is not Status.CANCELLED:
                raise Violation(10, f"a cancelled run became {new.status}")
        elif not old.live:
            raise Violation(10, f"a run that is {old.status} was written")
        before = ledger.journal
        self._journal(ledger, old, new, commit.blobs, commit.token)
        if ledger.journal != before:
            ledger.losses = 0
        self._standing(ledger, new)
        now = self._clock()
        ledger.moved_at = now
        step = ledger.step
        opened = ledger.journal.opened(step.ordinal) if step is not None else None
        ledger.ready_since = max(now, (opened.next_at or 0) if opened is not None else 0)
        self._rests(ledger, new)

    def delivered(self, old: Head, new: Head, mail_id: str) -> None:
        """A caller put mail."""
        ledger = self.ledgers[new.run_id]
        if not old.live:
            raise Violation(10, f"mail was put into a run that is {old.status}")
        if mail_id in ledger.consumed:
            raise Violation(6, f"signal {mail_id} was consumed and is there again")
        blob = new.mail[mail_id].blob
        if blob is not None:
            refer(ledger, blob, lambda name: self._read(new.run_id, name))
        ledger.accepted[mail_id] = self._clock()
        ledger.ready_since = min(ledger.ready_since, self._clock())
        self._rests(ledger, new)

    def cancelled(self, old: Head, new: Head) -> None:
        """A caller cancelled the run."""
        if not old.live:
            raise Violation(10, f"a run that is {old.status} was cancelled")
        self._rests(self.ledgers[new.run_id], new)

    def paid(self, old: Head, new: Head) -> None:
        """A run's parent was told of its end."""
        self._rests(self.ledgers[new.run_id], new)

    def closed(self, old: Head, new: Head) -> None:
        """A cancelled run was settled for a worker that did not come back."""
        ledger = self.ledgers[new.run_id]
        if new.status is not Status.CANCELLED or old.status is not Status.CANCELLED:
            raise Violation(10, f"a run that is {old.status} was closed, it is {new.status} now")
        if self._clock() <= old.until:
            raise Violation(10, f"closed while the lease of {old.token} was in force")
        self._lose(ledger, old.token or "")
        self._journal(ledger, old, new, (), None)
        self._standing(ledger, new)
        ledger.moved_at = self._clock()
        self._rests(ledger, new)

    def blob_put(self, run_id: str, blob: Blob) -> None:
        """A blob was written: never other bytes under the same name. Property 1."""
        if self._blobs.setdefault((run_id, blob.name), blob.data) != blob.data:
            raise Violation(1, f"blob {blob.name} was overwritten by another")

    # --- parts of them ------------------------------------------------------------------------

    def _held(self, old: Head, token: str) -> None:
        if old.token != token:
            raise Violation(4, f"{token} wrote, but the lease is {old.token}'s")

    def _lose(self, ledger: Ledger, token: str) -> None:
        if self._clock() <= ledger.acting_until:
            raise Violation(4, f"the lease of {token} was taken in the middle of its act")
        if self._calm:
            raise Violation(4, f"the lease of {token} was lost in a calm world")
        ledger.lost.add(token)

    def _prompt(self, since: int, what: str) -> None:
        """In a calm world nothing waits for long that could happen since a time."""
        late = self._clock() - since
        if self._calm and late > PROMPT:
            raise Violation(3, f"{what} comes {late} ms late")

    def _journal(
        self, ledger: Ledger, old: Head, new: Head, meant: Iterable[Blob], token: str | None
    ) -> None:
        """What a write did to the journal is what happened, and all of it. Properties 1, 2, 5."""
        tried = ledger.in_hand.pop(token, None) if token is not None else None
        if new.journal == old.journal:
            if tried is not None:
                raise Violation(5, f"{token} wrote, and left out what it had done: {tried}")
            self._mail(ledger, old, new, [])
            return
        journal = journals.decode(new.journal, new.created_at)
        before = ledger.records
        read_records(ledger, journal, meant, lambda name: self._read(new.run_id, name))
        fresh = [record for effect, record in ledger.records.items() if effect not in before]
        for record in fresh:
            check_finished(ledger, record, new, tried, self._clock())
        check_open(ledger, journal, tried)
        if tried is not None and not tried.recorded:
            raise Violation(5, f"{token} wrote, and left out what it had done: {tried}")
        if journal.attempts - ledger.journal.attempts != (tried is not None):
            raise Violation(5, f"{journal.attempts} attempts after {ledger.journal.attempts}")
        moved = journal.position - ledger.journal.position
        steps = ledger.definition.steps
        through = [steps[ledger.journal.position + offset].ordinal for offset in range(moved)]
        passed = [one.ordinal for one in fresh if one.status is StepStatus.SUCCEEDED]
        if passed != through and not (new.status is Status.CANCELLED and moved == 0):
            raise Violation(2, f"moved past {through} when {passed} were recorded")
        if old.status is Status.CANCELLED and (moved or len(fresh) > 1):
            raise Violation(10, f"a cancelled run moved on: {fresh}")
        self._mail(ledger, old, new, passed)
        for record in ledger.journal.open:
            if steps[record.ordinal].kind is Kind.SLEEP and record.ordinal in passed:
                self._prompt(record.next_at or 0, f"the end of {steps[record.ordinal].key}")
        if moved:
            ledger.moved_on_at = self._clock()
        ledger.journal = journal

    def _mail(self, ledger: Ledger, old: Head, new: Head, passed: Iterable[int]) -> None:
        """Every wait that ended took the oldest signal of its name, and nothing else went."""
        left = dict(old.mail)
        for ordinal in passed:
            step = ledger.definition.steps[ordinal]
            if step.kind is not Kind.WAIT_FOR_SIGNAL:
                continue
            taken = next((key for key, one in left.items() if one.name == step.signal), None)
            output = content(ledger, ledger.records[ordinal, False].output)
            if taken is None or letter_content(ledger, left[taken]) != output:
                raise Violation(6, f"{step.key} took a signal that was not the next: {output!r}")
            if taken in ledger.consumed:
                raise Violation(6, f"signal {taken} was consumed twice")
            if step is ledger.step:  # it stood there before this write
                self._prompt(max(ledger.accepted[taken], ledger.moved_on_at), f"signal {taken}")
            ledger.consumed.add(taken)
            del left[taken]
        if list(left) != list(new.mail):
            raise Violation(6, f"mail {list(old.mail)} became {list(new.mail)}")

    def _standing(self, ledger: Ledger, new: Head) -> None:
        """The status fits the journal."""
        step, journal = ledger.step, ledger.journal
        if new.status is Status.SUCCEEDED:
            statuses = [record.status for record in ledger.records.values()]
            if statuses != [StepStatus.SUCCEEDED] * len(ledger.definition.steps):
                raise Violation(2, f"succeeded with {statuses}")
        elif new.status is Status.FAILED:
            failure = journal.failure
            told = failure is not None and (failure.ordinal, False) in ledger.records
            if not told and not ledger.broken:
                raise Violation(2, f"failed for no reason: {failure}")
        elif new.live:
            if step is None or journal.failure is not None:
                raise Violation(2, f"over, but {new.status}")
            if new.token is None and journal.opened(step.ordinal) is not None:
                expected = _STANDS.get(step.kind, Status.PENDING)
                if new.status is not expected:
                    raise Violation(2, f"{new.status} at {step.kind}")
                here = any(letter.name == step.signal for letter in new.mail.values())
                if step.kind is Kind.WAIT_FOR_SIGNAL and here:
                    raise Violation(6, f"parked although {step.signal} is there")

    def _rests(self, ledger: Ledger, new: Head) -> None:
        """The tick will look at whatever is not over (R15), and at nothing else."""
        ledger.head = new
        ledger.writes += 1
        now, wake_at = self._clock(), new.wake_at
        if wake_at is None:
            if new.live or new.token is not None:
                raise Violation(3, f"{new.status} without wake_at, token {new.token}")
            return
        if new.token is not None:
            latest = max(new.until, now)
        elif new.live:
            latest = max(new.ready_at, now + LEASE)
        else:
            raise Violation(3, f"{new.status} and at rest, but with wake_at")
        if wake_at > latest + CLOCK_MARGIN:
            raise Violation(3, f"wake_at comes {wake_at - latest} ms too late")

    # --- acts ---------------------------------------------------------------------------------

    def act_starts(self, act: Act, token: str, duration: int) -> Execution:
        """A performer is asked to act, for `duration` ms. Properties 4, 5, 10."""
        ledger = self.ledgers[act.run_id]
        head, now = ledger.head, self._clock()
        if head.token != token:
            raise Violation(4, f"{token} acts, but the lease is {head.token}'s")
        if now + act.timeout > head.until:
            raise Violation(4, f"an act of {act.timeout} ms, the lease ends in {head.until - now}")
        if now < ledger.acting_until:
            raise Violation(4, f"{token} acts in the middle of another act")
        if not head.live and head.status is not Status.CANCELLED:
            raise Violation(10, f"an act of a run that is {head.status}")
        step, opened = ledger.step, ledger.journal.opened(act.ordinal)
        begun = opened.attempt if opened is not None else 0
        if step is None or step.kind not in ACTION_KINDS or step.ordinal != act.ordinal:
            raise Violation(2, f"{act.step} acts, but the run stands at {step}")
        if act.attempt != begun + 1 or (token, act.ordinal, act.attempt) in ledger.acts:
            raise Violation(5, f"attempt {act.attempt} of {act.step}, {begun} are recorded")
        if opened is not None and now + SKEW < (opened.next_at or 0):
            raise Violation(5, f"{act.step} acts before its pause is over")
        if ledger.losses >= MAX_LOST_IN_A_ROW:
            raise Violation(5, f"{act.step} acts after {ledger.losses} lost workers")
        ledger.acts.add((token, act.ordinal, act.attempt))
        ledger.acting_until, ledger.may_act_until = now + duration, now + act.timeout
        execution = Execution(act.ordinal, act.attempt, token)
        ledger.executions.append(execution)
        return execution

    def act_ended(self, run_id: str, execution: Execution, outcome: Outcome | None) -> None:
        """The performer answered, or crashed (None)."""
        ledger = self.ledgers[run_id]
        ledger.acting_until = execution.ended_at = self._clock()
        execution.outcome = outcome
        if outcome is not None:
            ledger.in_hand[execution.token] = execution

    def waited(self, token: str) -> None:
        """A worker has waited for its crew."""

    # --- answers to callers -------------------------------------------------------------------

    def start_answered(self, head: Head, created: bool, key: str | None) -> None:
        """A caller was told of a run. Property 8."""
        if head.run_id not in self.ledgers:
            raise Violation(8, f"{head.run_id} was answered and does not exist")
        if key is not None and self._keys.get((head.workflow, key)) != head.run_id:
            raise Violation(8, f"{head.run_id} was answered for the key of another run")
        if created and head.run_id in self._creators:
            raise Violation(8, f"{head.run_id} was created twice")
        if created:
            self._creators.add(head.run_id)

    def control_answered(self, what: Literal["cancel", "deliver"], run_id: str, mail: str) -> None:
        """A caller was told that its cancel or its signal arrived."""
        ledger = self.ledgers[run_id]
        if what == "cancel" and ledger.head.status is not Status.CANCELLED:
            raise Violation(10, f"cancelled was answered, the run is {ledger.head.status}")
        if what == "deliver" and mail not in ledger.accepted:
            raise Violation(6, f"signal {mail} was answered and never stored")

    # --- time passes --------------------------------------------------------------------------

    def moves(self, period: int) -> None:
        """Every run that is not over moved since it could: within a lease and a tick. Property 3.

        In a calm world: within PROMPT.
        """
        now = self._clock()
        for run_id, ledger in self.ledgers.items():
            head = ledger.head
            if ledger.done:
                continue
            held = head.token is not None
            since = head.until + CLOCK_MARGIN if held else ledger.ready_since
            if not held:
                self._prompt(since, f"a claim of {run_id}")
            since = max(since, ledger.moved_at, self.last_fault)
            if now - since > LEASE + period + _SLACK:
                raise Violation(3, f"{run_id} has not moved for {now - since} ms")

    def at_rest(self) -> None:
        """Nothing happens any more: everything came to its end, and all of it is there."""
        for run_id, ledger in self.ledgers.items():
            head = ledger.head
            if not ledger.done:
                raise Violation(3, f"{run_id} is {head.status} and nobody will look at it")
            for name, data in ledger.referred.items():
                if self._read(run_id, name) != data:
                    raise Violation(1, f"blob {name} of {run_id} changed")
            for execution in ledger.executions:
                if not execution.recorded and execution.token not in ledger.lost:
                    rule = 10 if head.status is Status.CANCELLED else 5
                    raise Violation(rule, f"{execution} is not recorded, its lease was not lost")
            there = ledger.consumed | set(head.mail)
            if missing := [mail for mail in ledger.accepted if mail not in there]:
                raise Violation(6, f"signals {missing} of {run_id} are gone")
