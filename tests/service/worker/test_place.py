"""The one place of suspects: whose turn it is comes, or is asked for again."""

from stepwell_engine.core.values.subject import about_run
from stepwell_engine.service.worker.place import Place
from tests.service.world import World

FIRST, SECOND, THIRD = (about_run(name, "demo") for name in ("a", "b", "c"))


def test_one_whose_hint_was_lost_is_hinted_by_those_behind_it() -> None:
    world = World()
    first, second, third = (
        Place(world.isolation, one, world.hints) for one in (FIRST, SECOND, THIRD)
    )
    assert first.enter()
    assert not second.enter()
    assert world.hints.pop_due(world.clock.at) is None  # the place is not free
    first.leave()
    assert world.hints.pop_due(world.clock.at) is not None  # which gets lost
    assert not third.enter()
    again = world.hints.pop_due(world.clock.at)
    assert again is not None
    assert again.subject == SECOND
    assert second.enter()
