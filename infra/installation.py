"""What an installation may choose: the context values of the CDK app, checked."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from stepwell_engine import limits

# Days; among those that CloudWatch Logs knows.
RETENTIONS: Final = (1, 3, 5, 7, 14, 30, 60, 90, 180, 365, 731, 1827, 3653)
# Outputs of the stacks that the project's own commands read.
CONTROL_TABLE: Final = "ControlTable"
URL: Final = "Url"
ARN: Final = r"^arn:aws[a-z-]*:[a-z0-9-]+:[^\s,]+$"


class BadContext(ValueError):
    """A context value cannot be used; the message is one sentence for the person who deploys."""


def _listed(value: Any) -> Any:
    """A list, or one text with commas: the command line knows only texts."""
    return [one for one in value.split(",") if one] if isinstance(value, str) else value


def _retention(value: Any) -> Any:
    if str(value) not in map(str, RETENTIONS):
        raise ValueError(f"should be one of {', '.join(map(str, RETENTIONS))}")
    return value


Arns = Annotated[tuple[Annotated[str, Field(pattern=ARN)], ...], BeforeValidator(_listed)]


class Installation(BaseModel):
    """One installation. Each field is a context value of the same name; docs/deploy.md lists them.

    Two installations in one account and region differ in `environment`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    environment: str = Field(
        default="dev",
        pattern="^[a-z][a-z0-9]{0,15}$",
        description="name of the installation; all its names begin with `stepwell-<environment>`",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="least severity of what the functions log"
    )
    log_retention: Annotated[int, BeforeValidator(_retention)] = Field(
        default=30, description="days that logs are kept; a retention of CloudWatch Logs"
    )
    throttle_rate: int = Field(
        default=100, ge=1, le=10_000, description="API requests per second, in the long run"
    )
    throttle_burst: int = Field(
        default=200, ge=1, le=5_000, description="API requests at once, above the rate"
    )
    api_concurrency: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="concurrency reserved for (and the most of) the API function",
    )
    executor_concurrency: int = Field(
        default=50,
        ge=2,
        le=1_000,
        description="executors at once, each with up to 10 runs; as many with one suspect each",
    )
    due_shards: int = Field(
        default=limits.DUE_SHARDS,
        ge=1,
        le=limits.MAX_DUE_SHARDS,
        description="partitions of the index of what is due; more at any time, never fewer",
    )
    deletion_protection: bool = Field(
        default=True, description="whether DynamoDB refuses to delete the tables"
    )
    keep_data: bool = Field(
        default=True, description="whether tables and key outlive the deletion of their stack"
    )
    requirements: bool = Field(
        default=True,
        description="whether the layer brings the Python packages; `false` where the runtime "
        "has them, as on an emulator",
    )
    allowed_networks: str | None = Field(
        default=None,
        pattern=r"^[0-9a-fA-F.:/]+(,[0-9a-fA-F.:/]+)*$",
        description="networks, separated by commas, that webhooks may reach although they are "
        "not public",
    )
    alarm_topic: str | None = Field(
        default=None, pattern=ARN, description="ARN of the SNS topic that alarms go to"
    )
    alarm_email: str | None = Field(
        default=None,
        pattern=r"^[^@\s]+@[^@\s]+$",
        description="address that alarms are mailed to, by a topic of the installation's own",
    )
    domain: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)+$",
        description="host name of the API; needs `certificate`",
    )
    certificate: str | None = Field(
        default=None, pattern=ARN, description="ARN of the ACM certificate of `domain`"
    )
    functions: Arns = Field(
        default=(), description="ARNs of Lambda functions that steps may invoke"
    )
    databases: Arns = Field(
        default=(), description="ARNs of Aurora clusters whose Data API steps may use"
    )
    secrets: Arns = Field(
        default=(), description="ARNs of the Secrets Manager secrets of those clusters"
    )

    @model_validator(mode="after")
    def _together(self) -> Self:
        if (self.domain is None) != (self.certificate is None):
            raise ValueError("domain and certificate are given together")
        if self.alarm_topic is not None and self.alarm_email is not None:
            raise ValueError("of alarm_topic and alarm_email only one is given")
        if bool(self.databases) != bool(self.secrets):
            raise ValueError("databases and secrets are given together")
        return self

    @property
    def name(self) -> str:
        """What the names of stacks, functions and exports begin with."""
        return f"stepwell-{self.environment}"

    def function_name(self, function: str) -> str:
        """The name of one of the functions."""
        return f"{self.name}-{function}"

    @property
    def queue_prefix(self) -> str:
        """What the names of the projects' queues begin with, and no other queue's."""
        return f"{self.name}-q-"


def from_values(values: Mapping[str, Any]) -> Installation:
    """Check the values of one installation. BadContext for the first that cannot be used."""
    try:
        return Installation.model_validate(values)
    except ValidationError as error:
        raise BadContext(_sentence(error)) from error


def from_context(lookup: Callable[[str], Any]) -> Installation:
    """The installation that an app's context describes; what it leaves out has its default."""
    found = {name: lookup(name) for name in Installation.model_fields}
    return from_values({name: value for name, value in found.items() if value is not None})


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    reason = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if not first["loc"]:
        return f"context: {reason}"
    return f"context {first['loc'][0]}: {reason[0].lower()}{reason[1:]}"
