"""The bodies and query strings of requests, as models: what is checked, and what is documented.

`checked` validates a value against one of them.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NotRequired, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    with_config,
)
from typing_extensions import TypedDict

from stepwell_engine import limits
from stepwell_engine.core.run.status import Status
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.errors import Problem

Json = Any
# Fields whose values a service checks: their schema is shown only.
_TEXT: Final = WithJsonSchema({"type": "string"})
_TEXTS: Final = WithJsonSchema({"type": "array", "items": {"type": "string"}})


def _digits(text: str) -> str:
    """Python would also take 1_0, +5 and 5.0 for whole numbers."""
    if not (text.isascii() and text.removeprefix("-").isdecimal()):
        raise ValueError("a whole number")
    return text


def _true_or_false(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("true or false")
    return text == "true"


_Number = Annotated[int, BeforeValidator(_digits)]
_Flag = Annotated[bool, BeforeValidator(_true_or_false)]


class Body(BaseModel):
    """A body: no unknown fields, no conversions. Limits that a service checks are shown only."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Query(BaseModel):
    """A query string: no unknown parameters; values are converted from text."""

    model_config = ConfigDict(extra="forbid")


class NoQuery(Query):
    """No parameters."""


class NoBody(Body):
    """Nothing, or an empty object."""


class StartRun(Body):
    """A run to start."""

    input: Json = Field(
        default_factory=dict,
        description=f"Any JSON value, at most {limits.MAX_INPUT:,} bytes as compact JSON.",
    )
    idempotency_key: str | None = Field(
        None,
        json_schema_extra={"minLength": 1, "maxLength": limits.MAX_IDEMPOTENCY_KEY},
        description="One key, one run: a start with a key that was used answers with its run.",
    )
    test: bool = Field(False, description="Marks the run as a test.")


class SendSignal(Body):
    """A signal for one run."""

    signal: str = Field(
        json_schema_extra={"pattern": "^[a-z0-9][a-z0-9_.-]{0,63}$"},
        description="Its name, for which a step of the run waits now or later.",
    )
    payload: Json = Field(
        None,
        description="The output of the step that takes it: any JSON value, at most "
        f"{limits.MAX_SIGNAL_PAYLOAD:,} bytes as compact JSON.",
    )
    idempotency_key: str | None = Field(
        None,
        json_schema_extra={"minLength": 1, "maxLength": limits.MAX_IDEMPOTENCY_KEY},
        description="One key of a run and a name, one signal: a repeat is answered like the first.",
    )


class SetEnabled(Body):
    """Whether new runs may start."""

    enabled: bool


class PutQueue(Body):
    """The settings of a queue."""

    visibility_timeout: int = Field(
        limits.DEFAULT_VISIBILITY,
        json_schema_extra={"minimum": 1, "maximum": limits.MAX_VISIBILITY},
        description="Seconds for which a received message is hidden from other receivers.",
    )
    max_receives: int = Field(
        limits.DEFAULT_RECEIVES,
        json_schema_extra={"minimum": 1, "maximum": limits.MAX_RECEIVES},
        description="A message received more often moves to the queue's archive.",
    )


class PutFunction(Body):
    """Where a function is: exactly one of the fields."""

    url: Annotated[Json, _TEXT] = Field(
        None, description="An http or https URL that takes a POST of JSON."
    )
    lambda_: Annotated[Json, _TEXT] = Field(
        None, alias="lambda", description="The ARN of a Lambda function, on AWS."
    )
    command: Annotated[Json, _TEXTS] = Field(
        None, description="A program and its arguments: JSON in, JSON out."
    )
    python: Annotated[Json, _TEXT] = Field(None, description="A Python callable, module:callable.")


class PutDatabase(Body):
    """A PostgreSQL database: its DSN, an Aurora cluster, or the embedded one."""

    dsn: str | None = Field(
        None, description="postgresql://user:password@host:5432/name; never shown again."
    )
    embedded: bool | None = Field(None, description="Use the embedded PostgreSQL (the default).")
    cluster: str | None = Field(
        None, description="The ARN of an Aurora cluster, on AWS; used over the RDS Data API."
    )
    secret: str | None = Field(
        None, description="The ARN of the secret in Secrets Manager that opens the cluster."
    )
    database: str | None = Field(
        None, description="The name of a database of the cluster; its default one if left out."
    )


