"""The transport: pinned addresses, kept connections, one deadline for everything."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from stepwell_engine import limits
from stepwell_engine.adapters.http.client import Answer, HttpClient
from stepwell_engine.adapters.http.resolver import SystemResolver
from stepwell_engine.adapters.http.transport import GuardedAdapter
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.run.attempt import Deferred, Failed
from tests.adapters import receivers
from tests.adapters.attempts import StillClock
from tests.adapters.certificates import server_context
from tests.adapters.conftest import LOOPBACK, names
from tests.adapters.receivers import Receiver, Script, dripping, saying, scripted, serving

NAME = "hooks.example.test"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


@dataclass(frozen=True)
class Secure:
    """A receiver with a certificate for NAME, and a client that trusts its authority."""

    client: HttpClient
    port: int

    def post(self, host: str) -> Answer | Failed | Deferred:
        return post(self.client, f"https://{host}:{self.port}/")


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Secure]:
    resolver = names(hooks_example_test=["127.0.0.1"], other_example_test=["127.0.0.1"])
    with serving(Receiver(body=b"secure"), server_context(tmp_path, NAME)) as receiver:
        adapter = GuardedAdapter(LOOPBACK, resolver, str(tmp_path / "ca.pem"))
        yield Secure(HttpClient(adapter, StillClock()), receiver.port)
        adapter.close()


def post(client: HttpClient, url: str, timeout: int = 30_000) -> Answer | Failed | Deferred:
    return client.post(url, {"x-test": "yes"}, b'{"a":1}', Deadline(timeout))


def test_a_request_arrives_whole(client: HttpClient, receiver: Receiver) -> None:
    receiver.body = b"thanks"
    answer = post(client, receiver.url + "?token=abc")
    assert answer == Answer(200, b"thanks", f"POST {receiver.url}")
    (request,) = receiver.requests
    assert (request.path, request.body) == ("/hook?token=abc", b'{"a":1}')
    assert request.headers == {
        "host": f"127.0.0.1:{receiver.port}",
        "content-type": "application/json",
        "content-length": "7",
        "accept-encoding": "identity",
        "user-agent": "Stepwell/1",
        "x-test": "yes",
    }


def test_the_connection_goes_to_the_address_and_the_host_header_keeps_the_name(
    receiver: Receiver,
) -> None:
    # Nobody but this resolver knows the name, and it knows it once only.
    known = {NAME: ["127.0.0.1"]}
    adapter = GuardedAdapter(LOOPBACK, lambda host, _: known.pop(host.rstrip(".")))
    client = HttpClient(adapter, StillClock())
    assert isinstance(post(client, f"http://{NAME}.:{receiver.port}/"), Answer)
    assert receiver.requests[0].headers["host"] == f"{NAME}:{receiver.port}"
    assert known == {}
    adapter.close()


def test_a_connection_is_kept_and_used_again(client: HttpClient, receiver: Receiver) -> None:
    for _ in range(5):
        assert isinstance(post(client, receiver.url), Answer)
    assert receiver.connections == 1


def test_a_kept_connection_is_not_used_once_its_address_is_no_longer_the_names(
    receiver: Receiver,
) -> None:
    addresses = ["127.0.0.1"]
    adapter = GuardedAdapter(LOOPBACK, names(hooks_example_test=addresses))
    client = HttpClient(adapter, StillClock())
    url = f"http://{NAME}:{receiver.port}/"
    assert isinstance(post(client, url), Answer)
    addresses[:] = ["10.0.0.1"]
    assert isinstance(post(client, url), Failed)
    addresses[:] = ["127.0.0.2"]  # closed there: the server listens on 127.0.0.1
    assert isinstance(post(client, url), Failed)
    assert len(receiver.requests) == 1
    adapter.close()


def test_the_next_address_is_tried_if_one_does_not_answer(receiver: Receiver) -> None:
    adapter = GuardedAdapter(LOOPBACK, names(hooks_example_test=["127.0.0.9", "127.0.0.1", "::1"]))
    url = f"http://{NAME}:{receiver.port}/"
    assert isinstance(post(HttpClient(adapter, StillClock()), url), Answer)
    adapter.close()


def test_many_threads_share_the_transport(client: HttpClient, receiver: Receiver) -> None:
    outcomes: list[Answer | Failed | Deferred] = []

    def work() -> None:
        for _ in range(10):
            outcomes.append(post(client, receiver.url))

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 160
    assert all(isinstance(outcome, Answer) for outcome in outcomes)
    assert receiver.connections <= 16


def test_a_connection_that_the_peer_closed_while_idle_costs_nothing(
    client: HttpClient, receiver: Receiver
) -> None:
    receiver.hang_up = True
    for number in range(1, 4):
        assert isinstance(post(client, receiver.url), Answer)
        receiver.closed.acquire()
        assert len(receiver.requests) == number


def test_a_kept_connection_that_is_closed_upon_the_next_request_costs_nothing(
    client: HttpClient,
) -> None:
    got: list[bytes] = []

    def script(sock: socket.socket, over: threading.Event) -> None:
        got.append(receivers.read_request(sock))
        sock.sendall(OK)
        receivers.read_request(sock)

    with scripted(script) as url:
        assert isinstance(post(client, url), Answer)
        assert isinstance(post(client, url), Answer)
    assert len(got) == 2


def test_bytes_that_answer_nothing_do_not_answer_the_next_request(client: HttpClient) -> None:
    sent = threading.Event()

    def script(sock: socket.socket, over: threading.Event) -> None:
        while not over.is_set():
            receivers.read_request(sock)
            sock.sendall(OK)
            if not sent.is_set():
                sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfalse")
                sent.set()

    with scripted(script) as url:
        assert isinstance(post(client, url), Answer)
        sent.wait()
        answer = post(client, url)
    assert isinstance(answer, Answer)
    assert answer.body == b"{}"


def test_an_answer_that_had_begun_is_not_asked_for_again(client: HttpClient) -> None:
    got: list[bytes] = []

    def script(sock: socket.socket, over: threading.Event) -> None:
        got.append(receivers.read_request(sock))
        sock.sendall(OK)
        got.append(receivers.read_request(sock))
        sock.sendall(b"HTTP/1.1 2")

    with scripted(script) as url:
        assert isinstance(post(client, url), Answer)
        assert isinstance(post(client, url), Failed)
    assert len(got) == 2


def test_a_new_connection_that_is_closed_without_an_answer_is_a_failure(
    client: HttpClient,
) -> None:
    with scripted(saying(b"")) as url:
        assert post(client, url) == Failed(
            f"POST {url} failed: the connection was closed without an answer"
        )


@pytest.mark.parametrize(
    "script",
    [
        receivers.silent,
        dripping(b"HTTP/1.1 200 OK\r\n", b"x-drop: 1\r\n"),
        dripping(b"HTTP/1.1 200 OK\r\nx-endless: ", b"a"),
        dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        dripping(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", b"a"),
        dripping(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
        dripping(b"HTTP/1.1 200 OK\r\n\r\n", b"a"),
    ],
    ids=["silent", "headers", "header", "continue", "body", "chunks", "unbounded"],
)
def test_no_peer_holds_an_attempt_beyond_its_timeout(client: HttpClient, script: Script) -> None:
    with scripted(script) as url:
        assert post(client, url, 150) == Failed(f"POST {url} timed out after 0.15 s", "timeout")


def test_a_peer_that_does_not_read_holds_no_attempt_either(client: HttpClient) -> None:
    with scripted(receivers.silent) as url:
        outcome = client.post(url, {}, b" " * 20 * limits.MIB, Deadline(150))
    assert outcome == Failed(f"POST {url} timed out after 0.15 s", "timeout")


def test_a_handshake_that_hangs_ends_at_the_timeout(client: HttpClient) -> None:
    with scripted(receivers.silent) as url:
        secure = url.replace("http", "https")
        assert post(client, secure, 150) == Failed(
            f"POST {secure} timed out after 0.15 s", "timeout"
        )


def test_a_resolver_that_hangs_ends_at_the_timeout() -> None:
    def hangs(host: str, timeout: float) -> list[str]:
        raise TimeoutError

    outcome = post(HttpClient(GuardedAdapter((), hangs), StillClock()), f"http://{NAME}/")
    assert outcome == Failed(f"POST http://{NAME}/ timed out after 30 s", "timeout")


def test_nobody_there_is_a_failure(client: HttpClient) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
        assert post(client, url) == Failed(f"POST {url} failed: Connection refused")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"SMTP ready\r\n", "is not HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort", "in the middle of the answer"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab", "in the middle"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "in the middle"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200 + b"\r\n", "is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000 + b"\r\n\r\n", "is not HTTP"),
    ],
)
def test_a_broken_answer_is_a_failure(client: HttpClient, answer: bytes, reason: str) -> None:
    with scripted(saying(answer)) as url:
        outcome = post(client, url)
    assert isinstance(outcome, Failed)
    assert outcome.message.startswith(f"POST {url} failed: ")
    assert reason in outcome.message


@pytest.mark.parametrize("size", [limits.MAX_RAW_OUTPUT, limits.MAX_RAW_OUTPUT + 1])
def test_a_body_is_read_up_to_one_byte_past_the_limit(
    client: HttpClient, receiver: Receiver, size: int
) -> None:
    receiver.body = b"a" * size
    for _ in range(2):
        answer = post(client, receiver.url)
        assert isinstance(answer, Answer)
        assert len(answer.body) == size
    receiver.body = b"a" * (size + 1_000_000)
    answer = post(client, receiver.url)
    assert isinstance(answer, Answer)
    assert len(answer.body) == limits.MAX_RAW_OUTPUT + 1
    assert isinstance(post(client, receiver.url), Answer)


def test_tls_asks_for_the_name_and_checks_the_certificate_for_it(secure: Secure) -> None:
    for _ in range(2):
        assert isinstance(secure.post(NAME), Answer)
    other = secure.post("other.example.test")
    assert isinstance(other, Failed)
    assert "TLS: Hostname mismatch, certificate is not valid for 'other." in other.message
    address = secure.post("127.0.0.1")
    assert isinstance(address, Failed)
    assert "TLS: IP address mismatch" in address.message


def test_an_unknown_authority_is_refused(client: HttpClient, tmp_path: Path) -> None:
    with serving(Receiver(), server_context(tmp_path, "localhost")) as receiver:
        outcome = post(client, f"https://localhost:{receiver.port}/")
    assert isinstance(outcome, Failed)
    assert "TLS: unable to get local issuer certificate" in outcome.message
    assert receiver.requests == []


def test_authorities_that_cannot_be_read_cost_no_connection(tmp_path: Path) -> None:
    missing = GuardedAdapter(LOOPBACK, SystemResolver(), str(tmp_path / "none.pem"))
    with serving(Receiver(), server_context(tmp_path, "127.0.0.1")) as receiver:
        outcome = post(HttpClient(missing, StillClock()), f"https://127.0.0.1:{receiver.port}/")
    assert isinstance(outcome, Failed)
    assert "No such file or directory" in outcome.message
    assert receiver.connections == 0


def test_tls_to_a_plain_server_is_a_failure(client: HttpClient, receiver: Receiver) -> None:
    outcome = post(client, f"https://127.0.0.1:{receiver.port}/")
    assert isinstance(outcome, Failed)
    assert "TLS: " in outcome.message


def test_proxies_and_credentials_of_the_environment_are_ignored(
    client: HttpClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert isinstance(post(client, receiver.url), Answer)
    assert "authorization" not in receiver.requests[0].headers


def test_a_connection_that_is_in_use_at_the_end_is_closed_after_it(receiver: Receiver) -> None:
    adapter = GuardedAdapter(LOOPBACK, SystemResolver())
    client = HttpClient(adapter, StillClock())
    adapter.close()
    assert isinstance(post(client, receiver.url), Answer)
    assert receiver.closed.acquire(timeout=60)


def test_a_session_of_requests_can_use_the_transport(receiver: Receiver) -> None:
    receiver.body = b'{"a":1}'
    with requests.Session() as session:
        session.mount("http://", GuardedAdapter(LOOPBACK, names()))
        answer = session.post(receiver.url, json={"b": 2}, timeout=30)
    assert (answer.status_code, answer.json()) == (200, {"a": 1})
