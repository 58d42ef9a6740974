"""Everything recorded of a run, read back: journal, pages, outputs."""

from collections.abc import Iterable, Sequence

from stepwell_engine.core.run.head import Head
from stepwell_engine.core.run.journal import Journal, PageRef
from stepwell_engine.core.run.journal_codec import JournalCodec, decode_index
from stepwell_engine.core.run.keys import UNNAMED, StepKey, StepKeys
from stepwell_engine.core.run.program import Program
from stepwell_engine.core.run.records import Joined, Output, Stored
from stepwell_engine.core.run.status import StepStatus
from stepwell_engine.core.run.view import Records
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.ports import Clock, Runs
from stepwell_engine.service.retry_unavailable import retry_unavailable


def codec_of(head: Head, keys: StepKeys) -> JournalCodec:
    """What encodes and decodes the journal of a run."""
    return JournalCodec(head.created_at, keys)


def journal_of(head: Head, keys: StepKeys = UNNAMED) -> Journal:
    """The journal in a head. Without the program's keys its records have only numbers."""
    return codec_of(head, keys).decode(head.journal)


class RunReader:
    """Reads what heads refer to, for one look: it keeps what it has read.

    LookupError for a blob that is gone.
    """

    def __init__(self, runs: Runs, clock: Clock) -> None:
        self._runs = runs
        self._clock = clock
        self._known: dict[tuple[str, str], bytes] = {}

    def records(self, head: Head, journal: Journal, keys: StepKeys) -> Records:
        """All records of a run."""
        codec = codec_of(head, keys)
        paged = [
            record
            for page in self._pages(head, journal)
            for record in codec.decode_page(self.blob(head, page.blob))
        ]
        return {record.key: record for record in (*paged, *journal.records, *journal.open)}

    def run_output(self, head: Head, program: Program, records: Records) -> bytes | None:
        """The run's output as compact JSON; None where no step has produced one."""
        key = program.output_of(records)
        return None if key is None else self.output(head, program, records, key)

    def output(self, head: Head, program: Program, records: Records, key: StepKey) -> bytes | None:
        """A step's output as compact JSON."""
        match records[key].output:
            case Stored(blob):
                return self.blob(head, blob)
            case Joined():
                return self._joined(head, program, records, key)
            case inline:
                return inline

    def _pages(self, head: Head, journal: Journal) -> Sequence[PageRef]:
        """The pages that hold a run's records, read: one call for each level of index pages."""
        pages: Sequence[PageRef] = journal.pages
        self._fetch_new(head, [page.blob for page in pages])
        while any(page.level for page in pages):
            pages = [
                below
                for page in pages
                for below in (decode_index(self.blob(head, page.blob)) if page.level else (page,))
            ]
            self._fetch_new(head, [page.blob for page in pages])
        return pages

    def blob(self, head: Head, name: str) -> bytes:
        """A blob of the run."""
        self._fetch_new(head, [name])
        return self._known[head.run_id, name]

    def fetch(self, head: Head, outputs: Iterable[Output | None]) -> None:
        """Read at once what will be asked for one by one."""
        names = [output.blob for output in outputs if isinstance(output, Stored)]
        self._fetch_new(head, names)

    def _fetch_new(self, head: Head, names: Iterable[str]) -> None:
        new = [name for name in names if (head.run_id, name) not in self._known]
        if not new:
            return
        found = retry_unavailable(self._clock, lambda: self._runs.blobs(head.run_id, new))
        for name in new:
            if name not in found:
                raise LookupError(f'run "{head.run_id}" refers to a blob "{name}" that is gone')
            self._known[head.run_id, name] = found[name]

    def _joined(self, head: Head, program: Program, records: Records, key: StepKey) -> bytes:
        """The outputs of a fan-out's children, by key; null for a child without one."""
        children = program.joined(key)
        self.fetch(head, [records[child].output for child in children if child in records])
        members = []
        for child in children:
            output = self.output(head, program, records, child) if child in records else None
            value = b"null" if output is None else output
            members.append(jsonvalue.encode(child) + b":" + value)
        return b"{" + b",".join(members) + b"}"


def live_children(journal: Journal) -> list[str]:
    """The child runs that a run waits for, or is about to start."""
    begun = {StepStatus.PENDING, StepStatus.WAITING}
    return [one.child for one in journal.open if one.child is not None and one.status in begun]
