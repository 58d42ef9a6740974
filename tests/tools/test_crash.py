"""A small edition of the crash script, on a real host that is really killed.

Without poison, which takes half a minute of pauses: tests/local/test_isolation.py has its story.
"""

import pytest

from tools.crash.__main__ import main


def test_runs_survive_kills_at_random_moments(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--runs", "8", "--kills", "4", "--seed", "7"])

    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "The host was 4 times killed" in shown
    assert "Every property held: --runs 8 --kills 4 --seed 7" in shown
