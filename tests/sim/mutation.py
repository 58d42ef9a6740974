"""A defect made by hand, with the properties of which it violates one."""

from dataclasses import dataclass

from stepwell_engine.service.runs.children import Children
from stepwell_engine.service.worker.advance import Advance
from stepwell_engine.service.worker.leased_run import LeasedRun
from tests.sim.links import Store
from tests.sim.world import Engine


@dataclass(frozen=True)
class Mutation:
    """An engine with a defect. `rules` are the properties one of which it violates."""

    name: str
    rules: frozenset[int]
    engine: Engine


def store(name: str, replacement: type[Store], *rules: int) -> Mutation:
    """A defect of the store."""
    return Mutation(name, frozenset(rules), Engine(store=replacement))


def advance(name: str, replacement: type[Advance], *rules: int) -> Mutation:
    """A defect around the claim."""
    return Mutation(name, frozenset(rules), Engine(advance=replacement))


def leased_run(name: str, replacement: type[LeasedRun], *rules: int) -> Mutation:
    """A defect of a worker that holds the lease."""
    return Mutation(name, frozenset(rules), Engine(leased_run=replacement))


def children(name: str, replacement: type[Children], *rules: int) -> Mutation:
    """A defect in the messages between parents and children."""
    return Mutation(name, frozenset(rules), Engine(children=replacement))


def patch(name: str, target: str, replacement: object, *rules: int) -> Mutation:
    """A defect of one function, or a wrong constant."""
    return Mutation(name, frozenset(rules), Engine(patches=((target, replacement),)))
