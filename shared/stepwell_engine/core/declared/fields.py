"""The fields of a step: for each what is right in words, as a check, and as JSON Schema.

Which kind takes which of them is in `kinds`.
"""

import base64
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from stepwell_engine.core.values import durations
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.core.values.jsonvalue import encode, is_deeper
from stepwell_engine.limits import (
    DAY,
    DEFAULT_ATTEMPTS,
    MAX_ATTEMPTS,
    MAX_CHILDREN,
    MAX_DURATION_TEXT,
    MAX_PAYLOAD_DEPTH,
    MAX_SECRET,
    MAX_SLEEP,
    MAX_STEP_PAYLOAD,
    MAX_TARGET,
    MIN_TIMEOUT,
    SECOND,
)

RESERVED_WORKFLOW_NAMES: Final = frozenset({"app", "sync", "usage"})
SIGNING_SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - a prefix, not a secret

# What is wrong with a value, in words; None if nothing is. Before the value stands what the words
# call it where its rules depend on the kind of step, like `target of sql`.
Check = Callable[[str, object], str | None]


@dataclass(frozen=True, slots=True)
class Field:
    """A field as a kind of step takes it.

    `right` says in words what to put there. `schema` is JSON Schema of it, which cannot express
    all that `violation` checks. `default` is what a field that is left out counts as, in the form
    of a document; None if there is none.
    """

    right: str
    violation: Check
    schema: Mapping[str, Any]
    required: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class Name:
    """A kind of name: its pattern, whole, and the same in words."""

    pattern: re.Pattern[str]
    words: str

    @property
    def schema(self) -> Mapping[str, Any]:
        """The same as JSON Schema."""
        return {"type": "string", "pattern": f"^{self.pattern.pattern}$"}

    def violation(self, subject: str, value: object) -> str | None:
        """What is wrong with the name, which the words call `subject`; None if it fits."""
        if isinstance(value, str) and self.pattern.fullmatch(value):
            return None
        return f"{subject} must be {self.words} (^{self.pattern.pattern}$), not {excerpt(value)}"


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

# --- target -------------------------------------------------------------------------------------


def target_violation(_subject: str, value: object) -> str | None:
    """Check what holds for the target of every kind: text of at most MAX_TARGET bytes."""
    if not isinstance(value, str) or not value.strip():
        return f"target must be non-empty text, not {excerpt(value)}"
    size = _size(value)
    if size is None:
        return "target must be valid Unicode, but it has a lone surrogate"
    if size > MAX_TARGET:
        return f"target has {size:,} bytes, at most {MAX_TARGET:,} are allowed"
    return None


def _target(
    right: str, violation: Callable[[str, str], str | None], schema: Mapping[str, Any]
) -> Field:
    def checked(subject: str, value: object) -> str | None:
        return target_violation(subject, value) or violation(subject, str(value))

    text = {"type": "string", "minLength": 1, "maxLength": MAX_TARGET}
    return Field(right, checked, {**text, **schema}, required=True)


def _workflow_violation(subject: str, value: str) -> str | None:
    violation = WORKFLOW_NAME.violation(subject, value)
    if violation is None and value in RESERVED_WORKFLOW_NAMES:
        return f'target must be the name of a workflow; "{value}" is a reserved word'
    return violation


def _url_violation(subject: str, value: str) -> str | None:
    right = f"{subject} must be an http or https URL with a host (https://example.com/hook)"
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
        return f"{subject} must not contain a user name or password: use secret to sign"
    return None


def _is_host(host: str) -> bool:
    if ":" in host:
        try:
            ipaddress.IPv6Address(host.partition("%")[0])
        except ValueError:
            return False
        return True
    return bool(host.strip(".")) and not set(host) & set('[]|^%`{}"')


def _statement_violation(subject: str, value: str) -> str | None:
    if "\0" in value:
        return f"{subject} has a NUL character, which no database takes: remove it"
    return None


QUEUE: Final = _target("the name of a queue", QUEUE_NAME.violation, QUEUE_NAME.schema)
FUNCTION: Final = _target("the name of a function", FUNCTION_NAME.violation, FUNCTION_NAME.schema)
WORKFLOW: Final = _target(
    "the name of a workflow",
    _workflow_violation,
    {**WORKFLOW_NAME.schema, "not": {"enum": sorted(RESERVED_WORKFLOW_NAMES)}},
)
URL: Final = _target(
    "an http or https URL", _url_violation, {"pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s\\<>]+$"}
)
STATEMENT: Final = _target("a statement", _statement_violation, {})

