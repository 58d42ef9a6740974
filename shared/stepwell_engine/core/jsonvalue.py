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


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
