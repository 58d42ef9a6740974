"""A server that answers Lambda's Invoke, on loopback."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tools.loopback import Call, Reply, answering


@dataclass(frozen=True)
class Invocation:
    """What came in."""

    function: str
    kind: str
    event: Any


@dataclass(frozen=True)
class Result:
    """What goes out. `error` is the header of a function that failed; `code` of a refusal."""

    body: bytes = b"null"
    status: int = 200
    error: str | None = None
    code: str | None = None


@dataclass
class LambdaApi:
    """The server's end; `answer` says what a function returns."""

    url: str = ""
    invocations: list[Invocation] = field(default_factory=list)
    answer: Callable[[Invocation], Result] = lambda _: Result()

    def invoke(self, call: Call) -> Reply:
        """Keep an invocation, and answer it."""
        function = unquote(call.path.split("/")[3])
        kind = call.headers.get("x-amz-invocation-type", "RequestResponse")
        invocation = Invocation(function, kind, call.body)
        self.invocations.append(invocation)
        result = self.answer(invocation)
        headers = {"x-amz-function-error": result.error, "x-amzn-errortype": result.code}
        said = {name: value for name, value in headers.items() if value is not None}
        return Reply(result.status, result.body, said)


@contextmanager
def serving() -> Iterator[LambdaApi]:
    """Run a server on a free port."""
    api = LambdaApi()
    with answering(api.invoke) as api.url:
        yield api
