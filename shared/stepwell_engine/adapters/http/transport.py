"""A transport for `requests` that no URL can lead astray.

It connects to the very address that the egress guard checked, while the Host header, SNI and the
certificate keep to the name; it follows no redirect, knows no proxy and no credentials; and the
timeout is one for the whole exchange.
"""

import http.client
import io
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, Final

import certifi
import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from stepwell_engine import limits
from stepwell_engine.adapters.http import sockets
from stepwell_engine.adapters.http.egress import Network, Resolver, Target, check
from stepwell_engine.adapters.runners.attempts import is_shortage

# One byte more than a function may send, so that a body which is too large is seen to be.
_MAX_BODY: Final = limits.MAX_RAW_OUTPUT + 1
# What is read of a body that nobody needs, to quote it and to use the connection again.
_MAX_GLANCE: Final = 64 * limits.KIB
_GLANCE_SECONDS: Final = 1.0
_MAX_IDLE: Final = 64  # connections to one address; no fewer than workers use at once
_MAX_IDLE_SECONDS: Final = 60.0

# What a connection says when the peer closed it while it was idle.
_CLOSED: Final = (
    http.client.RemoteDisconnected,
    BrokenPipeError,
    ConnectionResetError,
    ConnectionAbortedError,
    ssl.SSLZeroReturnError,
    ssl.SSLEOFError,
)

_Key = tuple[str, str, int, str]  # scheme, host, port, address


class HostShort(Exception):
    """This host lacks what it takes to send the request; nothing was sent."""


class TooSlow(requests.Timeout):
    """The time was over before the answer came. Resolving the name took `resolving` s of it."""

    def __init__(self, request: requests.PreparedRequest, resolving: float) -> None:
        super().__init__("timed out", request=request)
        self.resolving = resolving


class _Connection(http.client.HTTPConnection):
    """A connection whose socket is opened by the transport."""

    # http.client must not open one by itself: it would resolve the name again.
    auto_open = 0

    def __init__(self, key: _Key, sock: sockets.DeadlineSocket | sockets.DeadlineTlsSocket) -> None:
        super().__init__(key[1], key[2])
        self.key = key
        self.sock = sock
        self.wire = sock
        self.since = 0.0


