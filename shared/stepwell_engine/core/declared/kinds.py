"""The kinds of steps: one description of each, from which everything else comes.

Validation, defaults, the OpenAPI document, the tables of docs/steps.md and the words for what a
run waits for read this table. A new kind takes a name in `definition`, an entry here, an arm of
`decide`, a step runner if it is an action, and a scenario.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.core.declared.fields import (
    ATTEMPTS,
    CHILD_INPUT,
    CHILDREN,
    COMPENSATE,
    FUNCTION,
    PAYLOAD,
    QUEUE,
    SECRET,
    SIGNAL,
    SLEEP_FOR,
    STATEMENT,
    URL,
    WORKFLOW,
    Field,
    target_violation,
    timeout,
)
from stepwell_engine.core.run.records import Record
from stepwell_engine.core.run.status import StepStatus
from stepwell_engine.limits import (
    CHILDREN_AT_ONCE,
    DEFAULT_ACTION_TIMEOUT,
    DEFAULT_SIGNAL_TIMEOUT,
    DEFAULT_SUBWORKFLOW_TIMEOUT,
    MAX_ACTION_TIMEOUT,
    MAX_SIGNAL_TIMEOUT,
    MAX_SUBWORKFLOW_TIMEOUT,
)


class Role(Enum):
    """Where a step stands in its definition."""

    TOP = "step"
    CHILD = "fan-out child"
    COMPENSATION = "compensation"


@dataclass(frozen=True, slots=True)
class KindDescription:
    """All there is to know of one kind of step.

    `does` says in one clause what a step of this kind does, and `output` what a success records
    (None: nothing). `fields` are what it takes beside `key` and `kind`, in the order of FIELDS.

    An action has a side effect, attempts and a step runner. `waits_for` says what a run waits for
    while it stands at such a step, from the step, its open record and the time when the wait
    ends (None: a run never waits there).
    """

    does: str
    fields: Mapping[str, Field]
    output: str | None = None
    is_action: bool = False
    waits_for: Callable[[Step, Record, str], str] | None = None

    @property
    def roles(self) -> frozenset[Role]:
        """Where such a step may stand: children and compensations are tried like actions."""
        return frozenset(Role) if self.is_action else frozenset({Role.TOP})


def _sleeping(_step: Step, _record: Record, at: str) -> str:
    return f"sleeping until {at}"


def _awaiting_signal(step: Step, _record: Record, at: str) -> str:
    return f'waiting for the signal "{step.signal}", until {at}'


def _awaiting_child(step: Step, record: Record, at: str) -> str:
    if record.status is StepStatus.PENDING:
        return f'starting run {record.child} of workflow "{step.target}"'
    if record.status is StepStatus.RETRYING:
        tries = f"attempt {record.attempt + 1} of {step.max_attempts}"
        return f"retrying step {step.key} at {at}, {tries}"
    return f'waiting for run {record.child} of workflow "{step.target}", until {at}'


# What every action takes beside its target and payload.
_ACTION: Final[Mapping[str, Field]] = {
    "max_attempts": ATTEMPTS,
    "timeout_seconds": timeout(
        "seconds of one attempt", MAX_ACTION_TIMEOUT, DEFAULT_ACTION_TIMEOUT
    ),
    "compensate": COMPENSATE,
}

KINDS: Final[Mapping[Kind, KindDescription]] = {
    Kind.ENQUEUE: KindDescription(
        does="sends the payload to a queue",
        fields={"target": QUEUE, "payload": PAYLOAD, **_ACTION},
        output='`{"msg_id": 1}`',
        is_action=True,
    ),
    Kind.SQL: KindDescription(
        does="runs one statement, in a transaction of its own",
        fields={"target": STATEMENT, **_ACTION},
        output='`{"rows_affected": 1}`; `rows` if it returned any',
        is_action=True,
    ),
    Kind.WEBHOOK: KindDescription(
        does="POSTs the payload as JSON",
        fields={"target": URL, "payload": PAYLOAD, "secret": SECRET, **_ACTION},
        output='`{"delivered": true, "status": 200}`',
        is_action=True,
    ),
    Kind.FUNCTION: KindDescription(
        does="calls a function",
        fields={"target": FUNCTION, "payload": PAYLOAD, **_ACTION},
        output="what it returned",
        is_action=True,
    ),
    Kind.SLEEP: KindDescription(
        does="waits",
        fields={"sleep_for": SLEEP_FOR},
        waits_for=_sleeping,
    ),
    Kind.WAIT_FOR_SIGNAL: KindDescription(
        does="waits for a signal",
        fields={
            "timeout_seconds": timeout(
                "seconds until the wait fails", MAX_SIGNAL_TIMEOUT, DEFAULT_SIGNAL_TIMEOUT
            ),
            "signal": SIGNAL,
        },
        output="the signal's payload",
        waits_for=_awaiting_signal,
    ),
    Kind.FANOUT: KindDescription(
        does=f"starts its children, up to {CHILDREN_AT_ONCE} at once",
        fields={"children": CHILDREN},
    ),
    Kind.JOIN: KindDescription(
        does="ends the fan-out right before it when all children have ended",
        fields={},
        output="an object of the children's outputs by key",
    ),
    Kind.SUBWORKFLOW: KindDescription(
        does="starts a run of another workflow and waits for it",
        fields={
            "target": WORKFLOW,
            "payload": CHILD_INPUT,
            "max_attempts": ATTEMPTS,
            "timeout_seconds": timeout(
                "seconds until a child is cancelled",
                MAX_SUBWORKFLOW_TIMEOUT,
                DEFAULT_SUBWORKFLOW_TIMEOUT,
            ),
            "compensate": COMPENSATE,
        },
        output="the child's run id; the child's output is `child_output`",
        waits_for=_awaiting_child,
    ),
}

ACTION_KINDS: Final = frozenset(kind for kind, one in KINDS.items() if one.is_action)

# What holds for every kind: of a step whose kind is wrong itself, only this is checked.
OF_ANY_KIND: Final[Mapping[str, Field]] = {
    "target": Field("what the step acts on", target_violation, {}),
    "payload": PAYLOAD,
    "secret": SECRET,
    "max_attempts": ATTEMPTS,
    "timeout_seconds": timeout(
        "seconds", max(MAX_ACTION_TIMEOUT, MAX_SIGNAL_TIMEOUT, MAX_SUBWORKFLOW_TIMEOUT), 0
    ),
    "sleep_for": SLEEP_FOR,
    "signal": SIGNAL,
    "children": CHILDREN,
    "compensate": COMPENSATE,
}
# In the order in which messages and documents name them.
FIELDS: Final = ("key", "kind", *OF_ANY_KIND)

NOT_IN_COMPENSATION: Final = (
    frozenset(FIELDS)
    - {"kind"}
    - {name for kind in ACTION_KINDS for name in KINDS[kind].fields if name != "compensate"}
)


def kinds_of(role: Role) -> tuple[Kind, ...]:
    """The kinds of steps that may stand there."""
    return tuple(kind for kind in Kind if role in KINDS[kind].roles)
