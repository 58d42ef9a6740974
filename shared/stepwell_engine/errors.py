"""Every error the engine raises. Imports nothing.

StepwellError
├── Problem               a request was refused; becomes an RFC 9457 problem document
├── PortRefusal           a port cannot do what it was asked; nothing happened
│   ├── QueueNotFound     there is no such queue
│   ├── QueueNameInUse    a queue that was deleted just now keeps its name for a while
│   ├── CannotList        messages are shown to nobody but those who receive them
│   └── TooLong           a name or a secret is longer than this installation can keep
└── StoreError
    ├── NotWritten        the store cannot write now, for want of room or for a lock
    ├── Unavailable       the store did not answer: the call may or may not have happened
    ├── Unstorable        what was to be written can never be, however often it is tried
    └── NewerFormat       the document was written by a newer version of the engine
"""

from collections.abc import Mapping
from typing import Any

# Stable codes and their HTTP status.
PROBLEM_STATUS: Mapping[str, int] = {
    "invalid_request": 400,
    "invalid_definition": 400,
    "invalid_expression": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "run_finished": 409,
    "already_bound": 409,
    "workflow_disabled": 409,
    "workflow_paused": 409,
    "workflows_off": 409,
    "not_supported": 409,
    "conflict": 409,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
    "too_many_signals": 429,
    "rate_limited": 429,
    "internal": 500,
    "unavailable": 503,
}


class StepwellError(Exception):
    """Base of all errors of the engine."""


class Problem(StepwellError):
    """A refused request.

    `code` is a key of PROBLEM_STATUS; `detail` says what is wrong, where, and what would be
    right; `extra` are further members of the problem document (for example `violations`).
    """

    def __init__(self, code: str, detail: str, **extra: Any) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.status = PROBLEM_STATUS[code]
        self.detail = detail
        self.extra = extra


class PortRefusal(StepwellError):
    """Base of what a port cannot do, in words for whoever asked. The use cases translate it."""


class QueueNotFound(PortRefusal):
    """There is no such queue."""


class QueueNameInUse(PortRefusal):
    """A queue that was deleted just now keeps its name for a while."""


class CannotList(PortRefusal):
    """Messages are shown to nobody but those who receive them."""


class TooLong(PortRefusal):
    """A name or a secret is longer than this installation can keep."""


class StoreError(StepwellError):
    """Base of what a store raises: it refuses, for want of room or permission.

    `reason` says why in a few words for anybody who asks: without names of files or tables.
    """

    def __init__(self, message: str, reason: str = "it does not answer") -> None:
        super().__init__(message)
        self.reason = reason


class NotWritten(StoreError):
    """The store cannot write now, for want of room or for a lock: nothing was written."""


class Unavailable(StoreError):
    """The store did not answer. The call may have happened, may happen later, or not at all."""


class Unstorable(StoreError):
    """What was to be written can never be stored: it is too large, or no value of the store's."""


class NewerFormat(StoreError):
    """A stored document has a format number above the one this version reads; left untouched."""

    def __init__(self, what: str, found: int, known: int) -> None:
        super().__init__(
            f"{what} was written in format {found}, this version of Stepwell reads up to "
            f"format {known}: upgrade this installation; the document was left untouched"
        )
        self.found = found
        self.known = known
