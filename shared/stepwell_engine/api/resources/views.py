"""What the API shows of queues, functions and the database."""

from typing import Any, NotRequired

from typing_extensions import TypedDict

from stepwell_engine.api.models import Time
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.times import iso
from stepwell_engine.ports import Resource


class QueueView(TypedDict):
    """A queue."""

    name: str
    visibility_timeout: int
    max_receives: int
    created_at: Time


class QueueList(TypedDict):
    """A page of queues."""

    items: list[QueueView]
    next_cursor: str | None


_Lambda = TypedDict("_Lambda", {"lambda": NotRequired[str]})


class FunctionView(_Lambda):
    """A function: one of url, lambda, command, python."""

    name: str
    url: NotRequired[str]
    command: NotRequired[list[str]]
    python: NotRequired[str]
    created_at: Time


class FunctionList(TypedDict):
    """A page of functions."""

    items: list[FunctionView]
    next_cursor: str | None


class DatabaseView(TypedDict):
    """The project's database. `secret_set: true` stands for its DSN."""

    embedded: bool
    cluster: NotRequired[str]
    secret: NotRequired[str]
    database: NotRequired[str]
    secret_set: bool
    created_at: Time


def resource_view(resource: Resource) -> Any:
    """A queue or a function: its name and its settings."""
    return {
        "name": resource.name,
        **jsonvalue.decode(resource.config),
        "created_at": iso(resource.created_at),
    }


def database_view(resource: Resource) -> DatabaseView:
    """The database; never its DSN."""
    view: Any = {
        **jsonvalue.decode(resource.config),
        "secret_set": resource.sealed is not None,
        "created_at": iso(resource.created_at),
    }
    shown: DatabaseView = view
    return shown
