"""The demo's receiver tells genuine webhooks from others."""

import http.client
from urllib.parse import urlsplit

import pytest

from examples.order_pipeline.receiver import Receiver, signature_fault

# The example of the Standard Webhooks specification.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
BODY = b'{"test": 2432232314}'
NOW = 1614265330


def test_the_example_of_the_specification_is_genuine() -> None:
    assert signature_fault(SECRET, HEADERS, BODY, NOW) is None
    assert signature_fault(SECRET, HEADERS, BODY, NOW + 300) is None


def test_one_of_several_signatures_is_enough() -> None:
    several = f"v1,AAAA v1a,BBBB {HEADERS['webhook-signature']}"
    assert signature_fault(SECRET, HEADERS | {"webhook-signature": several}, BODY, NOW) is None


@pytest.mark.parametrize(
    ("changed", "body", "now"),
    [
        ({"webhook-id": "other"}, BODY, NOW),
        ({"webhook-id": ""}, BODY, NOW),
        ({"webhook-timestamp": "1614265331"}, BODY, NOW),
        ({"webhook-timestamp": "soon"}, BODY, NOW),
        ({"webhook-signature": "v1,AAAA"}, BODY, NOW),
        ({"webhook-signature": HEADERS["webhook-signature"].replace("v1", "v2")}, BODY, NOW),
        ({"webhook-signature": "v1,é"}, BODY, NOW),
        ({}, BODY + b" ", NOW),
        ({}, BODY, NOW + 301),
        ({}, BODY, NOW - 301),
    ],
)
def test_anything_else_is_not(changed: dict[str, str], body: bytes, now: int) -> None:
    assert signature_fault(SECRET, HEADERS | changed, body, now) is not None


def test_a_request_without_a_signature_is_refused_and_logged() -> None:
    with Receiver(SECRET) as receiver:
        connection = http.client.HTTPConnection(urlsplit(receiver.url).netloc, timeout=10)
        connection.request("POST", "/charge", b"{}", {"webhook-id": "run:charge"})
        status = connection.getresponse().status
        connection.close()

    assert status == 401
    assert [(one.path, one.webhook_id) for one in receiver.deliveries] == [
        ("/charge", "run:charge")
    ]
    assert receiver.deliveries[0].fault is not None