class SendMessage(Body):
    """A message for a queue."""

    body: Json = Field(
        description=f"Any JSON value, at most {limits.MAX_MESSAGE:,} bytes as compact JSON."
    )


class ReceiveMessages(Body):
    """How many messages to take."""

    max: int = Field(1, ge=1, le=limits.MAX_RECEIVED)


class Page(Query):
    """One page of a list."""

    cursor: str | None = Field(
        None,
        description="The next_cursor of the previous page of this very list, unchanged: the path "
        "and the filters must be the same, limit may be another.",
    )
    limit: _Number = Field(
        limits.MAX_PAGE, ge=1, le=limits.MAX_PAGE, description="Items of a page."
    )


class RunPage(Page):
    """One page of a workflow's runs."""

    status: Status | None = Field(None, description="Only runs with this status.")
    from_: str | None = Field(
        None,
        alias="from",
        description="Only runs created at this time or later: ISO 8601, or ms since the epoch.",
    )
    to: str | None = Field(None, description="Only runs created before this time.")


class MessagePage(Page):
    """One page of a queue's messages."""

    archived: _Flag = Field(False, description="The messages of the archive instead.")


class Cancel(Query):
    """What else to cancel."""

    cascade: _Flag = Field(False, description="Cancel the child runs that the run waits for, too.")


class Wait(Query):
    """How long to wait for the end of a run."""

    wait: _Number = Field(
        0, ge=0, le=limits.MAX_WAIT, description="Seconds to wait for the run to end."
    )


class Publish(Query):
    """How to publish."""

    validate_only: _Flag = Field(
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


Model = TypeVar("Model", bound=BaseModel)


def checked(model: type[Model], value: Mapping[str, Any]) -> Model:
    """The value as a model. Problem `invalid_request` with all `errors`, each with its place."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        is_query = issubclass(model, Query)
        errors = [_told(model, is_query, one) for one in error.errors(include_url=False)]
        raise Problem(
            "invalid_request", "; ".join(one["message"] for one in errors), errors=errors
        ) from None


def _told(model: type[BaseModel], is_query: bool, error: Mapping[str, Any]) -> dict[str, str]:
    place = _place(error["loc"], is_query)
    kind = error["type"]
    if kind == "missing":
        return {"where": place, "message": f"{place} is missing"}
    if kind == "extra_forbidden":
        names = [field.alias or name for name, field in model.model_fields.items()]
        takes = f"allowed are {', '.join(names)}" if names else "none are allowed"
        what = "query parameter" if is_query else "field"
        return {"where": place, "message": f"{place} is an unknown {what}: {takes}"}
    right = _right(kind, error.get("ctx", {})) or error["msg"].lower()
    return {"where": place, "message": f"{place} must be {right}, not {excerpt(error['input'])}"}


def _place(loc: Sequence[str | int], is_query: bool) -> str:
    """`?limit` for a query parameter, `$.command[0]` for a place in a body."""
    steps = [f"[{one}]" if isinstance(one, int) else f".{excerpt(one)[1:-1]}" for one in loc]
    path = "".join(steps)
    return f"?{path[1:]}" if is_query else f"${path}"


def _right(kind: str, context: Mapping[str, Any]) -> str | None:
    match kind:
        case "value_error":
            return str(context["error"])
        case "int_type" | "int_parsing" | "int_from_float" | "int_parsing_size":
            return "a whole number"
        case "bool_type" | "bool_parsing":
            return "true or false"
        case "string_type":
            return "text"
        case "greater_than_equal":
            return f"at least {context['ge']}"
        case "less_than_equal":
            return f"at most {context['le']}"
        case "enum":
            return f"one of {context['expected'].replace(' or ', ', ')}"
    return None
