"""Functions on Lambda: called with the event, within their time, their errors in their words."""

import json
import threading
from collections.abc import Iterator

import pytest

from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.adapters.runners.lambda_function import LambdaFunctions, invoke_later
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Failed, Outcome, Succeeded
from stepwell_engine.settings.aws import AwsSettings
from tests.adapters.attempts import attempt, failure
from tests.adapters.outputs import RAW_OUTPUTS, Returned
from tests.aws.installation import clients, endpoint
from tests.aws.lambda_api import LambdaApi, Result, serving

ARN = "arn:aws:lambda:us-east-1:123456789012:function:reserve:live"
RESERVE = attempt(Kind.FUNCTION, "reserve-stock")


@pytest.fixture
def api(settings: AwsSettings) -> Iterator[LambdaApi]:
    with serving() as api, endpoint("lambda", api.url):
        yield api


def call(timeout: int = 20_000) -> Outcome:
    one = attempt(Kind.FUNCTION, "reserve-stock", timeout=timeout)
    return LambdaFunctions(clients()).call(ARN, one, Deadline(timeout))


def test_a_function_gets_the_event_and_its_result_is_the_output(api: LambdaApi) -> None:
    api.answer = lambda _: Result(b'{"reserved": [1, 2.50, "\xc3\xa9"]}')
    assert call() == Succeeded('{"reserved":[1,2.5,"é"]}'.encode())
    (invocation,) = api.invocations
    assert (invocation.function, invocation.kind) == (ARN, "RequestResponse")
    assert invocation.event == {
        "payload": RESERVE.payload,
        "run_id": RESERVE.run_id,
        "workflow": RESERVE.workflow,
        "step": RESERVE.step,
        "attempt": RESERVE.number,
        "idempotency_key": RESERVE.idempotency_key,
    }


def test_a_function_is_called_in_the_region_of_its_arn(api: LambdaApi) -> None:
    call()
    regions = {key[1] for key in clients()._made if key[0] == "lambda"}
    assert regions == {"us-east-1"}


def test_null_is_no_output(api: LambdaApi) -> None:
    assert call() == Succeeded(None)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"errorType": "OutOfStock", "errorMessage": "no lamps"}, "OutOfStock: no lamps"),
        ({"errorMessage": "Task timed out after 3.00 seconds"}, "Task timed out after 3.00 sec"),
        ({"other": 1}, '{"other": 1}'),
        ("text", '"text"'),
    ],
)
def test_a_function_that_raises_is_a_failed_attempt_in_its_words(
    api: LambdaApi, body: object, words: str
) -> None:
    api.answer = lambda _: Result(json.dumps(body).encode(), error="Unhandled")
    failed = failure(call())
    assert failed.message.startswith(f'the function "reserve-stock" failed: {words}')
    assert failed.retryable


def test_a_function_that_fails_without_words_is_a_failed_attempt(api: LambdaApi) -> None:
    api.answer = lambda _: Result(b"", error="Unhandled")
    assert failure(call()).message == 'the function "reserve-stock" failed: '


def test_a_function_that_takes_too_long_is_timed_out(api: LambdaApi) -> None:
    over = threading.Event()

    def wait(_: object) -> Result:
        over.wait(30)
        return Result()

    api.answer = wait
    failed = failure(call(timeout=1_000))
    over.set()
    assert (failed.code, failed.retryable) == ("timeout", True)
    assert failed.message == 'the function "reserve-stock" timed out after 1 s'
    assert len(api.invocations) == 1


def test_a_function_that_is_not_there_is_not_tried_again(api: LambdaApi) -> None:
    body = b'{"Message":"Function not found"}'
    api.answer = lambda _: Result(body, 404, code="ResourceNotFoundException")
    assert call() == Failed(
        f'the function "reserve-stock" does not exist on Lambda: {ARN}',
        code="unknown_resource",
        retryable=False,
    )


@pytest.mark.parametrize(
    ("status", "code"),
    [(429, "TooManyRequestsException"), (403, "AccessDeniedException"), (500, "ServiceException")],
)
def test_a_refusal_of_lambda_is_tried_again_by_the_run_not_by_the_client(
    api: LambdaApi, status: int, code: str
) -> None:
    api.answer = lambda _: Result(b'{"Message":"in its words"}', status, code=code)
    failed = failure(call())
    assert failed.message.startswith('the function "reserve-stock" could not be invoked: in its')
    assert failed.retryable
    assert len(api.invocations) == 1


@pytest.mark.parametrize("returned", RAW_OUTPUTS, ids=lambda one: one.name)
def test_an_output_may_be_so_large(api: LambdaApi, returned: Returned) -> None:
    api.answer = lambda _: Result(returned.body)
    returned.check(call())


def test_a_server_that_is_not_there_is_a_failed_attempt(settings: AwsSettings) -> None:
    with endpoint("lambda", "http://127.0.0.1:9"):
        failed = failure(call())
    assert "could not be invoked: Could not connect" in failed.message


def test_a_function_is_invoked_later_without_waiting_for_it(api: LambdaApi) -> None:
    api.answer = lambda _: Result(b"", 202)
    assert invoke_later(clients(), ARN, b'{"cursor":"x"}')
    (invocation,) = api.invocations
    assert (invocation.kind, invocation.event) == ("Event", {"cursor": "x"})
    api.answer = lambda _: Result(b"{}", 403, code="AccessDeniedException")
    assert not invoke_later(clients(), ARN, b"{}")
