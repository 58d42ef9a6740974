"""What pending signals cost on AWS."""

from rich.console import Console

from tools.bench.report import show_inboxes
from tools.bill.inboxes import TARGETS, inboxes


def test_pending_signals_do_not_tax_a_run() -> None:
    measured = inboxes((0, 1, 10, 100))
    assert measured["run"] == dict.fromkeys((0, 1, 10, 100), 13)
    assert measured["messages"] == {
        "quiet": 2,  # the slot, and the head that counts it
        "quiet with a key": 3,
        "loud": 4,  # the index, too, in which the run is found to be due
        "loud with a key": 5,
        "take": 1,
    }
    assert all(measured["messages"][name] <= TARGETS[name] for name in measured["messages"])
    console = Console(record=True, width=200)
    show_inboxes(console, measured)
    shown = console.export_text()
    assert "13 / 13 / 13 / 13" in shown
    assert "loud with a key 5" in shown