class GuardedAdapter(BaseAdapter):
    """Sends prepared requests, from many threads at once.

    Beside the errors of `requests`, `send` raises EgressRefused, NameUnresolved and HostShort.
    """

    def __init__(self, allow: Sequence[Network], resolver: Resolver, cafile: str = "") -> None:
        """`allow`: networks that are exempt from the guard. `cafile`: the authorities to trust,
        those of certifi if empty.
        """
        super().__init__()
        self._allow = allow
        self._resolver = resolver
        self._cafile = cafile or certifi.where()
        self._lock = threading.Lock()
        self._idle: dict[_Key, list[_Connection]] = {}
        self._pruned_at = time.monotonic()
        self._closed = False

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,  # noqa: ARG002
        cert: Any = None,  # noqa: ARG002
        proxies: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> requests.Response:
        """One exchange, within `timeout` seconds in all. The body of a success is there in whole,
        or its first MAX_RAW_OUTPUT + 1 bytes. Of any other answer, and with `stream` of every one,
        it is what came of it within a second: how it goes on, or breaks off, decides nothing.
        The other arguments are those of `requests`, without effect.
        """
        began = time.monotonic()
        deadline, resolved = began + timeout, 0.0
        exchange = partial(self._exchange, request=request, deadline=deadline, stream=stream)
        try:
            with _nothing_sent():
                target = check(
                    request.url or "", allow=self._allow, resolver=self._resolver, timeout=timeout
                )
            resolved = time.monotonic()
            reused = self._take(target)
            if reused is not None:
                try:
                    return exchange(reused, target=target)
                except _CLOSED:
                    # The peer closed the connection while it was idle, as it may at any time.
                    # If it did take the request before, it now gets it twice: the idempotency
                    # key in it (webhook-id) says so, as it does after any lost answer.
                    if reused.wire.received:
                        raise
            with _nothing_sent():
                fresh = self._open(target, deadline)
            return exchange(fresh, target=target)
        except TimeoutError as error:
            raise TooSlow(request, (resolved or time.monotonic()) - began) from error
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", None) or error.reason or error
            raise requests.exceptions.SSLError(reason, request=request) from error
        except (OSError, http.client.HTTPException) as error:
            raise requests.ConnectionError(_words(error), request=request) from error

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return sockets.tls_context(self._cafile)

    def close(self) -> None:
        """Close the idle connections now, and those in use after their exchange."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def _take(self, target: Target) -> _Connection | None:
        """An idle connection to one of the addresses, all of which were checked just now."""
        url = target.url
        for address in target.addresses:
            idle = self._idle.get((url.scheme, url.host, url.port, address))
            while idle:
                try:
                    connection = idle.pop()
                except IndexError:  # another thread was quicker
                    break
                if not sockets.has_news(connection.wire):
                    return connection
                # Closed by the peer, or bytes that answer nothing and must not answer the next.
                connection.close()
        return None

    def _open(self, target: Target, deadline: float) -> _Connection:
        """A new connection, to the first address that answers."""
        url = target.url
        tls = self._tls if url.scheme == "https" else None  # which may fail: before the connection
        last = len(target.addresses) - 1
        for index, address in enumerate(target.addresses):
            share = sockets.left(deadline) / (last - index + 1)
            try:
                sock: Any = sockets.connect(address, url.port, time.monotonic() + share)
            except OSError:
                if index == last:
                    raise
                continue
            if tls is not None:
                sock = sockets.wrap(sock, tls, url.host.rstrip("."), deadline)
            return _Connection((url.scheme, url.host, url.port, address), sock)
        raise AssertionError("a target has at least one address")

    def _exchange(
        self,
        connection: _Connection,
        request: requests.PreparedRequest,
        target: Target,
        deadline: float,
        stream: bool,
    ) -> requests.Response:
        wire = connection.wire
        wire.deadline = deadline
        wire.received = 0
        try:
            connection.request(
                request.method or "GET",
                target.url.path,
                body=request.body,
                headers={"Host": target.url.authority, **request.headers},
            )
            answer = connection.getresponse()
            good = requests.codes.ok <= answer.status < requests.codes.multiple_choices
            if good and not stream:
                body = answer.read(_MAX_BODY)
                if len(body) < _MAX_BODY and answer.length:
                    raise http.client.IncompleteRead(body, answer.length)
            else:
                body = _glance(connection, answer, deadline)
        except BaseException:
            connection.close()
            raise
        if answer.isclosed() and connection.sock is not None:
            self._keep(connection)
        else:
            answer.close()
            connection.close()
        return _response(request, answer, body)

    def _keep(self, connection: _Connection) -> None:
        now = connection.since = time.monotonic()
        old: list[_Connection] = []
        with self._lock:
            if self._closed:
                connection.close()
                return
            idle = self._idle.setdefault(connection.key, [])
            idle.append(connection)
            if len(idle) > _MAX_IDLE:
                old.append(idle.pop(0))
            if self._pruned_at + _MAX_IDLE_SECONDS < now:
                self._pruned_at = now
                old += self._prune(lambda one: one.since + _MAX_IDLE_SECONDS < now)
        for one in old:
            one.close()

    def _prune(self, is_old: Callable[[_Connection], bool]) -> list[_Connection]:
        old = [one for idle in self._idle.values() for one in idle if is_old(one)]
        fresh = {key: [one for one in idle if not is_old(one)] for key, idle in self._idle.items()}
        self._idle = {key: idle for key, idle in fresh.items() if idle}
        return old


@contextmanager
def _nothing_sent() -> Iterator[None]:
    """For what comes before the request: a shortage of the host's then costs no attempt."""
    try:
        yield
    except OSError as error:
        if is_shortage(error):
            raise HostShort(_words(error)) from error
        raise


def _glance(connection: _Connection, answer: http.client.HTTPResponse, deadline: float) -> bytes:
    """What comes soon of a body, all of it or not; a body with more to come closes `connection`."""
    connection.wire.deadline = min(deadline, time.monotonic() + _GLANCE_SECONDS)
    length = answer.length  # read1 does not count it down in every Python
    most = _MAX_GLANCE if length is None else min(length, _MAX_GLANCE)
    body = b""
    whole = False
    try:
        while len(body) < most and (some := answer.read1(most - len(body))):
            body += some
        whole = len(body) == length or (bool(answer.chunked) and answer.isclosed())
    except (OSError, http.client.HTTPException):
        pass  # the status has come: that decides
    answer.close()
    if not whole:
        connection.close()
    return body


def _response(
    request: requests.PreparedRequest, answer: http.client.HTTPResponse, body: bytes
) -> requests.Response:
    response = requests.Response()
    response.status_code = answer.status
    response.reason = answer.reason
    response.headers = CaseInsensitiveDict(answer.getheaders())
    response.raw = io.BytesIO(body)
    response.request = request
    response.url = request.url or ""
    return response


def _words(error: Exception) -> str:
    match error:
        case http.client.RemoteDisconnected():
            return "the connection was closed without an answer"
        case http.client.IncompleteRead():
            return "the connection was closed in the middle of the answer"
        case http.client.HTTPException():
            return f"the answer is not HTTP ({type(error).__name__})"
        case OSError():
            return error.strerror or str(error)
        case _:
            return str(error)
