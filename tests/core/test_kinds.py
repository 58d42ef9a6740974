"""Every kind of step has a description, and what is derived from the descriptions holds."""

import pytest

from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.declared.kinds import (
    ACTION_KINDS,
    FIELDS,
    KINDS,
    NOT_IN_COMPENSATION,
    OF_ANY_KIND,
    Role,
    kinds_of,
)
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import StepStatus
from stepwell_engine.limits import DAY, HOUR, SECOND

# Written out here again, so that a slip in the engine's table shows.
ACTIONS = {Kind.ENQUEUE, Kind.SQL, Kind.WEBHOOK, Kind.FUNCTION}
# Seconds: the default and the longest.
TIMEOUTS = {
    **dict.fromkeys(ACTIONS, (30, 600)),
    Kind.WAIT_FOR_SIGNAL: (7 * DAY // SECOND, 30 * DAY // SECOND),
    Kind.SUBWORKFLOW: (24 * HOUR // SECOND, 30 * DAY // SECOND),
}


def test_every_kind_has_a_description() -> None:
    assert list(KINDS) == list(Kind)


def test_the_actions_are_those_that_may_be_children_and_compensations() -> None:
    assert ACTION_KINDS == ACTIONS
    assert set(kinds_of(Role.CHILD)) == set(kinds_of(Role.COMPENSATION)) == ACTIONS
    assert kinds_of(Role.TOP) == tuple(Kind)


def test_actions_and_subworkflows_may_have_a_compensation() -> None:
    compensable = {kind for kind, one in KINDS.items() if "compensate" in one.fields}
    assert compensable == ACTIONS | {Kind.SUBWORKFLOW}
    assert {"key", "children", "compensate", "sleep_for", "signal"} == NOT_IN_COMPENSATION


@pytest.mark.parametrize("kind", Kind)
def test_the_fields_of_a_kind_stand_in_the_order_of_all_fields(kind: Kind) -> None:
    fields = list(KINDS[kind].fields)
    assert fields == [name for name in FIELDS if name in fields]


def test_every_field_belongs_to_a_kind() -> None:
    assert {name for one in KINDS.values() for name in one.fields} == set(OF_ANY_KIND)


@pytest.mark.parametrize("kind", Kind)
def test_timeouts_of_a_kind(kind: Kind) -> None:
    field = KINDS[kind].fields.get("timeout_seconds")
    found = None if field is None else (field.default, field.schema["maximum"])
    assert found == TIMEOUTS.get(kind)


def test_of_a_step_of_a_wrong_kind_the_longest_timeout_of_any_is_allowed() -> None:
    longest = max(longest for _, longest in TIMEOUTS.values())
    assert OF_ANY_KIND["timeout_seconds"].schema["maximum"] == longest


@pytest.mark.parametrize(
    ("step", "record", "words"),
    [
        (
            Step(0, "a", Kind.SLEEP, sleep_for=5),
            Record("a", StepStatus.SLEEPING),
            "sleeping until T",
        ),
        (
            Step(0, "a", Kind.WAIT_FOR_SIGNAL, signal="go"),
            Record("a", StepStatus.WAITING),
            'waiting for the signal "go", until T',
        ),
        (
            Step(0, "a", Kind.SUBWORKFLOW, "ship"),
            Record("a", StepStatus.PENDING, child="r1"),
            'starting run r1 of workflow "ship"',
        ),
        (
            Step(0, "a", Kind.SUBWORKFLOW, "ship"),
            Record("a", StepStatus.WAITING, child="r1"),
            'waiting for run r1 of workflow "ship", until T',
        ),
        (
            Step(0, "a", Kind.SUBWORKFLOW, "ship", max_attempts=4),
            Record("a", StepStatus.RETRYING, 1),
            "retrying step a at T, attempt 2 of 4",
        ),
    ],
)
def test_the_words_for_what_a_run_waits_for(step: Step, record: Record, words: str) -> None:
    waits_for = KINDS[step.kind].waits_for
    assert waits_for is not None
    assert waits_for(step, record, "T") == words


def test_a_run_waits_at_sleeps_signals_and_subworkflows_alone() -> None:
    waiting = {kind for kind, one in KINDS.items() if one.waits_for is not None}
    assert waiting == {Kind.SLEEP, Kind.WAIT_FOR_SIGNAL, Kind.SUBWORKFLOW}
