"""What all step runners share: reading an attempt, and putting an outcome into words."""

import errno
import os
from typing import Any, Final

from stepwell_engine import limits
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.run.attempt import Attempt, Deferred, Failed, Outcome, Succeeded
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.errors import StoreError
from stepwell_engine.ports import Resource, Resources, Secrets

# Files and sockets, memory, processes and threads.
_SHORTAGES: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN}
)
# Of libraries that pass on the words alone.
_SHORTAGE_WORDS: Final = tuple(os.strerror(number) for number in (errno.EMFILE, errno.ENFILE))
NO_THREAD: Final = "the host can start no further thread"
_MAX_EXCERPT: Final = 500  # characters
_NAMED: Final = 0.1  # of an attempt's time: a look-up that took as much is named
_PATHS: Final = {
    "queue": "queues/{name}",
    "function": "functions/{name}",
    "database": "database",
}


def event_of(attempt: Attempt) -> dict[str, Any]:
    """What a function is called with."""
    return {
        "payload": attempt.payload,
        "run_id": attempt.run_id,
        "workflow": attempt.workflow,
        "step": attempt.step,
        "attempt": attempt.number,
        "idempotency_key": attempt.idempotency_key,
    }


def find(
    resources: Resources, attempt: Attempt, deadline: Deadline, kind: str, name: str
) -> Resource | Failed | Deferred:
    """The resource that a step names, or why the step cannot go on."""
    if deadline.passed():
        return deferred(deadline)
    try:
        with deadline.looking_up(f'looking up the {kind} "{name}"'):
            resource = resources.get(attempt.project, kind, name, deadline.ms)
    except StoreError as error:
        return Deferred(f'the {kind} "{name}" cannot be looked up now: {error}')
    if deadline.passed():
        return deferred(deadline)
    return unknown_resource(attempt, kind, name) if resource is None else resource


def unseal(
    secrets: Secrets, sealed: str, attempt: Attempt, deadline: Deadline, what: str
) -> str | Deferred:
    """A secret of the project, or why the step cannot go on now. ValueError as `Secrets.open`."""
    if deadline.passed():
        return deferred(deadline)
    try:
        with deadline.looking_up(f"opening {what}"):
            plain = secrets.open(sealed, attempt.project, deadline.ms)
    except StoreError as error:
        return Deferred(f"{what} cannot be opened now: {error}")
    return deferred(deadline) if deadline.passed() else plain


def deferred(deadline: Deadline) -> Deferred:
    """The time of an attempt is over, and nothing has gone out.

    It costs no attempt: the catalog, KMS and this host's own speed are the installation's, and
    the next try, two seconds later, mostly finds at hand what was slow to come.
    """
    return Deferred(
        f"the attempt could not begin within its {_seconds(deadline)} s{_blamed(deadline)}"
    )


def is_shortage(error: BaseException) -> bool:
    """Whether this host lacks what it takes: descriptors, memory, processes."""
    if isinstance(error, OSError) and error.errno in _SHORTAGES:
        return True
    return any(words in str(error) for words in _SHORTAGE_WORDS)


def unknown_resource(attempt: Attempt, kind: str, name: str) -> Failed:
    """The resource that a step names is not registered: nothing that a retry could mend."""
    path = f"/v1/projects/{attempt.project}/{_PATHS[kind].format(name=name)}"
    what = "no database" if kind == "database" else f'no {kind} "{name}"'
    return Failed(
        f"this project has {what}: register it with PUT {path}",
        code="unknown_resource",
        retryable=False,
    )


def timed_out(what: str, deadline: Deadline) -> Failed:
    """`what` began, and was not done in time."""
    text = f"{what} timed out after {_seconds(deadline)} s{_blamed(deadline)}"
    return Failed(text, code="timeout")


def _seconds(deadline: Deadline) -> str:
    return f"{deadline.timeout / limits.SECOND:g}"


def _blamed(deadline: Deadline) -> str:
    lookup, seconds = deadline.longest_lookup
    if seconds * limits.SECOND < deadline.timeout * _NAMED:
        return ""
    return f": {lookup} took {seconds:.1f} s of them"


def output_of(value: Any, what: str) -> Outcome:
    """The outcome whose output is `value`, which `what` returned. null is no output."""
    if value is None:
        return Succeeded()
    if jsonvalue.is_deeper(value, limits.MAX_NESTING):
        return Failed(f"{what} nests deeper than {limits.MAX_NESTING} levels, or contains itself")
    try:
        output = jsonvalue.encode(value)
    except ValueError as error:
        return Failed(f"{what} is no JSON: {error}")
    if len(output) > limits.MAX_OUTPUT:
        size = f"{len(output):,} bytes as compact JSON"
        return _too_large(f"{what} has {size}, at most {limits.MAX_OUTPUT:,} are allowed")
    return Succeeded(output)


def output_from(text: bytes, what: str) -> Outcome:
    """The outcome whose output is the JSON in `text`, which `what` returned; empty is no output.

    Of more than MAX_RAW_OUTPUT bytes one more is enough.
    """
    if len(text) > limits.MAX_RAW_OUTPUT:
        return too_long(what)
    if not text.strip():
        return Succeeded()
    try:
        value = jsonvalue.decode(text)
    except ValueError as error:
        return Failed(f"{what} is no JSON ({error}): {excerpt(text)}")
    return output_of(value, what)


def too_long(what: str) -> Failed:
    """What a function sent exceeds MAX_RAW_OUTPUT, so that nobody knows how large its value is."""
    return _too_large(
        f"{what} has more than {limits.MAX_RAW_OUTPUT:,} bytes, the most that is read; as compact "
        f"JSON at most {limits.MAX_OUTPUT:,} are allowed"
    )


def _too_large(text: str) -> Failed:
    return Failed(text, code="output_too_large", retryable=False)


def excerpt(text: bytes) -> str:
    """The first 500 characters."""
    return text[: 4 * _MAX_EXCERPT].decode("utf-8", "replace")[:_MAX_EXCERPT].strip()
