"""A run goes on where it was when everything is closed and opened again."""

from pathlib import Path

from stepwell_engine.settings.embedded import Settings
from tests.scenarios.homes import START, EmbeddedHome, Home
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import (
    answer_by_path,
    called,
    compensated,
    doomed,
    fan,
    hook,
    nap,
)


def reopened(home: EmbeddedHome, folder: Path) -> EmbeddedHome:
    """The same folder in another process, as far as one can tell; its clock goes on."""
    at = home.clock.at
    home.close()
    later = EmbeddedHome(Settings(data=folder))
    later.clock.at = at
    return later


def ended(home: Home, run_id: str) -> dict[str, object]:
    return home.finish("order", run_id)


def test_a_run_goes_on_at_the_step_that_it_had_reached(tmp_path: Path, receiver: Receiver) -> None:
    home = EmbeddedHome(Settings(data=tmp_path))
    home.publish("order", hook(receiver, "pay"), nap("1d"), hook(receiver, "tell"))
    run_id = home.start("order")
    home.drain()
    home = reopened(home, tmp_path)
    run = ended(home, run_id)
    assert run["status"] == "succeeded"
    assert home.clock.at == START + 86_400_000
    assert called(receiver) == ["pay", "tell"]
    home.close()


def test_compensating_goes_on_where_it_stood(tmp_path: Path, receiver: Receiver) -> None:
    answer_by_path(receiver, {"doomed": [500], "undo-b": [500, 200]})
    home = EmbeddedHome(Settings(data=tmp_path))
    home.publish(
        "order",
        compensated(receiver, "a"),
        compensated(receiver, "b"),
        *fan(compensated(receiver, "c")),
        doomed(receiver),
    )
    run_id = home.start("order")
    home.drain()
    assert home.run("order", run_id)["compensation"] == {"state": "compensating", "step": "b"}
    home = reopened(home, tmp_path)
    run = ended(home, run_id)
    assert run["compensation"] == {"state": "compensated"}
    assert called(receiver)[4:] == ["undo-c", "undo-b", "undo-b", "undo-a"]
    home.close()
