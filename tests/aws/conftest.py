"""An installation on moto with a clock that a test moves."""

from collections.abc import Iterator

import pytest

from stepwell_engine.settings.aws import AwsSettings
from tests.aws.installation import installed
from tests.service.world import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def settings(clock: ManualClock) -> Iterator[AwsSettings]:
    with installed(clock) as settings:
        yield settings
