"""The ports, each test on every adapter."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stepwell_engine.limits import MAX_PENDING_SIGNALS
from stepwell_engine.ports import Grants, Projects, Queues, Resources, Runs, Versions
from tests.aws.small_inboxes import small_inboxes
from tests.contract.homes import CONCURRENT, HOMES, WITH_QUEUES, Home, MemoryHome, SqliteHome
from tests.e2e.emulator import running
from tests.e2e.ministack_home import MiniStackHome, tables_of
from tests.open_files import open_in

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MINISTACK = pytest.param("ministack", marks=pytest.mark.e2e)


@pytest.fixture(scope="session")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[DynamoDBClient]":
    """DynamoDB on an emulator that is a process of its own."""
    with running(tmp_path_factory.mktemp("emulator")) as emulator:
        client = tables_of(emulator)
        yield client
        client.close()


@contextmanager
def opened(name: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Home]:
    """The home of that name, which leaves nothing open in its folder."""
    if name == "ministack":
        home: Home = MiniStackHome(request.getfixturevalue("emulated"))
    else:
        home = HOMES[name](folder)
    yield home
    home.close()
    assert open_in(folder) == []


@pytest.fixture(params=[*HOMES, MINISTACK])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    with opened(request.param, request, tmp_path) as home:
        yield home


@pytest.fixture
def runs(home: Home) -> Runs:
    return home.runs


@pytest.fixture
def room(home: Home, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many signals an inbox takes: a few where a thousand, the product's limit, take minutes.

    So a limit of a store's own, which is not the product's, is noticed too.
    """
    if isinstance(home, MemoryHome | SqliteHome):
        assert MAX_PENDING_SIGNALS == 1_000
        return MAX_PENDING_SIGNALS
    return small_inboxes(monkeypatch)


@pytest.fixture(params=WITH_QUEUES)
def queues(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Queues]:
    with opened(request.param, request, tmp_path) as home:
        yield home.queues


@pytest.fixture
def projects(home: Home) -> Projects:
    return home.projects


@pytest.fixture
def grants(home: Home) -> Grants:
    return home.grants


@pytest.fixture
def versions(home: Home) -> Versions:
    return home.versions


@pytest.fixture
def resources(home: Home) -> Resources:
    return home.resources


@pytest.fixture(params=CONCURRENT)
def local(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """An adapter on one machine."""
    with opened(request.param, request, tmp_path) as home:
        yield home


@pytest.fixture(params=[*CONCURRENT, MINISTACK])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """An adapter that several threads use at once."""
    with opened(request.param, request, tmp_path) as home:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)  # threads meet in the middle of a call, not only between calls
        yield home
        sys.setswitchinterval(interval)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the SQLite file is, or will be."""
    return tmp_path / "stepwell.db"


@pytest.fixture
def sqlite_home(path: Path) -> Iterator[SqliteHome]:
    """What only SQLite can do."""
    home = SqliteHome(path)
    yield home
    home.close()
    assert open_in(path.parent) == []
