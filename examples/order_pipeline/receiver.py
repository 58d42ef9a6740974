"""The other side of the webhooks: an HTTP server that checks signatures and logs deliveries.

Written from the Standard Webhooks specification (https://www.standardwebhooks.com), as the owner
of a payment service would write it.
"""

import base64
import hashlib
import hmac
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

TOLERANCE = 300  # seconds between the sender's clock and ours


@dataclass(frozen=True, slots=True)
class Delivery:
    """A request that came in. `fault` says what is wrong with its signature, None if nothing."""

    at: float
    path: str
    webhook_id: str
    fault: str | None


def signature_fault(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> str | None:
    """What is wrong with a signed request; None if it is genuine and fresh."""
    message_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    signatures = headers.get("webhook-signature", "")
    if not (message_id and timestamp and signatures):
        return "webhook-id, webhook-timestamp or webhook-signature is missing"
    if not timestamp.isdecimal() or abs(now - int(timestamp)) > TOLERANCE:
        return f"webhook-timestamp {timestamp} is not within five minutes of now"
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    for entry in signatures.split(" "):
        version, _, signature = entry.partition(",")
        if version == "v1" and hmac.compare_digest(signature.encode(), expected):
            return None
    return "no v1 signature matches"


class Receiver:
    """Takes webhooks on a free loopback port until the `with` block ends."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._deliveries: list[Delivery] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """The address of the server, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def deliveries(self) -> tuple[Delivery, ...]:
        """All that came in so far."""
        return tuple(self._deliveries)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        secret, deliveries = self._secret, self._deliveries

        class Handler(BaseHTTPRequestHandler):
            """Answers 204 to a genuine request, 401 to any other."""

            protocol_version = "HTTP/1.1"
            timeout = 5  # seconds without a byte end a connection

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                now = time.time()
                fault = signature_fault(secret, headers, body, now)
                deliveries.append(Delivery(now, self.path, headers.get("webhook-id", ""), fault))
                self.send_response(401 if fault else 204)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """The demo prints what it wants to be seen."""

        return Handler
