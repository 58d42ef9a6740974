"""The inbox of a run: messages that others put there for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """A message in a run's mailbox. The body is inline, or in the blob called `blob`.

    Beside a blob `body` is what there is to know without it: of a signal how many bytes it has.
    """

    kind: str
    name: str
    at: int
    body: bytes | None = None
    blob: str | None = None
