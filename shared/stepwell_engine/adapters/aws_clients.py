"""Clients of AWS services: one session, each client made when it is first needed.

A session loads what all clients share once; a second one would cost the functions' start as much
as the first. Region, credentials and endpoints are those of the environment.
"""

import threading
from typing import Any, Final

import botocore.session  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    HTTPClientError,
    ReadTimeoutError,
)

from stepwell_engine.core.values.units import Ms
from stepwell_engine.limits import SECOND

CONNECT_SECONDS: Final = 1  # for a new connection, beside the time of the call
READ_SECONDS: Final = 5
# An argument of every call: the seconds that its answer may take, instead of READ_SECONDS.
TIMEOUT: Final = "TimeoutSeconds"

ERRORS: Final = (BotoCoreError, ClientError)
LOST: Final = (HTTPClientError,)
TIMED_OUT: Final = (ReadTimeoutError,)

CONNECTIONS: Final = 100  # of a client; no fewer than threads that may use it at once


class Clients:
    """The clients of one home, for any number of threads."""

    def __init__(self, region: str | None = None) -> None:
        """`region` None is that of the environment."""
        self.session = botocore.session.get_session()
        self._region = region
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str | None, int], Any] = {}

    def get(self, service: str, *, attempts: int, region: str | None = None) -> Any:
        """The client of a service, which makes a call up to `attempts` times.

        More than one only for calls that may be repeated although they had their effect.
        """
        key = (service, region or self._region, attempts)
        with self._lock:
            if key not in self._made:
                self._made[key] = self._make(*key)
            return self._made[key]

    def _make(self, service: str, region: str | None, attempts: int) -> Any:
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": attempts},
            max_pool_connections=CONNECTIONS,
            tcp_keepalive=True,
        )
        client = self.session.create_client(service, region_name=region, config=config)
        take_timeouts(client)
        return client


def take_timeouts(client: Any) -> None:
    """Let the calls of a client take the argument TIMEOUT."""
    client.meta.events.register("before-parameter-build", _set_timeout)


def bounded(within: Ms | None) -> dict[str, float]:
    """The argument that bounds a call to `within` ms, if that is less than READ_SECONDS."""
    if within is None or within >= READ_SECONDS * SECOND:
        return {}
    return {TIMEOUT: max(within, 1) / SECOND}


def code_of(error: Exception) -> str:
    """The code that a service refused a call with; empty if none answered."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", ""))
    return ""


def message_of(error: Exception) -> str:
    """What a service, or botocore, says went wrong."""
    if isinstance(error, ClientError):
        found = error.response.get("Error", {})
        return str(found.get("Message") or found.get("Code") or error)
    return str(error)


def _set_timeout(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    seconds = params.pop(TIMEOUT, None)
    if seconds is not None:
        context["read_timeout"] = seconds
