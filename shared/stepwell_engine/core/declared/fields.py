"""What the value of each field of a step must be: one fault in words, or None.

A check of a single value may know the step's kind (None: the kind itself is at fault; then only
what holds for every kind is checked).
"""

import base64
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from stepwell_engine.core.declared.definition import ACTION_KINDS, Kind
from stepwell_engine.core.values import durations
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.core.values.jsonvalue import encode, is_deeper
from stepwell_engine.limits import (
    DAY,
    MAX_ACTION_TIMEOUT,
    MAX_ATTEMPTS,
    MAX_PAYLOAD_DEPTH,
    MAX_SECRET,
    MAX_SIGNAL_TIMEOUT,
    MAX_SLEEP,
    MAX_STEP_PAYLOAD,
    MAX_SUBWORKFLOW_TIMEOUT,
    MAX_TARGET,
    MIN_TIMEOUT,
    SECOND,
)

RESERVED_WORKFLOW_NAMES: Final = frozenset({"app", "sync", "usage"})
SIGNING_SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - a prefix, not a secret


@dataclass(frozen=True, slots=True)
class Name:
    """A kind of name: its pattern, whole, and the same in words."""

    pattern: re.Pattern[str]
    words: str

    def violation(self, field: str, value: object) -> str | None:
        """What is wrong with the name, with `field` as the subject; None if it fits."""
        if isinstance(value, str) and self.pattern.fullmatch(value):
            return None
        return f"{field} must be {self.words} (^{self.pattern.pattern}$), not {excerpt(value)}"


KEY: Final = Name(
    re.compile(r"[a-z0-9][a-z0-9_-]{0,63}"),
    "1 to 64 lower-case letters, digits, _ and -, a letter or digit first",
)
WORKFLOW_NAME: Final = KEY
FUNCTION_NAME: Final = KEY
QUEUE_NAME: Final = Name(
    re.compile(r"[a-z][a-z0-9_]{0,47}"),
    "1 to 48 lower-case letters, digits and _, a letter first",
)
SIGNAL_NAME: Final = Name(
    re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}"),
    "1 to 64 lower-case letters, digits, _, . and -, a letter or digit first",
)

_TIMEOUTS: Final[Mapping[Kind, int]] = {
    **dict.fromkeys(ACTION_KINDS, MAX_ACTION_TIMEOUT),
    Kind.SUBWORKFLOW: MAX_SUBWORKFLOW_TIMEOUT,
    Kind.WAIT_FOR_SIGNAL: MAX_SIGNAL_TIMEOUT,
}
_TARGET_NAMES: Final[Mapping[Kind, Name]] = {
    Kind.ENQUEUE: QUEUE_NAME,
    Kind.FUNCTION: FUNCTION_NAME,
    Kind.SUBWORKFLOW: WORKFLOW_NAME,
}


def target(value: object, kind: Kind | None) -> str | None:
    """Queue, function or workflow name, URL or SQL statement; at most MAX_TARGET bytes."""
    if not isinstance(value, str) or not value.strip():
        return f"target must be non-empty text, not {excerpt(value)}"
    size = _size(value)
    if size is None:
        return "target must be valid Unicode, but it has a lone surrogate"
    if size > MAX_TARGET:
        return f"target has {size:,} bytes, at most {MAX_TARGET:,} are allowed"
    if kind is not None and kind in _TARGET_NAMES:
        violation = _TARGET_NAMES[kind].violation(f"target of {kind}", value)
        if violation is None and kind is Kind.SUBWORKFLOW and value in RESERVED_WORKFLOW_NAMES:
            return f'target must be the name of a workflow; "{value}" is a reserved word'
        return violation
    if kind is Kind.WEBHOOK:
        return _url(value)
    if kind is Kind.SQL and "\0" in value:
        return "target of sql has a NUL character, which no database takes: remove it"
    return None


