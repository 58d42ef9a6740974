"""Whether the engine does with a scenario what the model says."""

import dataclasses
import fnmatch
from itertools import groupby

from tests.model.reference import predict
from tests.model.stage import Stage, small
from tests.model.story import History, Path, Scenario

LONG = 10**12  # ms
_NAMES = (
    *("started", "ended", "status", "cursor", "output"),
    *("compensation", "compensating"),
)


class Disagreement(AssertionError):
    """The engine and the model differ."""


def compare(scenario: Scenario) -> dict[Path, History]:
    """The model's histories; Disagreement if the engine's are others."""
    expected = predict(scenario)
    with small(scenario.bounds):
        seen = Stage(scenario, budget_of(scenario)).play()
    found = [] if seen.keys() == expected.keys() else [f"runs: {set(expected) ^ set(seen)}"]
    for path in expected.keys() & seen.keys():
        found += [f"{path}: {text}" for text in _differences(expected[path], seen[path])]
    if found:
        raise Disagreement("\n".join(found))
    return expected


def budget_of(scenario: Scenario) -> int:
    """How long a worker stays. One that must go starts no child of a fan-out: then time differs."""
    steps = [step for one in scenario.workflows.values() for step in one.document["steps"]]
    brief = not any(step["kind"] == "fanout" for step in steps) and len(steps) % 2
    return 1 if brief else LONG


def _differences(expected: History, seen: History) -> list[str]:
    found = [
        f"{name}: the model says {getattr(expected, name)!r}, the engine {getattr(seen, name)!r}"
        for name in _NAMES
        if getattr(expected, name) != getattr(seen, name)
    ]
    if not _fits(expected.last_error, seen.last_error):
        found.append(f"last_error: {expected.last_error!r}, {seen.last_error!r}")
    if _batches(expected) != _batches(seen):
        found.append(f"attempts: {expected.attempts}, {seen.attempts}")
    rows = {row.key: row for row in seen.rows}
    if [row.key for row in expected.rows] != [row.key for row in seen.rows]:
        found.append(f"rows: {[row.key for row in expected.rows]}, {list(rows)}")
    for row in expected.rows:
        other = rows.get(row.key)
        if other is None:
            continue
        if not _fits(row.error, other.error):
            found.append(f"error of {row.key}: {row.error!r}, {other.error!r}")
        found += [
            f"{name} of {row.key}: the model says {getattr(row, name)!r}, "
            f"the engine {getattr(other, name)!r}"
            for name in (one.name for one in dataclasses.fields(row))
            if name not in ("error", "due") and getattr(row, name) != getattr(other, name)
        ]
    return found


def _batches(history: History) -> list[list[tuple[int, str, int]]]:
    """The attempts in order; of one fan-out those that began at the same time are a set."""
    parents = {row.key: row.parent for row in history.rows}

    def batch(attempt: tuple[int, str, int]) -> tuple[int, bool, str]:
        at, key, _ = attempt
        return at, key.startswith("compensate:"), parents.get(key) or key

    return [sorted(group) for _, group in groupby(history.attempts, key=batch)]


def _fits(pattern: str | None, text: str | None) -> bool:
    if pattern is None or text is None:
        return pattern is text
    return fnmatch.fnmatchcase(text, pattern)
