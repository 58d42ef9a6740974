"""The workflows of the crash script, and how their runs must end."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

# Of an innocent run: nearly all.
INNOCENT: Final = ("orders", "imports", "gathers", "orders", "imports", "doomed")
POISONOUS: Final = ("fanned", "undone", "commanded")
WAYS: Final = ("kill", "exit", "fault", "abort")  # to end a process
POISONED_EVERY: Final = 16  # runs


@dataclass(frozen=True, slots=True)
class Plan:
    """A definition, the status in which its runs must end, and which step ends its process."""

    definition: Any
    ends: str
    poison: str | None = None


def plans(receiver: str) -> dict[str, Plan]:
    """By workflow name."""
    return _innocent(receiver) | dict(_poisonous(receiver))


def names(runs: int, chance: random.Random) -> list[str]:
    """The workflow of each run: one of each poisonous kind after the other, now and then."""
    found = []
    for number in range(runs):
        turn, rest = divmod(number, POISONED_EVERY)
        if rest == POISONED_EVERY // 2:
            kind = POISONOUS[turn % len(POISONOUS)]
            found.append(f"{kind}-{chance.choice(WAYS)}")
        else:
            found.append(INNOCENT[number % len(INNOCENT)])
    return found


def _innocent(receiver: str) -> dict[str, Plan]:
    orders = [
        _webhook("charge", f"{receiver}/ok"),
        _function("reserve", receiver, ms=40),
        {"key": "nap", "kind": "sleep", "sleep_for": "300ms"},
        _webhook("flaky", f"{receiver}/flaky"),
        _function("pack", receiver, ms=20),
        {"key": "mail", "kind": "enqueue", "target": "mails", "payload": {"template": "sent"}},
        _webhook("confirm", f"{receiver}/ok"),
    ]
    imports = [
        _function("fetch", receiver, ms=60, failing=1),
        {"key": "pause", "kind": "sleep", "sleep_for": "500ms"},
        {"key": "mail", "kind": "enqueue", "target": "mails", "payload": {"template": "done"}},
        _webhook("done", f"{receiver}/ok"),
    ]
    gathers = [
        {
            "key": "fan",
            "kind": "fanout",
            "children": [_webhook(f"slow-{number}", f"{receiver}/slow") for number in range(8)],
        },
        {"key": "join", "kind": "join"},
    ]
    doomed = [
        _webhook("begin", f"{receiver}/ok"),
        _webhook("broken", f"{receiver}/broken") | {"max_attempts": 2},
        _function("never", receiver, ms=0),
    ]
    return {
        "orders": Plan({"steps": orders}, "succeeded"),
        "imports": Plan({"steps": imports}, "succeeded"),
        "gathers": Plan({"steps": gathers}, "succeeded"),
        "doomed": Plan({"steps": doomed}, "failed"),
    }


def _poisonous(receiver: str) -> Iterator[tuple[str, Plan]]:
    """For each way a child among innocent siblings, a compensation, and a command."""
    for way in WAYS:
        poison = _function("poison", receiver, how=way) | {"target": "poison"}
        children = [
            _webhook("first", f"{receiver}/ok"),
            _function("second", receiver, ms=40),
            poison,
            _webhook("fourth", f"{receiver}/flaky"),
        ]
        fanned = [
            _webhook("begin", f"{receiver}/ok"),
            {"key": "fan", "kind": "fanout", "children": children},
            {"key": "join", "kind": "join"},
        ]
        yield f"fanned-{way}", Plan({"steps": fanned}, "failed", "poison")
        poison = {name: value for name, value in poison.items() if name != "key"}
        unbook = _webhook("unbook", f"{receiver}/ok")
        del unbook["key"]
        undone = [
            _webhook("buy", f"{receiver}/ok") | {"compensate": poison},
            _function("book", receiver, ms=20) | {"compensate": unbook},
            _webhook("broken", f"{receiver}/broken") | {"max_attempts": 1},
        ]
        yield f"undone-{way}", Plan({"steps": undone}, "failed", "compensate:buy")
        command = _function("poison", receiver, how=way) | {"target": "command"}
        never = _webhook("never", f"{receiver}/ok")
        commanded = [_webhook("begin", f"{receiver}/ok"), command, never]
        yield f"commanded-{way}", Plan({"steps": commanded}, "failed", "poison")


def _webhook(key: str, url: str) -> dict[str, Any]:
    return {"key": key, "kind": "webhook", "target": url, "payload": {}, "max_attempts": 5}


def _function(key: str, receiver: str, **payload: Any) -> dict[str, Any]:
    payload["notes"] = f"{receiver}/note"
    return {"key": key, "kind": "function", "target": "work", "payload": payload}
