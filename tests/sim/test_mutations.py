"""The simulator can fail: it finds every one of these defects, and nothing in the real engine."""

import pytest

from tests.sim.mutation import Mutation
from tests.sim.mutations import MUTATIONS
from tests.sim.world import simulate

MOST_SEEDS = 2_000  # the real engine passes these and more: test_sim.py


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_defect_is_found(mutation: Mutation) -> None:
    found = simulate(range(MOST_SEEDS), mutation.engine)
    assert found is not None, f"not found in {MOST_SEEDS} seeds"
    assert found.violation.rule in mutation.rules, str(found)
    assert simulate([found.seed]) is None, "the real engine fails there, too"
    print(f"{mutation.name}: seed {found.seed}, {found.violation}")
