"""The ports, each test on every adapter."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell_engine.ports import Catalog, Queues, Runs
from tests.contract.homes import CONCURRENT, HOMES, WITH_QUEUES, Home, SqliteHome


@pytest.fixture(params=HOMES)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    opened = HOMES[request.param](tmp_path)
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
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """An adapter that several threads use at once."""
    opened = HOMES[request.param](tmp_path)
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
