"""The surroundings of the step runners: loopback servers, a sealed secret store."""

import ipaddress
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from stepwell_engine.adapters.http.client import HttpClient
from stepwell_engine.adapters.http.resolver import SystemResolver
from stepwell_engine.adapters.http.transport import GuardedAdapter
from stepwell_engine.adapters.memory.resources import MemoryResources
from stepwell_engine.adapters.postgres.cluster import Cluster, prepare
from stepwell_engine.adapters.postgres.local import LocalPostgres
from stepwell_engine.adapters.runners.sql import SqlRunner
from stepwell_engine.adapters.secrets.sealed import SealedSecrets
from tests.adapters.attempts import StillClock, resource
from tests.adapters.receivers import Receiver, serving

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))


@pytest.fixture
def resources() -> MemoryResources:
    return MemoryResources()


@pytest.fixture
def secrets() -> SealedSecrets:
    return SealedSecrets(bytes(32))


@pytest.fixture
def client() -> Iterator[HttpClient]:
    """Allowed to call loopback, as the embedded home is."""
    adapter = GuardedAdapter(LOOPBACK, SystemResolver())
    yield HttpClient(adapter, StillClock())
    adapter.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with serving(Receiver()) as running:
        yield running


Names = Callable[[str, float], list[str]]


def names(**known: list[str]) -> Names:
    """A resolver that knows these names (_ for .) and no other."""
    table = {name.replace("_", "."): addresses for name, addresses in known.items()}

    def resolve(host: str, timeout: float) -> list[str]:
        if host not in table:
            raise OSError(-2, "Name or service not known")
        return table[host]

    return resolve


@pytest.fixture(scope="session")
def cluster() -> Iterator[Path]:
    """The folder of a server that was made and never started.

    It does not wait for the disk, which tests that run beside others would do for long.
    """
    # Not below pytest's own folder: every other run of tests takes away, from time to time, the
    # right to pass through that one, which the server's account needs.
    with tempfile.TemporaryDirectory() as data:
        folder = Path(data) / "postgres"
        prepare(folder)
        Cluster(folder).make()
        with (folder / "cluster" / "postgresql.conf").open("a") as settings:
            settings.write("fsync = off\n")
        yield folder


@pytest.fixture(scope="session")
def postgres(cluster: Path) -> Iterator[LocalPostgres]:
    """One server for all tests, each of which may have a project of its own."""
    with tempfile.TemporaryDirectory() as data:
        folder = Path(data) / "postgres"
        subprocess.run(["cp", "-a", cluster, folder], check=True)
        server = LocalPostgres(folder)
        yield server
        server.stop()


@pytest.fixture
def dsn(postgres: LocalPostgres) -> str:
    """An empty database."""
    dsn = postgres.dsn("sql")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop schema public cascade; create schema public")
        connection.execute("alter role current_user reset all")
    return dsn


@pytest.fixture
def runner(resources: MemoryResources, secrets: SealedSecrets, dsn: str) -> Iterator[SqlRunner]:
    resources.put(resource("database", "database", {"embedded": True}))
    runner = SqlRunner(resources, secrets, lambda _: dsn, StillClock())
    yield runner
    runner.close()
