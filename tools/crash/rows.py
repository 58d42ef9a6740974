"""What the checks have in common: verdicts, and the evidence by step."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tools.crash.evidence import Evidence, Execution

OBSERVED_KINDS = frozenset({"webhook", "function"})

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A property, how many cases of it were looked at, and where it was violated."""

    name: str
    cases: int
    violations: tuple[str, ...]


def verdict(name: str, violations: Iterator[str], cases: int) -> Verdict:
    """The verdict of a property."""
    return Verdict(name, cases, tuple(violations))


def observed(evidence: Evidence) -> Iterator[tuple[str, Row, list[Execution]]]:
    """The steps that were tried and that the outside world sees, with their executions."""
    executions = by_effect(evidence.executions)
    for run in evidence.runs.values():
        for row in run["steps"]:
            effect = f"{run['id']}:{row['key']}"
            ran = executions.get(effect, [])
            # What backs off when a sibling fails for good is cancelled, and has been executed.
            tried = row["status"] != "pending" and (ran or row["status"] != "cancelled")
            if row["kind"] in OBSERVED_KINDS and tried:
                yield effect, row, ran


def poisonous(evidence: Evidence) -> set[str]:
    """The effects that end their process."""
    return {
        f"{run_id}:{step}"
        for key, step in evidence.poison.items()
        for run_id in evidence.answers.get(key, ())
    }


def ahead(run: Any) -> Iterator[tuple[str, Row]]:
    """Each step's effect with the step that must be recorded before it begins."""
    before: Row | None = None
    failed: Row | None = None
    by_key = {row["key"]: row for row in run["steps"]}
    for row in run["steps"]:
        if row.get("status") == "failed" and not row.get("compensating"):
            failed = row
    for row in run["steps"]:
        if row.get("compensating"):
            earlier = failed
        elif "parent_step_id" in row:
            earlier = by_key[row["parent_step_id"]]
        else:
            earlier, before = before, row
        if earlier is not None and earlier["finished_at"]:
            yield f"{run['id']}:{row['key']}", earlier


def by_effect(executions: Sequence[Execution]) -> dict[str, list[Execution]]:
    """The executions of each effect, in order."""
    found: dict[str, list[Execution]] = defaultdict(list)
    for execution in sorted(executions, key=lambda execution: execution.began):
        found[execution.effect].append(execution)
    return found


def ms(at: str) -> int:
    """A time of the API, in ms since the epoch."""
    return round(datetime.fromisoformat(at).timestamp() * 1000)
