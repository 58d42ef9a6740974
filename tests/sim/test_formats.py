"""The simulator has worlds with two versions of the engine, in which a good deal happens."""

from collections import Counter
from dataclasses import replace

from stepwell_engine.limits import RUN_FORMAT
from stepwell_engine.ports import Commit
from tests.sim.coverage import Coverage
from tests.sim.formats import draw_formats
from tests.sim.links import Store
from tests.sim.world import REAL, World

HOSTS = 3
SEEN: Counter[str] = Counter()


class Counting(Store):
    """Counts how older hosts let go of what they cannot read."""

    def let_go(self, commit: Commit) -> bool:
        head = self._heads[commit.run_id]
        done = super().let_go(commit)
        if done and head.format > self.known_format:
            SEEN["let go"] += 1
            SEEN["let go with an outcome"] += commit.journal != head.journal
            SEEN["let go of one that was stopped"] += commit.expect == "stopped"
            SEEN["let go with something of format 2"] += commit.format == RUN_FORMAT
        return done


def test_a_fifth_of_the_worlds_have_two_versions() -> None:
    mixed = [formats for seed in range(2_000) if (formats := draw_formats(seed, HOSTS)).phases]
    assert 350 < len(mixed) < 450
    for formats in mixed:
        assert len(formats.phases[-1][1]) < HOSTS  # a newer host is there in the end
        assert any(older for _, older in formats.phases)
    again = [formats for formats in mixed if len(formats.phases) > 3]
    assert any(older == frozenset(range(HOSTS)) for one in again for _, older in one.phases[2:])


def test_older_hosts_meet_what_they_cannot_read_and_everything_ends() -> None:
    SEEN.clear()
    engine = replace(REAL, store=Counting)
    for seed in range(2_000):
        if not draw_formats(seed, HOSTS).phases:
            continue
        world = World(seed, engine, Coverage(), keep=0)
        world.run()
        ledgers = world.checks.ledgers.values()
        SEEN["left alone"] += len(world.checks.left_alone.at)
        SEEN["newer runs"] += sum(one.head.format > RUN_FORMAT for one in ledgers)
        SEEN["older runs"] += sum(one.head.format <= RUN_FORMAT for one in ledgers)
    assert len(SEEN) == 7, SEEN
    assert [what for what, count in SEEN.items() if not count] == []