def _url(value: str) -> str | None:
    right = "target of webhook must be an http or https URL with a host (https://example.com/hook)"
    if any(letter.isspace() or not letter.isprintable() or letter in "\\<>" for letter in value):
        return (
            f"{right}, without spaces, control characters, backslashes and angle brackets, "
            f"not {excerpt(value)}"
        )
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        return f"{right}, not {excerpt(value)} ({error})"
    if parts.scheme not in ("http", "https") or not host or not _is_host(host) or port == 0:
        return f"{right}, not {excerpt(value)}"
    if "@" in parts.netloc:
        return "target of webhook must not contain a user name or password: use secret to sign"
    return None


def _is_host(host: str) -> bool:
    if ":" in host:
        try:
            ipaddress.IPv6Address(host.partition("%")[0])
        except ValueError:
            return False
        return True
    return bool(host.strip(".")) and not set(host) & set('[]|^%`{}"')


def payload(value: object, _kind: Kind | None) -> str | None:
    """Any JSON value of at most MAX_STEP_PAYLOAD bytes as compact JSON, not absurdly nested."""
    if is_deeper(value, MAX_PAYLOAD_DEPTH):
        return f"payload must not be nested more than {MAX_PAYLOAD_DEPTH} levels deep"
    try:
        size = len(encode(value))
    except ValueError as error:
        return f"payload must be a JSON value: {error}"
    if size > MAX_STEP_PAYLOAD:
        return (
            f"payload has {size:,} bytes as compact JSON, at most {MAX_STEP_PAYLOAD:,} are allowed"
        )
    return None


def secret(value: object, _kind: Kind | None) -> str | None:
    """Non-empty text of at most MAX_SECRET bytes; `whsec_…` is base64. Never quotes the value."""
    if not isinstance(value, str) or not value:
        return "secret must be non-empty text"
    size = _size(value)
    if size is None:
        return "secret must be valid Unicode, but it has a lone surrogate"
    if size > MAX_SECRET:
        return f"secret has {size:,} bytes, at most {MAX_SECRET:,} are allowed"
    if value.startswith(SIGNING_SECRET_PREFIX):
        try:
            key = base64.b64decode(value.removeprefix(SIGNING_SECRET_PREFIX), validate=True)
        except ValueError:
            key = b""
        if not key:
            return (
                f"a secret that begins with {SIGNING_SECRET_PREFIX} must go on with the key "
                "in base64, padded with ="
            )
    return None


def sealed_secret(value: object, _kind: Kind | None) -> str | None:
    """A secret that is sealed already: its length and form are the sealer's."""
    if isinstance(value, str) and value and _size(value) is not None:
        return None
    return "secret must be sealed text"


def max_attempts(value: object, _kind: Kind | None) -> str | None:
    """A whole number, 1 to MAX_ATTEMPTS."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_ATTEMPTS:
        return None
    return f"max_attempts must be a whole number from 1 to {MAX_ATTEMPTS}, not {excerpt(value)}"


def timeout_seconds(value: object, kind: Kind | None) -> str | None:
    """Seconds, whole or not, from MIN_TIMEOUT to the longest that the kind allows."""
    longest = max(_TIMEOUTS.values()) if kind is None else _TIMEOUTS[kind]
    low, high = MIN_TIMEOUT // SECOND, longest // SECOND
    if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
        return None
    of = "" if kind is None else f" of {kind}"
    return f"timeout_seconds{of} must be a number from {low} to {high}, not {excerpt(value)}"


def sleep_for(value: object, _kind: Kind | None) -> str | None:
    """A duration of at most MAX_SLEEP."""
    try:
        length = durations.parse(value)
    except ValueError as error:
        return f"sleep_for: {error}"
    if length > MAX_SLEEP:
        return f"sleep_for must be at most {MAX_SLEEP // DAY} days (30d), not {excerpt(value)}"
    return None


def signal(value: object, _kind: Kind | None) -> str | None:
    """The name of a signal."""
    return SIGNAL_NAME.violation("signal", value)


def _size(text: str) -> int | None:
    """Bytes of UTF-8; None for a lone surrogate, which has none."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return None


Check = Callable[[object, Kind | None], str | None]

CHECKS: Final[Mapping[str, Check]] = {
    "target": target,
    "payload": payload,
    "secret": secret,
    "max_attempts": max_attempts,
    "timeout_seconds": timeout_seconds,
    "sleep_for": sleep_for,
    "signal": signal,
}
