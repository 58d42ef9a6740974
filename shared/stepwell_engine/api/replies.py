"""An answer to an HTTP request, before it is put into the form of one host."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

JSON: Final = "application/json"
PROBLEM_JSON: Final = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Reply:
    """`body` is a JSON value, or JSON text as bytes; None for no body at all."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = JSON
