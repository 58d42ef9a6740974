"""Everything recorded of a run, read back: journal, pages, outputs."""

from collections.abc import Mapping

from stepwell_engine.core import journal as journals
from stepwell_engine.core import jsonvalue
from stepwell_engine.core.definition import Definition, Step
from stepwell_engine.core.journal import Joined, Journal, Output, Record, Stored
from stepwell_engine.core.run import Head, StepStatus
from stepwell_engine.ports import Clock, Runs
from stepwell_engine.service.repeat import repeat

Records = Mapping[tuple[int, bool], Record]
"""By ordinal, and whether it is the step's compensation."""


def journal_of(head: Head) -> Journal:
    """The journal in a head."""
    return journals.decode(head.journal, head.created_at)


class RunReader:
    """Reads what the head refers to. LookupError for a blob that is gone."""

    def __init__(self, runs: Runs, clock: Clock) -> None:
        self._runs = runs
        self._clock = clock

    def records(self, head: Head, journal: Journal) -> Records:
        """All records of a run."""
        paged = [
            record
            for page in journal.pages
            for record in journals.decode_page(self.blob(head, page.blob), head.created_at)
        ]
        return {record.effect: record for record in (*paged, *journal.records, *journal.open)}

    def run_output(self, head: Head, definition: Definition, records: Records) -> bytes | None:
        """The run's: that of the last top-level step that produced one, compensations apart."""
        for step in reversed(definition.steps):
            record = records.get((step.ordinal, False))
            if record is not None and record.output is not None:
                return self.output(head, definition, records, step, record.output)
        return None

    def output(
        self, head: Head, definition: Definition, records: Records, step: Step, output: Output
    ) -> bytes | None:
        """A step's output as compact JSON."""
        match output:
            case Stored(blob):
                return self.blob(head, blob)
            case Joined():
                return self._joined(head, definition, records, step)
            case inline:
                return inline

    def blob(self, head: Head, name: str) -> bytes:
        """A blob of the run."""
        data = repeat(self._clock, lambda: self._runs.blob(head.run_id, name))
        if data is None:
            raise LookupError(f'run "{head.run_id}" refers to a blob "{name}" that is gone')
        return data

    def _joined(self, head: Head, definition: Definition, records: Records, step: Step) -> bytes:
        """The outputs of a fan-out's children, by key; null for a child without one."""
        fanout = definition.steps[definition.owners[step.ordinal] - 1]
        members = []
        for child in fanout.children:
            record = records.get((child.ordinal, False))
            output = None if record is None else record.output
            value = (
                b"null"
                if output is None
                else self.output(head, definition, records, child, output) or b"null"
            )
            members.append(jsonvalue.encode(child.key) + b":" + value)
        return b"{" + b",".join(members) + b"}"


def live_children(journal: Journal) -> list[str]:
    """The child runs that a run waits for, or is about to start."""
    begun = {StepStatus.PENDING, StepStatus.WAITING}
    return [one.child for one in journal.open if one.child is not None and one.status in begun]
