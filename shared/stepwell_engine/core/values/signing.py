"""Signatures of messages in the Standard Webhooks form (standardwebhooks.com).

What is signed is `id.timestamp.body`, with HMAC-SHA256. The three headers are `webhook-id`,
`webhook-timestamp` (seconds since the epoch) and `webhook-signature`: one or more signatures
`v1,<base64>`, separated by spaces, so that a key can be replaced without a gap.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable
from typing import Final

from stepwell_engine.limits import MAX_SKEW

ID_HEADER: Final = "webhook-id"
TIMESTAMP_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"

_PREFIX: Final = "whsec_"
_VERSION: Final = "v1,"


def sign(secret: str, message_id: str, timestamp_s: int, body: bytes) -> str:
    """The signature, `v1,<base64>`.

    A secret `whsec_…` is base64 after the prefix, any other its UTF-8 bytes. ValueError for one
    with the prefix whose rest is not base64.
    """
    signed = b"%s.%d.%s" % (message_id.encode(), timestamp_s, body)
    digest = hmac.digest(_key(secret), signed, hashlib.sha256)
    return _VERSION + base64.b64encode(digest).decode()


def verify(
    secrets: Iterable[str],
    message_id: str,
    timestamp: str,
    signatures: str,
    body: bytes,
    now_s: int,
) -> bool:
    """Whether one of `signatures` (the header) was made with one of `secrets`.

    False as well for a timestamp that is no number or more than MAX_SKEW away from
    `now_s`. Takes the same time wherever a signature differs.
    """
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= len("9999999999")):
        return False
    timestamp_s = int(timestamp)
    if abs(now_s - timestamp_s) > MAX_SKEW:
        return False
    given = [one.encode() for one in signatures.split(" ") if one.startswith(_VERSION)]
    matches = False
    for secret in secrets:
        expected = sign(secret, message_id, timestamp_s, body).encode()
        for one in given:
            matches |= hmac.compare_digest(expected, one)
    return matches


def _key(secret: str) -> bytes:
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError as error:  # binascii.Error, or a letter beyond ASCII
        raise ValueError(f"a secret that begins with {_PREFIX} must go on in base64") from error
