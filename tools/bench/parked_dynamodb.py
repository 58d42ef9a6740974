"""What parked runs in DynamoDB change about the work on one that moves: nothing.

Counted are the calls and the units of each, on moto.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from stepwell_engine.adapters.dynamodb.client import connect
from stepwell_engine.wiring.stores import Stores
from tools.bench.beside import NOTHING, Beside
from tools.bill.meter import Billed, Meter
from tools.moto_home import REGION, DynamoHome, client

N = TypeVar("N", int, float)

CALLED = "before-parameter-build.dynamodb"


@dataclass(frozen=True, slots=True)
class Work:
    """What was done, by label and operation, index or table."""

    calls: Mapping[Billed, int]
    write_units: Mapping[Billed, float]
    read_units: Mapping[Billed, float]


@dataclass
class Calls:
    """Counts the calls of a client, under the label of the moment."""

    meter: Meter
    label: str = ""
    found: Counter[Billed] = field(default_factory=Counter)

    @contextmanager
    def under(self, label: str) -> Iterator[None]:
        """Count under a label meanwhile, and the meter too."""
        self.label = label
        with self.meter.label(label):
            yield
        self.label = ""

    def count(self, model: Any, **_: Any) -> None:
        """One call."""
        self.found[self.label, model.name] += 1


def compare(parked: int) -> dict[str, Any]:
    """How many times the calls and the units that empty tables take; what to reach with it."""
    none, some = work(0), work(parked)
    return {
        "parked_calls": _sum(some.calls) / _sum(none.calls),
        "parked_units": (
            (_sum(some.write_units) + _sum(some.read_units))
            / (_sum(none.write_units) + _sum(none.read_units))
        ),
        "targets": {"parked_calls": 1.0, "parked_units": 1.0},
        "sizes": {"parked": parked},
    }


def work(parked: int) -> Work:
    """One run's work in empty tables, but for so many parked runs."""
    home = DynamoHome()
    try:
        beside = Beside(
            Stores(
                runs=home.runs,
                projects=home.projects,
                grants=home.grants,
                versions=home.versions,
                resources=home.resources,
                queues=home.queues,
                secrets=NOTHING,
            )
        )
        for head in beside.parked(parked):
            home.runs.create(head)
        calls = Calls(Meter(connect(REGION)))
        client().meta.events.register(CALLED, calls.count)
        calls.meter.watch(client())
        try:
            beside.move(calls.under)
        finally:
            calls.meter.unwatch(client())
            client().meta.events.unregister(CALLED, calls.count)
    finally:
        home.close()
    bill = calls.meter.bill()
    return Work(_labelled(calls.found), _labelled(bill.writes), _labelled(bill.reads))


def _labelled(counts: Mapping[Billed, N]) -> dict[Billed, N]:
    return {billed: count for billed, count in counts.items() if billed[0]}


def _sum(counts: Mapping[Billed, float]) -> float:
    return sum(counts.values())
