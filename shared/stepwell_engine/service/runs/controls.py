"""What a user does to a run: cancel it, send it a signal."""

import hashlib
import logging
from dataclasses import dataclass
from functools import partial

from stepwell_engine import limits
from stepwell_engine.core.declared.fields import SIGNAL_NAME
from stepwell_engine.core.run.head import Blob, Head
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.core.values.units import EpochMs, ProjectRef, RunId, WorkflowName
from stepwell_engine.errors import Problem, StoreError
from stepwell_engine.ports import Clock, Delivered, Dispatcher, Done, Ids, Runs
from stepwell_engine.service.retry_unavailable import retry_unavailable
from stepwell_engine.service.runs.children import Children, Programs
from stepwell_engine.service.runs.starts import check_key

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal that a run has or had in its inbox. `created_at`: when it came first."""

    id: str
    run_id: RunId
    name: str
    created_at: EpochMs


class Controls:
    """Direct updates of a run, without its lease."""

    def __init__(
        self, runs: Runs, programs: Programs, dispatcher: Dispatcher, clock: Clock, ids: Ids
    ) -> None:
        self._runs = runs
        self._children = Children(runs, programs, dispatcher, clock)
        self._dispatcher = dispatcher
        self._clock = clock
        self._ids = ids

    def cancel(
        self, project: ProjectRef, workflow: WorkflowName, run_id: RunId, cascade: bool = False
    ) -> Head:
        """Cancel a live run, and with `cascade` the child runs that it waits for.

        Problem: not_found, run_finished.
        """
        head = self._cancel(self._find(project, workflow, run_id), cascade)
        if head.notify_pending:
            self._dispatcher.hint(about_run(run_id, project))
        if cascade:
            try:
                self._children.notify(head)
            except StoreError as error:  # or a child's document is of a newer format
                log.warning("run %s: its children are still to be cancelled: %s", run_id, error)
        return head

    def _cancel(self, found: Head, cascade: bool) -> Head:
        run_id = found.run_id
        tries = 0

        def once(generation: int = found.generation) -> Head:
            nonlocal tries
            tries += 1
            now = self._clock.now()
            written = self._runs.cancel(run_id, now, cascade, generation)
            if isinstance(written, Done):
                return written.head
            if written.head is None:
                raise Problem("not_found", f'there is no run "{run_id}" of this workflow')
            met = written.head
            if met.live:  # revived since it was read
                return once(met.generation)
            if tries > 1 and met.status == "cancelled" and (met.cascade or not cascade):
                return met  # an earlier try, unanswered, had succeeded
            raise _finished(met)

        return retry_unavailable(self._clock, once)

    def signal(
        self,
        project: ProjectRef,
        workflow: WorkflowName,
        run_id: RunId,
        name: str,
        payload: bytes,
        idempotency_key: str | None = None,
    ) -> Signal:
        """Put a signal into a run's inbox, once for a name and an idempotency key.

        `payload`: compact JSON.

        Without a key the store is asked once: an answer that got lost is Unavailable, and
        whoever repeats the call sends another signal.
        Problem: not_found, run_finished, invalid_request, payload_too_large, too_many_signals.
        """
        _check(name, payload, idempotency_key)
        head = self._find(project, workflow, run_id)
        now = self._clock.now()
        delivery = self._ids.run_id()
        # A name contains no colon: two names never share a key.
        key = None if idempotency_key is None else f"{name}:{idempotency_key}"
        signal_id = delivery if key is None else _keyed_id(run_id, key)
        inline = len(payload) <= limits.INLINE_MESSAGE
        # Named after this delivery: another with the same key may bring another payload.
        blob = None if inline else Blob(f"m.{delivery}", payload)
        body = payload if inline else jsonvalue.encode(len(payload))
        message = InboxMessage(
            MessageKind.SIGNAL, name, now, body, None if blob is None else blob.name
        )
        deliver = partial(self._runs.deliver, run_id, signal_id, message, now, blob, key, head)
        delivered = deliver() if key is None else retry_unavailable(self._clock, deliver)
        if isinstance(delivered, Delivered):
            if delivered.wakes:
                self._dispatcher.hint(about_run(run_id, project))
            return Signal(signal_id, run_id, name, delivered.at)
        if delivered.head is None or not delivered.head.live:
            raise _finished(delivered.head or head)
        raise Problem(
            "too_many_signals",
            f"{limits.MAX_PENDING_SIGNALS} signals of this run are not consumed yet, "
            "the most a run may have",
        )

    def _find(self, project: ProjectRef, workflow: WorkflowName, run_id: RunId) -> Head:
        head = retry_unavailable(self._clock, lambda: self._runs.get(run_id))
        if head is None or head.project != project or head.workflow != workflow:
            raise Problem("not_found", f'there is no run "{run_id}" of workflow "{workflow}"')
        return head


def _keyed_id(run_id: RunId, key: str) -> str:
    """The same id for the same name and key: a UUIDv8, made of a hash."""
    digest = hashlib.sha256(f"{run_id}:{key}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def _check(name: str, payload: bytes, key: str | None) -> None:
    violation = SIGNAL_NAME.violation("signal", name)
    if violation is not None:
        raise Problem("invalid_request", violation)
    check_key(key)
    if len(payload) > limits.MAX_SIGNAL_PAYLOAD:
        raise Problem(
            "payload_too_large",
            f"the signal's payload has {len(payload):,} bytes of JSON, "
            f"at most {limits.MAX_SIGNAL_PAYLOAD:,} are allowed",
        )


def _finished(head: Head) -> Problem:
    return Problem(
        "run_finished",
        f'run "{head.run_id}" is {head.status} already; only a live run can be changed',
        run_status=str(head.status),
    )
