"""The ports, each test on every adapter."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stepwell_engine.ports import Catalog, Queues, Runs
from tests.contract.homes import CONCURRENT, HOMES, WITH_QUEUES, Home, SqliteHome
from tests.e2e.emulator import running
from tests.e2e.ministack_home import MiniStackHome, tables_of

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


def open_home(request: pytest.FixtureRequest, folder: Path) -> Home:
    """The home that a test's parameter names."""
    if request.param == "ministack":
        return MiniStackHome(request.getfixturevalue("emulated"))
    return HOMES[request.param](folder)


@pytest.fixture(params=[*HOMES, MINISTACK])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    opened = open_home(request, tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def runs(home: Home) -> Runs:
    return home.runs


@pytest.fixture(params=WITH_QUEUES)
def queues(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Queues]:
    opened = HOMES[request.param](tmp_path)
    yield opened.queues
    opened.close()


@pytest.fixture
def catalog(home: Home) -> Catalog:
    return home.catalog


@pytest.fixture(params=CONCURRENT)
def local(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """An adapter on one machine."""
    opened = open_home(request, tmp_path)
    yield opened
    opened.close()


@pytest.fixture(params=[*CONCURRENT, MINISTACK])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """An adapter that several threads use at once."""
    opened = open_home(request, tmp_path)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads meet in the middle of a call, not only between calls
    yield opened
    sys.setswitchinterval(interval)
    opened.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the SQLite file is, or will be."""
    return tmp_path / "stepwell.db"


@pytest.fixture
def sqlite_home(path: Path) -> Iterator[SqliteHome]:
    """What only SQLite can do."""
    opened = SqliteHome(path)
    yield opened
    opened.close()
