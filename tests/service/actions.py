"""Actions to test with."""

from stepwell_engine.core.declared.definition import Kind, Step
from tests.service.world import World


def action(ordinal: int, timeout: int = 30_000) -> Step:
    return Step(ordinal, f"s{ordinal}", Kind.FUNCTION, "f", max_attempts=3, timeout=timeout)


def two_actions() -> World:
    return World(action(0), action(1))
