"""Random definitions, outcomes, signals and cancels: the engine does what the model says."""

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

from tests.model.agreement import compare
from tests.model.facts import facts
from tests.model.reference import TooManyRuns
from tests.model.scenarios import scenarios
from tests.model.story import Scenario
from tests.model.themes import REACHED, THEMES

EXAMPLES = 600


@pytest.mark.parametrize("name", THEMES)
def test_the_engine_does_what_the_model_says(name: str) -> None:
    reached: set[str] = set()

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(scenarios(THEMES[name]))
    def agree(scenario: Scenario) -> None:
        try:
            reached.update(facts(compare(scenario)))
        except TooManyRuns:
            assume(False)

    agree()
    assert REACHED[name] <= reached
