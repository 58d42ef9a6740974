"""What pending signals cost on AWS: write units of a run beside them, of a delivery, of a take."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from stepwell_engine.adapters.dynamodb.client import connect
from tools.bill.bill import MeteredAws, function_steps
from tools.bill.meter import Meter
from tools.moto_home import REGION, DynamoHome, client

PENDING: Final = (0, 10, 100, 1_000)
STEPS: Final = 10
SIGNAL: Final = b'"' + b"x" * 198 + b'"'  # 200 bytes
AHEAD: Final = 20  # signals of another name, before the one that is waited for
# What is to be reached, in write units. What nobody waits for is quiet.
TARGETS: Final = {
    "per_step": 1.0,  # more than with none pending
    "loud": 4.0,
    "quiet": 2.0,
    "loud with a key": 5.0,
    "quiet with a key": 3.0,
    "take": 2.0,
}


def inboxes(pending: tuple[int, ...] = PENDING) -> dict[str, Any]:
    """Units of a run of 10 steps, by how many signals are pending; of deliveries and takes."""
    return {
        "steps": STEPS,
        "run": {count: _run(count) for count in pending},
        "messages": _messages(),
        "targets": TARGETS,
    }


def _run(pending: int) -> float:
    """The write units of a worker that runs all steps beside so many signals."""
    with _metered(function_steps(STEPS)) as (system, units):
        run_id = system.start()
        for _ in range(pending):
            system.signal(run_id, "other", SIGNAL)
        found = units(lambda: system.advance(run_id))
        if system.succeeded() != 1:
            raise RuntimeError("the run to be measured did not end")
        return found


def _messages() -> dict[str, float]:
    """The units of one delivery to a parked run, and of the write that takes one."""
    names = [f"wait-{number}" for number in range(3)]
    steps = [{"key": name, "kind": "wait_for_signal", "signal": name} for name in names]
    with _metered({"steps": steps}) as (system, units):
        run_id = system.start()
        system.advance(run_id)
        for _ in range(AHEAD):
            system.signal(run_id, "other", SIGNAL)
        found = {
            "quiet": units(lambda: system.signal(run_id, "other", SIGNAL)),
            "quiet with a key": units(lambda: system.signal(run_id, "other", SIGNAL, "k")),
            "loud": units(lambda: system.signal(run_id, names[0], SIGNAL)),
        }
        found["take"] = units(lambda: system.advance(run_id)) - _CLAIM_AND_PARK
        found["loud with a key"] = units(lambda: system.signal(run_id, names[1], SIGNAL, "k"))
        return found


_CLAIM_AND_PARK: Final = 1 + 2  # a claim, and the index in which the run is found to be due


@contextmanager
def _metered(body: Mapping[str, Any]) -> Iterator[tuple[MeteredAws, Callable[..., float]]]:
    """An engine, and what counts the write units of one thing that is done with it."""
    home = DynamoHome()
    try:
        meter = Meter(connect(REGION))
        system = MeteredAws(body, meter)

        def units(act: Callable[[], None]) -> float:
            before = meter.bill().write_units
            meter.watch(client())
            try:
                act()
            finally:
                meter.unwatch(client())
            return meter.bill().write_units - before

        yield system, units
    finally:
        home.close()
