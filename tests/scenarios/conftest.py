"""Fixtures of the stories: a home with the project demo, and a receiver on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell_engine.settings.embedded import Settings
from tests.scenarios.homes import EmbeddedHome, Home
from tests.scenarios.receiver import Receiver, receiving


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = EmbeddedHome(Settings(data=tmp_path))
    yield home
    home.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver
