"""A tiny edition of the benchmark runs, and its file is complete."""

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from tools.bench.measure import Sizes, measure
from tools.bench.report import EMBEDDED, TARGETS, TEXTS, document, show, show_dynamodb, write

MAY_BE_0 = ("signal_ms", "parked_plans_changed")
TINY = Sizes(
    *(2, 4, 2, 3),  # runs alone, at once, with webhooks, killed
    rounds=1,
    writes=5,
    fanouts=1,
    children=120,  # the second page of a run's detail begins after 100 steps
    signals=1,
    parked=20,
)


def test_a_tiny_edition_writes_every_figure_and_keeps_what_others_wrote(tmp_path: Path) -> None:
    results = tmp_path / "build" / "bench.json"
    results.parent.mkdir()
    results.write_text('{"other": {"a": 1}}')

    measured = document(measure(tmp_path, TINY), asdict(TINY))
    write(results, EMBEDDED, measured)

    found = json.loads(results.read_text())
    assert found["other"] == {"a": 1}
    assert found["embedded"] == measured
    assert set(TARGETS) <= set(TEXTS)
    figures = {name: measured[name] for name in TEXTS if name not in ("recovery_left", *MAY_BE_0)}
    assert all(isinstance(figure, int | float) and figure > 0 for figure in figures.values())
    assert all(measured[name] >= 0 for name in MAY_BE_0)
    assert measured["recovery_left"] == "3 runs × 5 steps"


def test_the_table_names_every_figure_and_says_whether_the_target_was_reached() -> None:
    figures = dict.fromkeys(TEXTS, 1.0) | {"ms_per_step": 1.5}
    console = Console(record=True, width=120)

    show(console, document(figures, {}))

    shown = console.export_text()
    assert all(text.strip() in shown for text in TEXTS.values())
    lines = {line.strip()[:11]: line for line in shown.splitlines()}
    assert "missed" in lines["ms per step"]
    assert "reached" in lines["seconds fro"]


def test_a_run_that_costs_more_beside_parked_ones_misses_its_target() -> None:
    console = Console(record=True, width=120)
    targets = {"parked_calls": 1.0, "parked_units": 1.0}
    ratios = {"parked_calls": 1.0, "parked_units": 1.01}

    show_dynamodb(console, {**ratios, "targets": targets, "sizes": {"parked": 300}})

    calls, units = console.export_text().splitlines()
    assert calls.endswith("calls of a run, 300 parked / none: 1.00 ≤ 1 reached")
    assert units.endswith("units of a run, 300 parked / none: 1.01 ≤ 1 missed")
