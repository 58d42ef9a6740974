"""Property 14: what an advance, a signal, a cancel and a tick ask of the store does not grow."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Kind, Step
from stepwell_engine.service.worker.sweep import Sweep
from tests.service.world import World

_PORT = (
    *("create", "get", "by_key", "claim", "extend", "commit", "deliver", "cancel", "close"),
    *("mark_notified", "due", "list", "blob"),
)


def action(ordinal: int) -> Step:
    return Step(ordinal, f"s{ordinal}", Kind.FUNCTION, "f", timeout=30_000)


def wait(ordinal: int) -> Step:
    return Step(ordinal, f"s{ordinal}", Kind.WAIT_FOR_SIGNAL, signal="go", timeout=limits.DAY)


def call(ordinal: int, target: str) -> Step:
    return Step(ordinal, f"s{ordinal}", Kind.SUBWORKFLOW, target, timeout=limits.DAY)


def a_world(parked: int) -> World:
    """One with so many runs that sleep, wait for a signal, or for a child that sleeps."""
    fanout = Step(1, "s1", Kind.FANOUT, children=(action(2), action(3), action(4)))
    join = Step(5, "s5", Kind.JOIN)
    world = World(action(0), fanout, join, call(6, "short"), wait(7), action(8))
    world.add("short", action(0))
    world.add("sleeper", Step(0, "s0", Kind.SLEEP, sleep_for=limits.DAY))
    world.add("waiter", wait(0))
    world.add("parent", call(0, "sleeper"))
    for number in range(parked):
        workflow = ("sleeper", "waiter", "parent")[number % 3]
        world.starts.start("demo", workflow, b"{}", f"key-{number}")
    world.drain()
    return world


def counted(world: World, calls: Counter[str]) -> None:
    """Count the calls of the store from here on."""

    def counting(name: str, method: Callable[..., Any], *given: Any) -> Any:
        calls[name] += 1
        return method(*given)

    for name in _PORT:
        setattr(world.runs, name, partial(counting, name, getattr(world.runs, name)))


def work(parked: int) -> list[dict[str, int]]:
    """The calls of a run to its wait, a signal with what follows, a cancel, and a tick."""
    world = a_world(parked)
    calls: Counter[str] = Counter()
    counted(world, calls)
    phases = []

    def phase(body: Callable[[], object]) -> None:
        calls.clear()
        body()
        world.drain()
        phases.append(dict(calls))

    runs: list[str] = []
    phase(lambda: runs.append(world.start()))
    phase(lambda: world.controls.signal("demo", "orders", runs[0], "go", b"1"))
    phase(lambda: runs.append(world.start()))
    phase(lambda: world.controls.cancel("demo", "orders", runs[1], cascade=True))
    world.starts.start("demo", "short", b"{}")
    list(world.delays())  # its hint is lost
    phase(lambda: Sweep(world.runs, world.hints, world.clock, 150_000).tick())
    return phases


def test_the_calls_do_not_depend_on_how_many_runs_are_parked() -> None:
    few, many = work(0), work(300)
    assert few == many
    assert all(phase for phase in few)
    assert few[-1]["due"] == 1
    assert few[-1]["claim"] == 1