# --- payload and secret -------------------------------------------------------------------------


def _payload_violation(_subject: str, value: object) -> str | None:
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


def _secret_violation(_subject: str, value: object) -> str | None:
    """The words never quote the value."""
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


def sealed_secret_violation(value: object) -> str | None:
    """Check a secret that is sealed already: its length and form are the sealer's."""
    if isinstance(value, str) and value and _size(value) is not None:
        return None
    return "secret must be sealed text"


_JSON: Final = f"any JSON value of at most {MAX_STEP_PAYLOAD:,} bytes as compact JSON"
PAYLOAD: Final = Field(f"what is sent: {_JSON}", _payload_violation, {}, default={})
CHILD_INPUT: Final = Field(f"the child's input: {_JSON}", _payload_violation, {}, default={})
SECRET: Final = Field(
    "text that signs each request; never shown again",
    _secret_violation,
    {"type": "string", "minLength": 1, "maxLength": MAX_SECRET, "writeOnly": True},
)

# --- attempts and times -------------------------------------------------------------------------


def _attempts_violation(_subject: str, value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_ATTEMPTS:
        return None
    return f"max_attempts must be a whole number from 1 to {MAX_ATTEMPTS}, not {excerpt(value)}"


def timeout(right: str, longest: int, default: int) -> Field:
    """Describe `timeout_seconds`, at least MIN_TIMEOUT; `longest` and `default` in ms."""
    low, high = MIN_TIMEOUT // SECOND, longest // SECOND

    def violation(subject: str, value: object) -> str | None:
        if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
            return None
        return f"{subject} must be a number from {low} to {high}, not {excerpt(value)}"

    schema = {"type": "number", "minimum": low, "maximum": high}
    return Field(right, violation, schema, default=default // SECOND)


def _sleep_violation(_subject: str, value: object) -> str | None:
    try:
        length = durations.parse(value)
    except ValueError as error:
        return f"sleep_for: {error}"
    if length > MAX_SLEEP:
        return f"sleep_for must be at most {MAX_SLEEP // DAY} days (30d), not {excerpt(value)}"
    return None


ATTEMPTS: Final = Field(
    "how often the step is tried",
    _attempts_violation,
    {"type": "integer", "minimum": 1, "maximum": MAX_ATTEMPTS},
    default=DEFAULT_ATTEMPTS,
)
SLEEP_FOR: Final = Field(
    f"a duration of at most {MAX_SLEEP // DAY} days, like 30m",
    _sleep_violation,
    {
        "anyOf": [
            {"type": "string", "minLength": 1, "maxLength": MAX_DURATION_TEXT},
            {"type": "number", "minimum": 1 / SECOND, "maximum": MAX_SLEEP // SECOND},
        ],
        "examples": ["30s", "1h30m", "PT1H", 90],
    },
    required=True,
)
SIGNAL: Final = Field(
    "the name of the signal",
    lambda _, value: SIGNAL_NAME.violation("signal", value),
    SIGNAL_NAME.schema,
    required=True,
)

# --- steps in a step ----------------------------------------------------------------------------


def list_violation(name: str, value: object, most: int) -> str | None:
    """Check a list of steps as a whole: its length."""
    if not isinstance(value, list):
        return f"{name} must be a list of 1 to {most} steps, not {excerpt(value)}"
    if not 1 <= len(value) <= most:
        return f"{name} must be a list of 1 to {most} steps, not of {len(value):,}"
    return None


# The steps inside are checked as steps: see `structure`.
CHILDREN: Final = Field(
    "a list of steps",
    lambda _, value: list_violation("children", value, MAX_CHILDREN),
    {"type": "array", "minItems": 1, "maxItems": MAX_CHILDREN},
    required=True,
)
COMPENSATE: Final = Field(
    "an action without a key, which compensates for the step if the run fails after it",
    lambda *_: None,
    {},
)


def _size(text: str) -> int | None:
    """Bytes of UTF-8; None for a lone surrogate, which has none."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return None
