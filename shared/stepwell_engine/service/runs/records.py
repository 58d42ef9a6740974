"""Everything recorded of a run, read back: journal, pages, outputs."""

from collections.abc import Iterable, Mapping, Sequence

from stepwell_engine.core.declared.definition import Definition, Step
from stepwell_engine.core.run import journal_codec
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal
from stepwell_engine.core.run.records import Joined, Output, Record, Stored
from stepwell_engine.core.run.status import StepStatus
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.ports import Clock, Runs
from stepwell_engine.service.retry_unavailable import retry_unavailable

Records = Mapping[tuple[int, bool], Record]
"""By ordinal, and whether it is the step's compensation."""


def journal_of(head: Head) -> Journal:
    """The journal in a head."""
    return journal_codec.decode(head.journal, head.created_at)


class RunReader:
    """Reads what heads refer to, for one look: it keeps what it has read.

    LookupError for a blob that is gone.
    """

    def __init__(self, runs: Runs, clock: Clock) -> None:
        self._runs = runs
        self._clock = clock
        self._known: dict[tuple[str, str], bytes] = {}

    def records(self, head: Head, journal: Journal) -> Records:
        """All records of a run."""
        paged = [
            record
            for page in journal.pages
            for record in journal_codec.decode_page(self.blob(head, page.blob), head.created_at)
        ]
        return {record.action_key: record for record in (*paged, *journal.records, *journal.open)}

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
        if (head.run_id, name) not in self._known:
            self._fetch(head, [name])
        return self._known[head.run_id, name]

    def fetch(self, head: Head, outputs: Iterable[Output | None]) -> None:
        """Read at once what will be asked for one by one."""
        names = [output.blob for output in outputs if isinstance(output, Stored)]
        unknown = [name for name in names if (head.run_id, name) not in self._known]
        if unknown:
            self._fetch(head, unknown)

    def _fetch(self, head: Head, names: Sequence[str]) -> None:
        found = retry_unavailable(self._clock, lambda: self._runs.blobs(head.run_id, names))
        for name in names:
            if name not in found:
                raise LookupError(f'run "{head.run_id}" refers to a blob "{name}" that is gone')
            self._known[head.run_id, name] = found[name]

    def _joined(self, head: Head, definition: Definition, records: Records, step: Step) -> bytes:
        """The outputs of a fan-out's children, by key; null for a child without one."""
        fanout = definition.steps[definition.owners[step.ordinal] - 1]
        known = {child.ordinal: records.get((child.ordinal, False)) for child in fanout.children}
        outputs = {at: None if one is None else one.output for at, one in known.items()}
        self.fetch(head, outputs.values())
        members = []
        for child in fanout.children:
            output = outputs[child.ordinal]
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
