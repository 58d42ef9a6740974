"""The bodies and query strings of the routes of workflows."""

from typing import Annotated, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from stepwell_engine import limits
from stepwell_engine.api.models import Body, Flag, Json, Query


class SetEnabled(Body):
    """Whether new runs may start."""

    enabled: bool


class Publish(Query):
    """How to publish."""

    validate_only: Flag = Field(
        False, alias="validate", description="Check the definition and store nothing."
    )


@with_config(ConfigDict(extra="forbid"))
class Compensation(TypedDict):
    """What undoes a step, should the run fail after it."""

    kind: Literal["enqueue", "sql", "webhook", "function"]
    target: str
    payload: NotRequired[Json]
    secret: NotRequired[str]
    max_attempts: NotRequired[int]
    timeout_seconds: NotRequired[float]


Kind = Literal[
    "enqueue",
    "sql",
    "webhook",
    "function",
    "sleep",
    "wait_for_signal",
    "fanout",
    "join",
    "subworkflow",
]


@with_config(ConfigDict(extra="forbid"))
class Step(TypedDict):
    """A step. Which fields it takes depends on its kind."""

    key: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,63}$")]
    kind: Kind
    target: NotRequired[
        Annotated[str, Field(description="URL, SQL statement, queue, function or workflow name.")]
    ]
    payload: NotRequired[Json]
    secret: NotRequired[Annotated[str, Field(description="Signs webhooks; never shown again.")]]
    max_attempts: NotRequired[Annotated[int, Field(ge=1, le=limits.MAX_ATTEMPTS)]]
    timeout_seconds: NotRequired[float]
    sleep_for: NotRequired[
        Annotated[str | float, Field(description="30m, 1h30m, PT1H, or seconds.")]
    ]
    signal: NotRequired[str]
    children: NotRequired[list[dict[str, Json]]]
    compensate: NotRequired[Compensation]


@with_config(ConfigDict(extra="forbid"))
class DefinitionBody(TypedDict):
    """A definition. It is checked as a whole by core.validate; this is its documentation."""

    enabled: NotRequired[bool]
    steps: Annotated[list[Step], Field(min_length=1, max_length=limits.MAX_STEPS)]
