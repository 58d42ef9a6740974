"""One place for several, first come, first served."""

from stepwell_engine.adapters.process.line import Line
from stepwell_engine.core.values.subject import about_run

A, B, C = (about_run(name, "p") for name in "abc")


def queue() -> Line:
    """A has the place, B and C stand in line."""
    line = Line()
    assert [line.enter(one) for one in (A, B, C)] == [True, False, False]
    return line


def test_who_came_first_is_first() -> None:
    line = queue()
    assert not line.enter(B)  # again: it keeps its place in line
    assert line.leave() == B
    assert not line.enter(A)
    assert not line.enter(C)
    assert line.enter(B)
    assert line.leave() == C
    assert line.enter(C)
    assert line.leave() == A
    assert line.enter(A)
    assert line.leave() is None


def test_whoever_is_forgotten_is_not_waited_for() -> None:
    line = queue()
    assert line.forget(B) is None  # the place is not free
    assert not line.enter(B)  # behind C now
    assert line.leave() == C
    assert line.forget(about_run("d", "p")) is None
    assert line.forget(C) == B
    assert line.forget(C) is None
    assert line.forget(B) is None
    assert line.enter(A)


def test_one_that_leaves_the_line_when_it_is_anothers_turn_calls_nobody() -> None:
    line = queue()
    assert line.leave() == B
    assert line.forget(C) is None
    assert line.enter(B)


def test_a_turn_is_somebodys_only_while_the_place_is_free() -> None:
    line = queue()
    assert line.turn() is None
    line.leave()
    assert line.turn() == B
    line.forget(B)
    line.forget(C)
    assert line.turn() is None
