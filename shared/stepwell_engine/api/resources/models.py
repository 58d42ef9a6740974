"""The bodies of the routes of queues, functions and the database."""

from typing import Annotated, Final

from pydantic import Field, WithJsonSchema

from stepwell_engine import limits
from stepwell_engine.api.models import Body, Json

# Fields whose values a service checks: their schema is shown only.
_TEXT: Final = WithJsonSchema({"type": "string"})
_TEXTS: Final = WithJsonSchema({"type": "array", "items": {"type": "string"}})


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
