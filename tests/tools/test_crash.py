"""A small edition of the crash script, on a real host that is really killed."""

import pytest

from tools.crash.__main__ import main


def test_runs_survive_kills_at_random_moments(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--runs", "12", "--kills", "4", "--seed", "7"])

    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "4 kills hit" in shown
    assert "Every property held: --runs 12 --kills 4 --seed 7" in shown
