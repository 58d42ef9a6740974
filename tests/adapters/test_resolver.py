"""Name resolution: shared, kept for a moment, and given up in time."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from stepwell_engine.adapters.http.resolver import SystemResolver


class Names:
    """Stands for the operating system's resolver, which a test must not depend on."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer = threading.Event()
        self.answer.set()

    def getaddrinfo(self, host: str, *args: Any, **options: Any) -> list[Any]:
        self.asked.append(host)
        self.answer.wait()
        if host == "unknown.example.com":
            raise socket.gaierror(-2, "Name or service not known")
        if host == "bad":
            raise UnicodeError("label too long")
        return [(0, 0, 0, "", (address, 0)) for address in ("2606::1", "1.1.1.1", "2606::1")]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    known = Names()
    monkeypatch.setattr(socket, "getaddrinfo", known.getaddrinfo)
    yield known
    known.answer.set()


def test_the_system_knows_localhost() -> None:
    assert "127.0.0.1" in SystemResolver()("localhost", 30)


def test_an_answer_is_used_again(names: Names) -> None:
    resolver = SystemResolver()
    for _ in range(3):
        assert list(resolver("a.example.com", 30)) == ["2606::1", "1.1.1.1"]
    assert names.asked == ["a.example.com"]


def test_a_failure_is_not_kept(names: Names) -> None:
    resolver = SystemResolver()
    for _ in range(2):
        with pytest.raises(OSError, match="Name or service not known"):
            resolver("unknown.example.com", 30)
    assert len(names.asked) == 2


def test_a_name_that_cannot_be_asked_for_is_an_oserror(names: Names) -> None:
    with pytest.raises(OSError, match="label too long"):
        SystemResolver()("bad", 30)


def test_a_resolver_that_hangs_is_given_up_and_asked_only_once(names: Names) -> None:
    names.answer.clear()
    resolver = SystemResolver()
    for _ in range(3):
        with pytest.raises(TimeoutError, match=r"resolving a\.example\.com"):
            resolver("a.example.com", 0.01)
    names.answer.set()
    assert resolver("a.example.com", 30)
    assert names.asked == ["a.example.com"]


def test_the_names_kept_are_bounded(names: Names) -> None:
    resolver = SystemResolver()
    for number in range(1_000):
        resolver(f"{number}.example.com", 30)
    resolver("0.example.com", 30)
    assert len(names.asked) == 1_000
    resolver("one-more.example.com", 30)
    resolver("0.example.com", 30)
    assert len(names.asked) == 1_002
