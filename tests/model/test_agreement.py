"""Random definitions, outcomes, signals and cancels: the engine does what the model says."""

from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

from tests.model.agreement import compare
from tests.model.reference import TooManyRuns
from tests.model.scenarios import Theme, scenarios
from tests.model.story import Scenario

THEMES: Final = {
    "steps": Theme(("function", "function", "sleep")),
    "saga": Theme(("function", "fanout"), most_children=3, compensated=2),
    "fanout": Theme(("fanout", "function"), most_steps=2, compensated=1),
    "signals": Theme(("wait_for_signal", "function", "sleep"), ("go", "go", "stop")),
    "children": Theme(("subworkflow", "function", "sleep"), workflows=4, most_steps=3),
    "cancel": Theme(
        ("function", "fanout", "sleep", "wait_for_signal"),
        ("cancel", "go"),
        most_children=10,
        most_steps=4,
    ),
    "family": Theme(
        ("subworkflow", "function", "wait_for_signal", "sleep", "fanout"),
        ("cancel", "cascade", "go"),
        most_steps=3,
        most_children=4,
        workflows=3,
    ),
    "ceiling": Theme(
        ("function", "fanout", "subworkflow"),
        most_steps=4,
        workflows=2,
        ceilings=(10_000, 1, 2, 3, 5, 8, 10),
        compensated=2,
    ),
}


@pytest.mark.parametrize("name", THEMES)
def test_the_engine_does_what_the_model_says(name: str) -> None:
    @settings(
        phases=[Phase.generate, Phase.shrink],
        max_examples=600,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(scenarios(THEMES[name]))
    def agree(scenario: Scenario) -> None:
        try:
            compare(scenario)
        except TooManyRuns:
            assume(False)

    agree()
