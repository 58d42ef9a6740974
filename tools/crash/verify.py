"""The checks of the crash script: evidence in, violations out. Pure."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tools.crash.blame import blame
from tools.crash.evidence import Evidence, Execution, Kill
from tools.crash.rows import Row, Verdict, ahead, by_effect, ms, observed, poisonous, verdict

SETTLED = 4_000  # ms in which an outcome in hand is recorded, once the store takes it


def verify(evidence: Evidence) -> list[Verdict]:
    """Every property."""
    return [
        verdict("every run ends as it should", _ends(evidence), len(evidence.expected)),
        verdict("one idempotency key, one run", _keys(evidence), len(evidence.expected)),
        verdict("every execution is of a step that its run reached", *_known(evidence)),
        verdict("every recorded attempt was executed", *_executed(evidence)),
        verdict("nothing runs again after it was recorded", *_final(evidence)),
        verdict("a step runs again only if its host was lost", *_repeats(evidence)),
        verdict("steps run one after the other", *_order(evidence)),
        verdict("a recorded outcome never changes", *_unchanged(evidence)),
        verdict("every message is accounted for", *_messages(evidence)),
        *blame(evidence),
    ]


def repeats(evidence: Evidence) -> int:
    """How many executions came on top of the recorded attempts."""
    guilty = poisonous(evidence)
    return sum(
        max(0, len(runs) - row["attempt"])
        for effect, row, runs in observed(evidence)
        if effect not in guilty
    )


def interrupted(evidence: Evidence) -> int:
    """How many executions were in flight at a kill, as far as their own log shows."""
    count, previous = 0, 0
    for kill in evidence.kills:
        count += sum(
            previous < execution.began <= kill.gone
            and (execution.ended is None or execution.ended >= kill.at)
            for execution in evidence.executions
        )
        previous = kill.gone
    return count


def _ends(evidence: Evidence) -> Iterator[str]:
    for key, status in evidence.expected.items():
        found = [evidence.runs.get(run_id) for run_id in set(evidence.answers.get(key, ()))]
        if not found:
            yield f"{key}: there is no run"
        for run in found:
            if run is None or run["status"] != status:
                shown = "missing" if run is None else f"{run['status']} ({run['last_error']})"
                yield f"{key}: the run is {shown}, not {status}"


def _keys(evidence: Evidence) -> Iterator[str]:
    for key in evidence.expected:
        answered = set(evidence.answers.get(key, ()))
        if len(answered) != 1:
            yield f"{key}: starts were answered with {len(answered)} runs"
    known = {run_id for answered in evidence.answers.values() for run_id in answered}
    for run_id in sorted(known.symmetric_difference(evidence.listed)):
        yield f"{run_id}: {'not listed' if run_id in known else 'listed, but nobody started it'}"
    if len(evidence.listed) != len(set(evidence.listed)):
        yield "a run is listed twice"


def _known(evidence: Evidence) -> tuple[Iterator[str], int]:
    effects = {effect for effect, _, _ in observed(evidence)}
    strangers = (
        f"{execution.effect} was executed at {execution.began}, but its run has no such step"
        for execution in evidence.executions
        if execution.effect not in effects
    )
    return strangers, len(evidence.executions)


def _executed(evidence: Evidence) -> tuple[Iterator[str], int]:
    steps = list(observed(evidence))
    violations = (
        f"{effect}: {row['attempt']} attempts are recorded, {len(runs)} executions seen"
        for effect, row, runs in steps
        if len(runs) < row["attempt"]
    )
    return violations, sum(row["attempt"] for _, row, _ in steps)


def _final(evidence: Evidence) -> tuple[Iterator[str], int]:
    """Against every record that was ever seen, not only the one that stands at the end."""
    executions = by_effect(evidence.executions)
    records = {
        (f"{run['id']}:{row['key']}", ms(row["finished_at"]))
        for run in evidence.runs.values()
        for row in run["steps"]
        if row["finished_at"]
    } | {
        (f"{seen.run_id}:{seen.row['key']}", ms(seen.row["finished_at"]))
        for seen in evidence.sightings
    }
    violations = (
        f"{effect} was recorded at {recorded} and ran again at {execution.began}"
        for effect, recorded in sorted(records)
        for execution in executions.get(effect, ())
        if execution.began > recorded
    )
    return violations, len(records)


def _repeats(evidence: Evidence) -> tuple[Iterator[str], int]:
    # Of what ends its process only the last attempt is recorded: see blame.
    guilty = poisonous(evidence)
    steps = [step for step in observed(evidence) if step[0] not in guilty]
    violations = (
        f"{effect}: {len(runs)} executions, {row['attempt']} attempts recorded, "
        f"{explained} kills in the middle"
        for effect, row, runs in steps
        if len(runs) - row["attempt"] > (explained := _kills_within(evidence, row, runs))
    )
    return violations, len(steps)


def _kills_within(evidence: Evidence, row: Row, runs: list[Execution]) -> int:
    """The kills that may have hit an execution of this step before its outcome was recorded."""
    finished = ms(row["finished_at"]) if row["finished_at"] else None
    count, previous = 0, 0
    for kill in evidence.kills:
        lost = any(
            previous < execution.began <= kill.gone and not _settled(evidence, execution, kill)
            for execution in runs
        )
        if kill.how.repeats and lost and (finished is None or finished >= kill.at):
            count += 1
        previous = kill.gone
    return count


def _settled(evidence: Evidence, execution: Execution, kill: Kill) -> bool:
    """Whether the outcome was recorded before the kill: the store did not refuse it for long."""
    since = kill.at - SETTLED
    refused = any(began < kill.at and ended > since for began, ended in evidence.refusals)
    return execution.ended is not None and execution.ended < since and not refused


def _order(evidence: Evidence) -> tuple[Iterator[str], int]:
    executions = by_effect(evidence.executions)
    pairs = [
        (effect, earlier["key"], ms(earlier["finished_at"]))
        for run in evidence.runs.values()
        for effect, earlier in ahead(run)
    ]
    violations = (
        f"{effect} began at {execution.began}, before {earlier} was recorded at {recorded}"
        for effect, earlier, recorded in pairs
        for execution in executions.get(effect, ())
        if execution.began < recorded
    )
    return violations, len(pairs)


def _unchanged(evidence: Evidence) -> tuple[Iterator[str], int]:
    final = {(run["id"], row["key"]): row for run in evidence.runs.values() for row in run["steps"]}
    violations = (
        f"{seen.run_id}:{seen.row['key']} was shown as {seen.row}, later as "
        f"{final.get((seen.run_id, seen.row['key']))}"
        for seen in evidence.sightings
        if final.get((seen.run_id, seen.row["key"])) != seen.row
    )
    return violations, len(evidence.sightings)


def _messages(evidence: Evidence) -> tuple[Iterator[str], int]:
    sent = [
        (row["output"]["msg_id"], f"{run['id']}:{row['key']}")
        for run in evidence.runs.values()
        for row in run["steps"]
        if row["kind"] == "enqueue" and row["status"] == "succeeded"
    ]
    return _message_violations(evidence, sent), len(evidence.messages)


def _message_violations(evidence: Evidence, sent: list[tuple[Any, str]]) -> Iterator[str]:
    queued = [message["id"] for message in evidence.messages]
    owner: dict[Any, str] = {}
    for number, effect in sent:
        if queued.count(number) != 1:
            yield f"{effect} sent message {number}, which is {queued.count(number)} times there"
        if number in owner:
            yield f"{effect} and {owner[number]} both recorded message {number}"
        owner[number] = effect
    # A kill between sending and recording leaves one more message behind, at most one a run.
    extra: dict[Kill | None, list[int]] = defaultdict(list)
    for message in evidence.messages:
        if message["id"] not in owner:
            at = ms(message["sent_at"])
            kill = next((kill for kill in evidence.kills if at <= kill.gone), None)
            extra[kill].append(at)
    for ended_by, times in extra.items():
        possible = sum(_sending(run, ended_by, max(times)) for run in evidence.runs.values())
        if len(times) > possible:
            yield (
                f"{len(times)} messages that no run recorded were sent before "
                f"{ended_by or 'the end, after the last kill'}, which hit {possible} runs there"
            )


def _sending(run: Any, kill: Kill | None, at: int) -> bool:
    """Whether a run may have been sending a message when the kill came."""
    if kill is None or not kill.how.repeats:
        return False
    for earlier, row in zip(run["steps"], run["steps"][1:], strict=False):
        if row["kind"] == "enqueue" and earlier["finished_at"]:
            recorded = row["finished_at"] and ms(row["finished_at"]) < kill.at
            return ms(earlier["finished_at"]) <= at and not recorded
    return False
