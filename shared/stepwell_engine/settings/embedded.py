"""The settings of the embedded home."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    DirectoryPath,
    Field,
    ValidationError,
)

PREFIX: Final = "STEPWELL_"
LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class BadSetting(ValueError):
    """A setting has a value that cannot be used; the message is one sentence for its user."""


def _folders(value: Any) -> Any:
    """A list of folders, or one text of them as in PATH."""
    if isinstance(value, str):
        return [one for one in value.split(os.pathsep) if one]
    return value


def _dsn(value: Any) -> Any:
    """Never quotes the DSN: it may hold a password."""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"postgresql", "postgres"} and parts.port != 0
        usable = usable and value.startswith(f"{parts.scheme}://")
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("should be like postgresql://user:password@host:5432/name")
    return value


class Settings(BaseModel):
    """Settings of the embedded home. Each is `STEPWELL_` and its name in capitals."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    port: Annotated[int, Field(ge=0, le=65_535)] = Field(
        default=8787, description="port on 127.0.0.1 that the API listens on; 0 takes a free one"
    )
    data: Path = Field(
        default=Path(".stepwell"), description="folder that holds all state; created if missing"
    )
    functions: Annotated[tuple[DirectoryPath, ...], BeforeValidator(_folders)] = Field(
        default=(),
        description="folders, separated as in `PATH`, that Python functions are imported from",
    )
    dsn: Annotated[str | None, BeforeValidator(_dsn)] = Field(
        default=None,
        description="PostgreSQL server used instead of the embedded one",
        examples=["postgresql://user:password@host:5432/name"],
    )
    workers: Annotated[int, Field(ge=1, le=1_000)] = Field(
        default=32, description="threads that execute steps: so many at once"
    )
    request_threads: Annotated[int, Field(ge=1, le=1_000)] = Field(
        default=64, description="threads that answer API requests; `?wait=` may hold half of them"
    )
    stop_seconds: Annotated[int, Field(ge=0, le=600)] = Field(
        default=10, description="time that steps in flight have to finish when the host is stopped"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="least severity of what is logged"
    )


def read(flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings: a flag that is given (not None), else the environment, else the default.

    `flags` maps names of settings to texts. BadSetting for a value that cannot be used.
    """
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    found: dict[str, Any] = {}
    for name in Settings.model_fields:
        variable = variable_of(name)
        if name in given:
            found[name] = given[name]
        elif os.environ.get(variable):
            found[name] = os.environ[variable]
    try:
        return Settings.model_validate(found)
    except ValidationError as error:
        raise BadSetting(_sentence(error, given)) from error


def unknown() -> list[str]:
    """A sentence for each variable of the environment that is named like a setting and is none."""
    known = [name.upper() for name in Settings.model_fields]
    sentences = []
    for name in sorted(os.environ):
        own = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and own not in known:
            nearest = difflib.get_close_matches(own, known, 1)
            hint = f": did you mean {PREFIX}{nearest[0]}?" if nearest else ""
            sentences.append(f"{name} is no setting{hint}")
    return sentences


def environment() -> Mapping[str, str]:
    """The environment of this process, for the programs that it starts."""
    return dict(os.environ)


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def _sentence(error: ValidationError, given: Mapping[str, Any]) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    name = str(first["loc"][0])
    where = "--" + name.replace("_", "-") if name in given else variable_of(name)
    reason = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"{where}: {reason[0].lower()}{reason[1:]}"
