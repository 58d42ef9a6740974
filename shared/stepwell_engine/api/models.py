"""Base models of bodies and queries, and the types that several features share."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from stepwell_engine import limits

Json = Any
Time = Annotated[
    str,
    Field(
        description="ISO 8601 in UTC, to the millisecond.", examples=["2026-01-31T12:00:00.000Z"]
    ),
]


def _digits(text: str) -> str:
    """Python would also take 1_0, +5 and 5.0 for whole numbers."""
    if not (text.isascii() and text.removeprefix("-").isdecimal()):
        raise ValueError("a whole number")
    return text


def _true_or_false(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("true or false")
    return text == "true"


Number = Annotated[int, BeforeValidator(_digits)]
Flag = Annotated[bool, BeforeValidator(_true_or_false)]


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


class Page(Query):
    """One page of a list."""

    cursor: str | None = Field(
        None,
        description="The next_cursor of the previous page of this very list, unchanged: the path "
        "and the filters must be the same, limit may be another.",
    )
    limit: Number = Field(limits.MAX_PAGE, ge=1, le=limits.MAX_PAGE, description="Items of a page.")
