"""What each partition key takes, and which is the first to burn."""

import pytest

from tools.heat.__main__ import main, verdict
from tools.heat.heat import LANE, READS, RUN, SHARD, WRITES, Key, heat


def by_name(keys: list[Key]) -> dict[tuple[str, str], Key]:
    return {(key.where, key.what): key for key in keys}


def test_the_hottest_key_is_told_first_with_the_rate_that_it_holds() -> None:
    keys = heat(2_000, 10_000, 16)
    shares = [key.share for key in keys]
    assert shares == sorted(shares, reverse=True)
    found = by_name(keys)
    # A start puts an entry into each index, an end takes one away: exact, by the meter.
    assert found["due-runs", SHARD].writes == 2_000 * 2 / 16
    assert found["due-runs", SHARD].runs_per_second == 16 * WRITES / 2
    assert found["runs-of-workflow", LANE].writes == 2_000 / 16
    assert found["runs-of-workflow", LANE].runs_per_second == 16 * WRITES
    # Each step reads what it calls, at half a unit.
    assert found["control", "r#shop#function"].reads == 10_000 / 2
    assert found["control", "r#shop#function"].share == 10_000 / 2 / READS
    # A run's own key takes what one run does, whatever the rate.
    assert found["runs", RUN].share < 0.05


def test_what_stands_in_shards_goes_up_with_them() -> None:
    few, many = (by_name(heat(500, 500, shards)) for shards in (4, 64))
    assert few["due-runs", SHARD].share == 16 * many["due-runs", SHARD].share
    # So few runs stand in one partition.
    assert few["runs-of-workflow", "shop#order-pipeline"].writes == 500


def test_the_command_prints_a_table_and_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", "100", "--steps", "100"]) == 0
    printed = capsys.readouterr().out
    assert "due-runs" in printed
    assert "Nothing burns. The first to do so is control" in printed


@pytest.mark.parametrize(
    "arguments", [["--runs", "0"], ["--steps", "7"], ["--due-shards", "0"], ["--due-shards", "257"]]
)
def test_figures_that_make_no_sense_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(arguments)
    assert refused.value.code == 2


def test_a_key_above_its_limit_burns() -> None:
    key = Key("control", "w#shop", 1, 0, 6_000, 1_500)
    assert verdict([key], 3_000) == "control w#shop burns at 3,000 runs/s: it takes " + (
        "1,500 runs/s of this kind."
    )
