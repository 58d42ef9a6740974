"""Property 14 on DynamoDB: a few hundred parked runs change neither calls nor units."""

from tools.bench.parked_dynamodb import work

PARKED = 300


def test_parked_runs_change_neither_calls_nor_units() -> None:
    alone = work(0)

    assert {label for label, _ in alone.calls} == {"advance", "signal", "tick"}
    assert {label for label, _ in alone.write_units} == {"advance", "signal"}
    assert {label for label, _ in alone.read_units} == {"signal", "tick"}  # versions are kept
    assert work(PARKED) == alone
