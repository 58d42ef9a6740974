"""Fixtures of the stories: a home with the project demo, and a receiver on loopback."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepwell_engine.settings.embedded import Settings
from tests.scenarios.aws import AwsHome
from tests.scenarios.homes import EmbeddedHome, Home
from tests.scenarios.receiver import Receiver, receiving

HOMES: dict[str, Callable[[Path], Home]] = {
    "embedded": lambda folder: EmbeddedHome(Settings(data=folder)),
    "aws": AwsHome,
}


@pytest.fixture(params=HOMES)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    home = HOMES[request.param](tmp_path)
    yield home
    home.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver
