"""Parents and their children to test with."""

from stepwell_engine.core.declared.definition import Kind, Step
from tests.service.world import World


def call(ordinal: int, target: str, attempts: int = 2, timeout: int = 60_000) -> Step:
    return Step(
        ordinal,
        f"s{ordinal}",
        Kind.SUBWORKFLOW,
        target,
        payload={"from": "parent"},
        max_attempts=attempts,
        timeout=timeout,
    )


def action(ordinal: int) -> Step:
    return Step(ordinal, f"s{ordinal}", Kind.FUNCTION, "f", max_attempts=1, timeout=30_000)


def nap(ordinal: int, ms: int) -> Step:
    return Step(ordinal, f"s{ordinal}", Kind.SLEEP, sleep_for=ms)


def family(*child: Step) -> tuple[World, str]:
    world = World(call(0, "child"))
    world.add("child", *child)
    return world, world.start()


def sleeping_child() -> tuple[World, str]:
    world = World(Step(0, "s0", Kind.SUBWORKFLOW, "child", max_attempts=2, timeout=600_000))
    world.add("child", Step(0, "s0", Kind.SLEEP, sleep_for=300_000))
    return world, world.start()
