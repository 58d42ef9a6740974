"""Defects made by hand: with each of them the engine disagrees with the model."""

import inspect
import sys
import textwrap
from collections.abc import Sequence
from functools import cache
from types import FunctionType, ModuleType
from typing import Final, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from stepwell_engine.core.declared import (
    actions,
    compensate,
    decide,
    fanout,
    program,
    settle,
    subworkflow,
    transitions,
    waits,
)
from stepwell_engine.core.run import head, overflow, retry
from stepwell_engine.core.run import transitions as run_transitions
from stepwell_engine.service.runs import children, controls, run_reader
from stepwell_engine.service.worker import leased_run
from tests.model.agreement import Disagreement, compare
from tests.model.scenarios import scenarios
from tests.model.story import Scenario
from tests.model.themes import THEMES
from tests.model.timeline import Endless

WITHIN: Final = 250  # scenarios


class Edit(NamedTuple):
    """A piece of a function's text, or a method's, and what stands there instead."""

    module: ModuleType
    name: str
    old: str
    new: str


MUTANTS: Final[dict[str, tuple[str, Sequence[Edit]]]] = {
    "compensations run forwards": (
        "saga",
        (
            Edit(compensate, "compensate", "= journal.position - 1 if", "= 0 if"),
            Edit(compensate, "compensate", "while index >= 0:", "while index < journal.position:"),
            Edit(compensate, "compensate", "index -= 1", "index += 1"),
            Edit(
                compensate,
                "finish_compensation",
                "compensating=index - 1",
                "compensating=index + 1",
            ),
        ),
    ),
    "the failed step is compensated too": (
        "saga",
        [Edit(compensate, "compensate", "= journal.position - 1 if", "= journal.position if")],
    ),
    "children of the fan-out that failed are not compensated": (
        "saga",
        [
            Edit(
                compensate,
                "_succeeded",
                "return bool(journal.children_done & bit(top, step))",
                "return False",
            )
        ],
    ),
    "one retry for all children": (
        "fanout",
        [
            Edit(
                settle,
                "settle",
                "if attempts_left(definition.by_key[attempt.step], record, outcome):",
                "if attempts_left(definition.by_key[attempt.step], record, outcome) "
                "and not any(\n            one.key != attempt.step "
                "and one.next_at for one in journal.open\n"
                "        ):",
            )
        ],
    ),
    "one attempt more than the budget": (
        "steps",
        [Edit(transitions, "attempts_left", "< step.max_attempts", "<= step.max_attempts")],
    ),
    "a join's output lacks what has none": (
        "join",
        [
            Edit(
                run_reader,
                "RunReader._joined",
                "members.append(",
                'value == b"null" or members.append(',
            )
        ],
    ),
    "nulls do not count in the size of a join's output": (
        "join",
        [Edit(fanout, "finish_child", 'output or b"null"', 'output or b""')],
    ),
    "nine children at once": (
        "fanout",
        [Edit(actions, "attempt_all", "room = at_once", "room = 1 + at_once")],
    ),
    "siblings in flight are not waited for": (
        "fanout",
        [Edit(fanout, "join", "if context.in_flight:", "if not context:")],
    ),
    "a large output is worth a retry": (
        "steps",
        [Edit(settle, "_bounded", "retryable=False", "retryable=True")],
    ),
    "the backoff has no cap": (
        "steps",
        [Edit(retry, "backoff", "return min(doubled, limits.BACKOFF_CAP)", "return doubled")],
    ),
    "a later retry is not granted": (
        "steps",
        [Edit(retry, "pause", "return max(backoff(attempt), asked)", "return backoff(attempt)")],
    ),
    "the output of a compensation becomes the run's": (
        "saga",
        [
            Edit(
                program,
                "DeclaredProgram.output_of",
                "reversed(self.definition.steps)",
                "reversed(tuple(self.definition.by_key.values()))",
            )
        ],
    ),
    "a wait counts from its last park": (
        "signals",
        [
            Edit(
                waits,
                "wait_for_signal",
                "    if context.now < ends(opened):\n",
                "    if context.now < ends(opened):\n"
                "        until = context.now + step.timeout\n"
                "        opened = Record(step.key, opened.status, 1, context.now, next_at=until)\n"
                "        journal = record_open(journal, opened)\n",
            ),
            # A signal of another name no longer has the run park anew; it may.
            Edit(
                head, "Head.wakes_for", "return self.lease_token is None and waits", "return True"
            ),
        ],
    ),
    "the newest signal is taken first": (
        "signals",
        [
            Edit(waits, "_oldest", "in inbox.items()", "in reversed(inbox.items())"),
            Edit(
                overflow,
                "Overflow.oldest",
                "self.messages.items()",
                "reversed(self.messages.items())",
            ),
        ],
    ),
    "a signal is not consumed": (
        "signals",
        [Edit(waits, "wait_for_signal", "consumed=(arrived,)", "consumed=()")],
    ),
    "the message of a child that was given up is taken for the new one's": (
        "children",
        [
            Edit(
                subworkflow,
                "subworkflow",
                "message = context.inbox.get(child)",
                "message = next(iter(context.inbox.values()), None)",
            ),
            Edit(decide, "_stale", "key not in awaited", "awaited is None"),
        ],
    ),
    "runs are seven deep": (
        "children",
        [Edit(subworkflow, "subworkflow", "depth >= limits.MAX_DEPTH", "depth > limits.MAX_DEPTH")],
    ),
    "depth exceeded is retried by the parent": (
        "children",
        [Edit(subworkflow, "settle_child", "final = result.code in _FINAL_CODES", "final = False")],
    ),
    "a child that was given up lives on": (
        "children",
        [
            Edit(
                children,
                "Children.cancel",
                "    head = self._stop(child, now)",
                "    head = None",
            )
        ],
    ),
    "a child that somebody cancelled is followed by another": (
        "family",
        [Edit(subworkflow, "settle_child", "result.ended_at < ends(opened)", "not opened")],
    ),
    "every cancel cascades": (
        "family",
        [Edit(controls, "Controls._cancel", "now, cascade, generation)", "now, True, generation)")],
    ),
    "a cancel is not seen before a child's next attempt": (
        "cancel",
        [
            Edit(
                leased_run,
                "LeasedRun._start_attempts",
                "if attempts and self._waited:",
                "if not self:",
            )
        ],
    ),
    "an attempt more than the ceiling": (
        "ceiling",
        [
            Edit(
                actions,
                "attempt_all",
                "if journal.attempts + begun >= limits.MAX_RUN_ATTEMPTS:",
                "if journal.attempts + begun > limits.MAX_RUN_ATTEMPTS:",
            )
        ],
    ),
    "child runs do not count against the ceiling": (
        "ceiling",
        [Edit(subworkflow, "begin_child", "journal.attempts + 1", "journal.attempts")],
    ),
    "the ceiling compensates the run": (
        "ceiling",
        [
            Edit(
                run_transitions,
                "fail_run",
                "code, None)",
                "code, (*journal.records, *journal.open)[0].key)",
            )
        ],
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_model_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    theme, edits = MUTANTS[name]
    for edit in edits:
        _apply(edit, monkeypatch)
    for scenario in pool(theme):
        try:
            compare(scenario)
        except (Disagreement, Endless):
            return
    pytest.fail(f"{WITHIN} scenarios have shown no difference")


@cache
def pool(theme: str) -> Sequence[Scenario]:
    """The scenarios that mutants are tried on: the same for all of a theme."""
    found: list[Scenario] = []

    @settings(
        max_examples=WITHIN,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(scenarios(THEMES[theme]))
    def collect(scenario: Scenario) -> None:
        found.append(scenario)

    collect()
    return found


def _apply(edit: Edit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the mutant in the function's place, wherever that was imported."""
    *owners, name = edit.name.split(".")
    owner = getattr(edit.module, owners[0]) if owners else edit.module
    function: FunctionType = getattr(owner, name)
    text = textwrap.dedent(_TEXTS.get(function) or inspect.getsource(function))
    assert text.count(edit.old) == 1, f"{edit.name} has changed: renew this mutant"
    made: dict[str, FunctionType] = {}
    text = text.replace(edit.old, edit.new)
    exec(compile(text, edit.name, "exec"), function.__globals__, made)  # noqa: S102  our own text
    _TEXTS[made[name]] = text
    if owners:
        monkeypatch.setattr(owner, name, made[name])
        return
    for module in list(sys.modules.values()):
        if module.__name__.startswith("stepwell_engine") and vars(module).get(name) is function:
            monkeypatch.setattr(module, name, made[name])


_TEXTS: Final[dict[FunctionType, str]] = {}  # of functions that were made here
