"""What a user does to a run: cancel it, send it a signal."""

from stepwell_engine import limits
from stepwell_engine.core.run import Blob, Head, Mail
from stepwell_engine.errors import Problem
from stepwell_engine.ports import Clock, Dispatcher, Done, Runs
from stepwell_engine.service.repeat import repeat


class Controls:
    """Direct updates of a run, without its lease."""

    def __init__(self, runs: Runs, dispatcher: Dispatcher, clock: Clock) -> None:
        self._runs = runs
        self._dispatcher = dispatcher
        self._clock = clock

    def cancel(self, project: str, workflow: str, run_id: str) -> Head:
        """Cancel a live run. Problem: not_found, run_finished."""
        self._find(project, workflow, run_id)
        tries = 0

        def once() -> Head:
            nonlocal tries
            tries += 1
            now = self._clock.now()
            written = self._runs.cancel(run_id, now)
            if isinstance(written, Done):
                return written.head
            if written.head is None:
                raise Problem("not_found", f'there is no run "{run_id}" of this workflow')
            if tries > 1 and written.head.status == "cancelled":
                return written.head  # an earlier try, unanswered, had succeeded
            raise _finished(written.head)

        return repeat(self._clock, once)

    def deliver(
        self, project: str, workflow: str, run_id: str, mail_id: str, name: str, payload: bytes
    ) -> Head:
        """Put a signal into a live run's mailbox. `payload` is compact JSON.

        Problem: not_found, run_finished, payload_too_large, too_many_signals.
        """
        head = self._find(project, workflow, run_id)
        if len(payload) > limits.MAX_SIGNAL_PAYLOAD:
            raise Problem(
                "payload_too_large",
                f"the signal's payload has {len(payload)} bytes of JSON, "
                f"at most {limits.MAX_SIGNAL_PAYLOAD} are allowed",
            )
        now = self._clock.now()
        inline = len(payload) <= limits.INLINE_MAIL
        blob = None if inline else Blob(f"m.{mail_id}", payload)
        mail = Mail("signal", name, now, payload if inline else None, blob.name if blob else None)
        written = self._runs.deliver(run_id, mail_id, mail, now, blob)
        if isinstance(written, Done):
            self._dispatcher.hint(run_id, project)
            return written.head
        if written.head is None or not written.head.live:
            raise _finished(written.head or head)
        if mail_id in written.head.mail:
            return written.head
        raise Problem(
            "too_many_signals",
            f"{limits.MAX_PENDING_SIGNALS} signals of this run are not consumed yet, "
            "the most a run may have",
        )

    def _find(self, project: str, workflow: str, run_id: str) -> Head:
        head = repeat(self._clock, lambda: self._runs.get(run_id))
        if head is None or head.project != project or head.workflow != workflow:
            raise Problem("not_found", f'there is no run "{run_id}" of workflow "{workflow}"')
        return head


def _finished(head: Head) -> Problem:
    return Problem(
        "run_finished",
        f'run "{head.run_id}" is {head.status} already; only a live run can be changed',
        run_status=str(head.status),
    )
