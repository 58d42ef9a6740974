"""Signatures in the Standard Webhooks form."""

import base64
import hashlib
import hmac

import pytest

from stepwell_engine.core.values.signing import sign, verify
from stepwell_engine.limits import MAX_SKEW

# The example of the Standard Webhooks reference libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
AT = 1614265330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_published_example_is_met() -> None:
    assert sign(SECRET, ID, AT, BODY) == SIGNATURE
    assert verify([SECRET], ID, str(AT), SIGNATURE, BODY, AT)


@pytest.mark.parametrize("secret", ["a-signing-secret", "clé", "", "WHSEC_AAAA"])
def test_a_secret_without_the_prefix_is_its_own_bytes(secret: str) -> None:
    signed = b"r:s.1700000000." + BODY
    digest = hmac.new(secret.encode("utf-8"), signed, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(digest).decode()
    assert sign(secret, "r:s", 1_700_000_000, BODY) == expected


@pytest.mark.parametrize("secret", ["whsec_no base64!", "whsec_abc", "whsec_é"])
def test_a_damaged_secret_is_refused_without_being_quoted(secret: str) -> None:
    with pytest.raises(ValueError, match="must go on in base64") as caught:
        sign(secret, ID, AT, BODY)
    assert secret not in str(caught.value)


def test_one_of_several_signatures_and_secrets_is_enough() -> None:
    header = f"v1,AAAA {SIGNATURE} v2,something"
    assert verify(["another", SECRET], ID, str(AT), header, BODY, AT)


@pytest.mark.parametrize("skew", [-MAX_SKEW, 0, MAX_SKEW])
def test_a_timestamp_within_five_minutes_is_taken(skew: int) -> None:
    assert MAX_SKEW == 300
    assert verify([SECRET], ID, str(AT), SIGNATURE, BODY, AT + skew)


@pytest.mark.parametrize("skew", [-MAX_SKEW - 1, MAX_SKEW + 1])
def test_an_older_or_newer_timestamp_is_refused(skew: int) -> None:
    assert not verify([SECRET], ID, str(AT), SIGNATURE, BODY, AT + skew)


@pytest.mark.parametrize("timestamp", ["", "now", "-5", "1614265330.0", "١٦١٤٢٦٥٣٣٠", "9" * 5000])
def test_a_timestamp_that_is_no_number_is_refused(timestamp: str) -> None:
    assert not verify([SECRET], ID, timestamp, SIGNATURE, BODY, AT)


@pytest.mark.parametrize(
    ("message_id", "signatures", "body"),
    [
        ("other", SIGNATURE, BODY),
        (ID, SIGNATURE, b"{}"),
        (ID, SIGNATURE.lower(), BODY),
        (ID, SIGNATURE[:-4], BODY),
        (ID, SIGNATURE.removeprefix("v1,"), BODY),
        (ID, "v1,é", BODY),
        (ID, "", BODY),
    ],
)
def test_what_was_altered_is_refused(message_id: str, signatures: str, body: bytes) -> None:
    assert not verify([SECRET], message_id, str(AT), signatures, body, AT)
    assert not verify([], message_id, str(AT), signatures, body, AT)
