"""JSON as the engine keeps it: compact UTF-8 bytes."""

import json
from collections.abc import Collection, Iterable
from typing import Any, Final

_CIRCULAR: Final = "Circular reference"  # how json says it


def encode(value: Any) -> bytes:
    """Compact UTF-8 JSON. ValueError for NaN, infinities, lone surrogates, unknown types."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("text with a lone surrogate is not valid Unicode") from error
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not a JSON value: {error}") from error
    except ValueError as error:
        if _CIRCULAR in str(error):
            raise ValueError("not a JSON value: it contains itself") from error
        raise


def decode(data: bytes | str) -> Any:
    """The value of strict JSON text. ValueError for anything else, NaN and infinities included."""
    try:
        return json.loads(data, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def is_deeper(value: Any, most: int) -> bool:
    """Whether lists and objects nest more than `most` levels, as one that contains itself does.

    Counted level by level, for recursion has a limit; on a level each one counts once, wherever
    it is referred to.
    """
    level = _containers([value])
    for _ in range(most):
        if not level:
            return False
        level = _containers(
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        )
    return bool(level)


def _containers(values: Iterable[Any]) -> Collection[Any]:
    found = {id(value): value for value in values if isinstance(value, dict | list | tuple)}
    return found.values()


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
