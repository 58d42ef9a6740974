"""Steps of the kind function: which function is called, and functions by URL."""

import gzip
import json

import pytest

from stepwell_engine import limits
from stepwell_engine.adapters.http.client import HttpClient
from stepwell_engine.adapters.memory.resources import MemoryResources
from stepwell_engine.adapters.runners.function import FunctionRunner
from stepwell_engine.adapters.runners.url_function import UrlFunctions
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Failed, Outcome, Succeeded
from tests.adapters.attempts import StillClock, attempt, failure, output, resource
from tests.adapters.outputs import RAW_OUTPUTS, Returned
from tests.adapters.receivers import Receiver

REINDEX = attempt(Kind.FUNCTION, "reindex")


@pytest.fixture
def runner(client: HttpClient, resources: MemoryResources, receiver: Receiver) -> FunctionRunner:
    resources.put(resource("function", "reindex", {"url": receiver.url}))
    return FunctionRunner(resources, {"url": UrlFunctions(client).call}, StillClock())


def test_a_function_that_is_not_registered_is_an_unknown_resource() -> None:
    assert FunctionRunner(MemoryResources(), {}, StillClock()).run(REINDEX) == Failed(
        'this project has no function "reindex": register it with '
        "PUT /v1/projects/shop/functions/reindex",
        code="unknown_resource",
        retryable=False,
    )


def test_a_kind_of_function_that_cannot_be_called_here_is_refused(
    resources: MemoryResources, runner: FunctionRunner
) -> None:
    resources.put(resource("function", "reindex", {"python": "a:b"}))
    failed = failure(runner.run(REINDEX))
    assert "one by python, which this installation cannot call, only those by url" in failed.message
    assert (failed.code, failed.retryable) == ("unknown_resource", False)


def test_a_change_of_the_function_takes_effect_at_once(resources: MemoryResources) -> None:
    called: list[str] = []

    def call(target: str, *_: object) -> Outcome:
        called.append(target)
        return Succeeded()

    runner = FunctionRunner(resources, {"url": call}, StillClock())
    for url in ("http://a/", "http://b/"):
        resources.put(resource("function", "reindex", {"url": url}))
        runner.run(REINDEX)
    assert called == ["http://a/", "http://b/"]


def test_a_url_gets_the_event_and_its_answer_is_the_output(
    runner: FunctionRunner, receiver: Receiver
) -> None:
    receiver.body = b' {"indexed" : [1, 2.50, "\xc3\xa9"]}\n'
    assert runner.run(REINDEX) == Succeeded('{"indexed":[1,2.5,"é"]}'.encode())
    (request,) = receiver.requests
    assert json.loads(request.body) == {
        "payload": {"amount": 4900},
        "run_id": "0190-run",
        "workflow": "order",
        "step": "charge",
        "attempt": 2,
        "idempotency_key": "0190-run:charge",
    }
    assert request.headers["content-type"] == "application/json"
    assert request.headers["idempotency-key"] == "0190-run:charge"


@pytest.mark.parametrize("body", [b"", b" \r\n", b"null"])
def test_an_empty_answer_is_no_output(
    runner: FunctionRunner, receiver: Receiver, body: bytes
) -> None:
    receiver.body = body
    assert runner.run(REINDEX) == Succeeded(None)


@pytest.mark.parametrize("value", [0, False, "", [], {}, "text"])
def test_any_json_value_can_be_the_output(
    runner: FunctionRunner, receiver: Receiver, value: object
) -> None:
    receiver.body = json.dumps(value).encode()
    assert output(runner.run(REINDEX)) == value


@pytest.mark.parametrize("body", [b"<html>", b"{", b"NaN", b'"\xff"', b'"\\ud800"', b"[" * 100_000])
def test_an_answer_that_is_no_json_fails_the_attempt(
    runner: FunctionRunner, receiver: Receiver, body: bytes
) -> None:
    receiver.body = body
    failed = failure(runner.run(REINDEX))
    assert failed.message.startswith(f"what POST {receiver.url} answered with 200 is no JSON")
    assert len(failed.message) < limits.MAX_ERROR_TEXT
    assert failed.retryable


@pytest.mark.parametrize("encoding", ["gzip", "br, gzip"])
def test_an_answer_that_is_encoded_fails_the_attempt_with_what_would_be_right(
    runner: FunctionRunner, receiver: Receiver, encoding: str
) -> None:
    receiver.body = gzip.compress(b'{"indexed": 1}')
    receiver.headers = {"content-encoding": encoding}
    assert runner.run(REINDEX) == Failed(
        f"what POST {receiver.url} answered with 200 has the Content-Encoding {encoding}: it must "
        "have none, as Accept-Encoding: identity asks for"
    )
    assert receiver.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("encoding", "body"), [("identity", b"1"), ("Identity ", b"1"), ("gzip", b"")]
)
def test_an_encoding_that_changes_nothing_does_no_harm(
    runner: FunctionRunner, receiver: Receiver, encoding: str, body: bytes
) -> None:
    receiver.body = body
    receiver.headers = {"content-encoding": encoding}
    assert runner.run(REINDEX) == Succeeded(body or None)


@pytest.mark.parametrize("depth", [limits.MAX_NESTING, limits.MAX_NESTING + 1])
def test_an_output_may_nest_so_deep(runner: FunctionRunner, receiver: Receiver, depth: int) -> None:
    receiver.body = b"[" * depth + b"]" * depth
    outcome = runner.run(REINDEX)
    if depth <= limits.MAX_NESTING:
        assert outcome == Succeeded(receiver.body)
    else:
        assert "nests deeper than 200 levels" in failure(outcome).message


@pytest.mark.parametrize("returned", RAW_OUTPUTS, ids=lambda one: one.name)
def test_an_output_may_be_so_large(
    runner: FunctionRunner, receiver: Receiver, returned: Returned
) -> None:
    receiver.body = returned.body
    returned.check(runner.run(REINDEX))


def test_an_output_that_is_too_large_says_how_large_one_may_be(
    runner: FunctionRunner, receiver: Receiver
) -> None:
    what = f"what POST {receiver.url} answered with 200"
    for size, words in (
        (262_145, "has 262,145 bytes as compact JSON, at most 262,144 are allowed"),
        (
            1_048_577,
            "has more than 1,048,576 bytes, the most that is read; "
            "as compact JSON at most 262,144 are allowed",
        ),
    ):
        receiver.body = b'"' + b"x" * (size - 2) + b'"'
        assert runner.run(REINDEX) == Failed(
            f"{what} {words}", code="output_too_large", retryable=False
        )


def test_another_status_is_a_failure(runner: FunctionRunner, receiver: Receiver) -> None:
    receiver.status = 503
    receiver.body = b"busy"
    receiver.headers = {"retry-after": "7"}
    assert runner.run(REINDEX) == Failed(
        f"POST {receiver.url} answered 503: busy", retry_after=7_000
    )
