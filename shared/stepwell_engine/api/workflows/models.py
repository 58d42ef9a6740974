"""The bodies and query strings of the routes of workflows."""

from typing import NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from stepwell_engine.api.models import Body, Flag, Json, Query


class SetEnabled(Body):
    """Whether new runs may start."""

    enabled: bool


class Publish(Query):
    """How to publish."""

    validate_only: Flag = Field(
        False, alias="validate", description="Check the definition and store nothing."
    )


class DefinitionBody(TypedDict):
    """A definition: checked by core.declared.validate, documented by `step_schema`."""

    enabled: NotRequired[bool]
    steps: list[Json]
