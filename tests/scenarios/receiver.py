"""A receiver on loopback that a story scripts: webhooks and functions by URL end here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tools.loopback import Call, Reply, answering

__all__ = ["Call", "Receiver", "Reply", "receiving"]


class Receiver:
    """Keeps what came in, and answers what `answer` says: everything with 200 at first.

    `answer` is called in a thread of the receiver's while the step is in flight.
    """

    def __init__(self) -> None:
        self.url = ""
        self.calls: list[Call] = []
        self.answer: Callable[[Call], Reply] = lambda _: Reply()

    def at(self, path: str) -> list[Call]:
        """The requests to one path."""
        return [call for call in self.calls if call.path == path]

    def script(self, *replies: Reply) -> None:
        """Answer with these, one after the other, the last one for ever."""
        left = list(replies)
        self.answer = lambda _: left.pop(0) if len(left) > 1 else left[0]

    def take(self, call: Call) -> Reply:
        """Keep a request, and answer it."""
        self.calls.append(call)
        return self.answer(call)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver."""
    receiver = Receiver()
    with answering(receiver.take) as receiver.url:
        yield receiver
