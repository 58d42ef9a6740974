"""What happened in a run, in words: a test checks what its scenarios have reached."""

from collections.abc import Iterator, Mapping

from tests.model.story import History, Path, Row


def facts(runs: Mapping[Path, History]) -> Iterator[str]:
    """What happened in the runs of a scenario."""
    for path, run in runs.items():
        yield f"a run {run.status}"
        yield f"compensation: {run.compensation}"
        yield f"depth {len(path)}"
        if path and path[-1][1] > 1:
            yield "a new child is started"
        if path:
            yield from _of_child(run, runs[path[:-1]])
        for row in run.rows:
            yield from _of_row(row)
        yield from _of_siblings({row.key: row for row in run.rows})


def _of_child(child: History, parent: History) -> Iterator[str]:
    if child.ended > parent.ended:
        yield "a child outlives its parent"
    if child.status == parent.status == "cancelled" and child.ended == parent.ended:
        yield "a child is cancelled with its parent"


def _of_row(row: Row) -> Iterator[str]:
    yield f"{row.kind} {row.status}"
    if row.code is not None:
        yield row.code
    if row.parent is not None and row.status == "cancelled":
        yield "a child backs off no more" if row.attempt else "a child never starts"
    if row.kind == "wait_for_signal" and row.status == "succeeded":
        yield "an early signal" if row.finished == row.started else "a signal that was waited for"
    if row.attempt > 12:
        yield "the longest backoff"
    if row.error is not None and row.status == "cancelled" and row.parent is None:
        yield "a cancel while a step backs off"


def _of_siblings(rows: Mapping[str, Row]) -> Iterator[str]:
    for row in rows.values():
        if row.parent is None:
            continue
        siblings = [one for one in rows.values() if one.parent == row.parent and one is not row]
        for failed in (one for one in siblings if one.status == "failed"):
            if row.status == "succeeded" and (row.finished or 0) > (failed.finished or 0):
                yield "a sibling succeeds late"
                if f"compensate:{row.key}" in rows:
                    yield "a late success is compensated"
