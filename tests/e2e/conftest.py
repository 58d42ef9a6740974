"""One installation for all stories, on an emulator of its own; each file has its own receiver."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from stepwell_engine.adapters.postgres.local import LocalPostgres
from tests.e2e.data_api import DataApi, serving
from tests.e2e.emulator import Emulator, running
from tests.e2e.installation import Installation, create_reserve, install
from tests.scenarios.receiver import Receiver, receiving

# Counts all that has happened.
FIRST = Path(__file__).with_name("test_order.py")
# Looks at what the stories left, and takes the installation away.
LAST = Path(__file__).with_name("test_operation.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: (item.path == LAST) - (item.path == FIRST))


@pytest.fixture(scope="session")
def database() -> Iterator[DataApi]:
    """A cluster with one account that is not active, and no parcel."""
    # Not below pytest's own folder: every other run of tests takes away the right to pass through
    # that one, which PostgreSQL needs if root started it.
    with tempfile.TemporaryDirectory() as data:
        postgres = LocalPostgres(Path(data) / "postgres")
        try:
            dsn = postgres.dsn("shop")
            with psycopg.connect(dsn) as connection:
                connection.execute("create table accounts (id int primary key, active boolean)")
                connection.execute("insert into accounts values (42, false)")
                connection.execute("create table parcels (id int primary key)")
            with serving(dsn) as api:
                yield api
        finally:
            postgres.stop()


@pytest.fixture(scope="session")
def cloud(database: DataApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """The emulator; Aurora's Data API is ours, on a real PostgreSQL."""
    folder = tmp_path_factory.mktemp("emulator")
    with running(folder, AWS_ENDPOINT_URL_RDS_DATA=database.url) as emulator:
        yield emulator


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("assembly")


@pytest.fixture(scope="session")
def installed(cloud: Emulator, assembly: Path) -> Installation:
    """The stacks, and a function of the user's beside them.

    Its schedule rests: no story may need a tick, but that of the tick.
    """
    create_reserve(cloud)
    installation = install(cloud, assembly)
    installation.schedule_ticks(False)
    return installation


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver
