"""The file descriptors of the host."""

import resource
import subprocess
import sys

import pytest

from local.descriptors import MOST

SCRIPT = """
import resource, sys
from local.descriptors import allow_many
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
print(allow_many(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard"), [(200, 1_000), (1_000, 1_000), (200, 200)])
def test_as_many_may_be_open_as_the_system_allows(soft: int, hard: int) -> None:
    command = [sys.executable, "-c", SCRIPT, str(soft), str(hard)]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert found == [str(hard), str(hard), str(hard)]


def test_there_is_an_end_to_it() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    command = [sys.executable, "-c", SCRIPT, "200", str(hard)]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    expected = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    assert int(found[0]) == int(found[1]) == expected
    assert int(found[2]) == hard
