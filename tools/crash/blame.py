"""The checks of blame (R14): who ends its process fails of that, and nobody else does. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from tools.crash.evidence import Evidence, Execution, How, Kill
from tools.crash.rows import Verdict, ahead, by_effect, ms, observed, poisonous, verdict

SUSPECT = 3  # hosts that a run loses before its steps run in processes of their own
GIVEN_UP = 5  # of these, that it loses in a row
STOP = 16_000  # ms: 10 s for what is in flight, 5 s to let go of it


def blame(evidence: Evidence) -> list[Verdict]:
    """Every property."""
    guilty = poisonous(evidence)
    steps = sum(len(run["steps"]) for run in evidence.runs.values())
    stops = [kill for kill in evidence.kills if kill.how in (How.STOPPED, How.HURRIED)]
    own = [kill for kill in evidence.kills if kill.how is How.ITSELF]
    return [
        verdict("only what ends its process is blamed", _innocent(evidence, guilty), steps),
        verdict(
            "what ends its process fails after 3 hosts and 5 processes",
            _guilty(evidence, guilty),
            len(guilty),
        ),
        verdict("a host ends by itself only of poison", _own(evidence, guilty), len(own)),
        verdict("a host that is told to stop stops", _stops(stops), len(stops)),
    ]


def _innocent(evidence: Evidence, guilty: set[str]) -> Iterator[str]:
    for run in evidence.runs.values():
        for row in run["steps"]:
            effect = f"{run['id']}:{row['key']}"
            if row.get("code") == "worker_lost" and effect not in guilty:
                yield f"{effect} failed as if it had ended its process: {row['error']}"


def _guilty(evidence: Evidence, guilty: set[str]) -> Iterator[str]:
    steps = {effect: (row, executions) for effect, row, executions in observed(evidence)}
    reached = {
        effect: ms(earlier["finished_at"])
        for run in evidence.runs.values()
        for effect, earlier in ahead(run)
    }
    for effect in sorted(guilty):
        if effect not in steps:
            yield f"{effect} was never tried"
            continue
        row, executions = steps[effect]
        if (row["status"], row.get("code")) != ("failed", "worker_lost"):
            yield f"{effect} is {row['status']} ({row.get('code')}), although it ends its process"
        yield from _losses(evidence.kills, effect, row, executions, reached.get(effect, 0))


def _losses(
    kills: Sequence[Kill], effect: str, row: Any, executions: Sequence[Execution], reached: int
) -> Iterator[str]:
    hosts = {kill.process for kill in kills}
    together = [one for one in executions if one.process in hosts]
    alone = [one for one in executions if one.process not in hosts]
    if not alone:
        yield f"{effect} never ran alone"
        return
    first = alone[0].began
    lost = sum(kill.how.loses and reached <= kill.gone and kill.at <= first for kill in kills)
    if lost < SUSPECT:
        yield f"{effect} ran alone although only {lost} hosts had been lost since it was reached"
    if len(together) > SUSPECT:
        yield f"{effect} ended {len(together)} hosts"
    if any(one.began > first for one in together):
        yield f"{effect} ran in a host after it had run alone"
    finished = ms(row["finished_at"]) if row["finished_at"] else None
    unrecorded = _in_hand(kills, alone, finished)
    if not GIVEN_UP <= len(alone) <= GIVEN_UP + unrecorded:
        yield (
            f"{effect} ended {len(alone)} processes in which it was alone, of which "
            f"{unrecorded} may not have been recorded"
        )


def _in_hand(kills: Sequence[Kill], executions: Sequence[Execution], finished: int | None) -> int:
    """In how many lives an execution may have been lost together with its host."""
    count, previous = 0, 0
    for kill in kills:
        in_this_life = any(previous < one.began <= kill.gone for one in executions)
        count += kill.how.repeats and in_this_life and (finished is None or finished >= kill.at)
        previous = kill.gone
    return count


def _own(evidence: Evidence, guilty: set[str]) -> Iterator[str]:
    ran = by_effect(evidence.executions)
    ended = {one.process for effect in guilty for one in ran.get(effect, ())}
    for kill in evidence.kills:
        if kill.how is How.ITSELF and kill.process not in ended:
            yield f"the host {kill.process} ended by itself at {kill.gone} with code {kill.code}"


def _stops(stops: Sequence[Kill]) -> Iterator[str]:
    for kill in stops:
        if kill.gone - kill.at > STOP:
            yield f"the host {kill.process} took {kill.gone - kill.at} ms to stop"
