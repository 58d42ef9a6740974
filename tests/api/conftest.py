"""Fixtures of the API's tests."""

import pytest

from tests.api.home import Home


@pytest.fixture
def home() -> Home:
    """A fresh API in memory."""
    return Home()
