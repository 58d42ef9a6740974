"""JSON as the engine keeps it: compact UTF-8 bytes."""

import json
from typing import Any


def encode(value: Any) -> bytes:
    """Compact UTF-8 JSON. ValueError for NaN, infinities, lone surrogates, unknown types."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("text with a lone surrogate is not valid Unicode") from error
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not a JSON value: {error}") from error


def decode(data: bytes | str) -> Any:
    """The value of strict JSON text. ValueError for anything else, NaN and infinities included."""
    try:
        return json.loads(data, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def depth(value: Any) -> int:
    """How deep lists and objects nest, counted level by level: recursion has a limit."""
    levels, level = 0, [value]
    while level := [inner for inner in level if isinstance(inner, dict | list)]:
        levels += 1
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return levels


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
