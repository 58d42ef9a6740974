"""Request bodies: from bytes to a JSON object, with an exact complaint for everything else."""

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

from stepwell_engine import limits
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.errors import Problem


class _Refused(ValueError):
    """Valid JSON by the grammar, but nothing that this API takes."""


def json_object(
    raw: str | None, encoded: bool, headers: Mapping[str, str], required: bool
) -> dict[str, Any]:
    """The object in a body; `{}` for no body where none is required.

    `encoded`: the body is base64. `headers`: by lower-case name. Problem: `invalid_request`,
    `payload_too_large`, `unsupported_media_type`.
    """
    if raw and not raw.isspace():
        _check_encoding(headers.get("content-encoding", ""))
    text = _text(raw or "", encoded)
    if not text.strip():
        if required:
            raise Problem("invalid_request", "the body is empty: send a JSON object")
        return {}
    _check_media_type(headers.get("content-type"))
    value = _parsed(text)
    if not isinstance(value, dict):
        raise Problem("invalid_request", f"the body must be a JSON object, not {excerpt(value)}")
    return value


def _text(raw: str, encoded: bool) -> str:
    if len(raw) > limits.MAX_BODY * (2 if encoded else 1):
        raise _too_large()
    try:
        data = base64.b64decode(raw, validate=True) if encoded else raw.encode()
    except UnicodeEncodeError:
        raise Problem("invalid_request", "the body is not valid UTF-8") from None
    except ValueError:
        raise Problem("invalid_request", "the body is not valid base64") from None
    if len(data) > limits.MAX_BODY:
        raise _too_large()
    if not encoded:
        return raw
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Problem(
            "invalid_request", f"the body is not valid UTF-8: see byte {error.start}"
        ) from None


def _too_large() -> Problem:
    return Problem(
        "payload_too_large", f"the body has more than {limits.MAX_BODY:,} bytes, the most allowed"
    )


def _check_encoding(given: str) -> None:
    if given.strip().lower() not in ("", "identity"):
        raise Problem(
            "unsupported_media_type",
            "the body must be sent as it is, without a Content-Encoding, "
            f"not with {excerpt(given)}",
        )


def _check_media_type(content_type: str | None) -> None:
    media_type, _, parameters = (content_type or "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if media_type.strip().lower() != "application/json" or charset not in ("", "utf-8", "utf8"):
        given = "none" if content_type is None else excerpt(content_type)
        raise Problem(
            "unsupported_media_type",
            f"the Content-Type of a body must be application/json in UTF-8, not {given}",
        )


def _parsed(text: str) -> Any:
    if text.startswith("\ufeff"):
        raise Problem("invalid_request", "the body begins with a byte order mark: leave it out")
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float
        )
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")  # as some end, for a position to follow
        raise Problem(
            "invalid_request",
            f"the body is not JSON: {what} at line {error.lineno}, column {error.colno}",
        ) from None
    except _Refused as error:
        raise Problem("invalid_request", f"the body is refused: {error}") from None
    except ValueError:
        raise Problem(
            "invalid_request", "the body is refused: a whole number has too many digits"
        ) from None
    except RecursionError:
        raise _too_deep() from None
    # Counting brackets is quick, and nearly always enough.
    brackets = text.count("{") + text.count("[")
    if brackets > limits.MAX_NESTING and jsonvalue.is_deeper(value, limits.MAX_NESTING):
        raise _too_deep()
    if "\\u" in text:
        try:
            jsonvalue.encode(value)
        except ValueError as error:
            raise Problem("invalid_request", f"the body is refused: {error}") from None
    return value


def _too_deep() -> Problem:
    return Problem(
        "invalid_request",
        f"the body is refused: lists and objects nest more than {limits.MAX_NESTING} levels deep",
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _Refused(f"the key {excerpt(name)} occurs twice in one object")
            seen.add(name)
    return value


def _constant(name: str) -> Any:
    raise _Refused(f"{name} is not JSON: use null")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _Refused(f"the number {text[:20]} is too large for a 64-bit float")
    return value
