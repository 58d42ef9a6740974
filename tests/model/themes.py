"""What the random scenarios are about, and what each theme must reach."""

from collections.abc import Mapping
from typing import Final

from tests.model.scenarios import GOOD, Theme

# A parent gives its child up at a time of its own: what an attempt that fails in the very
# millisecond of a cancel leaves behind is open while its siblings are in flight.
_APART: Final = (None, 2.03, 1.03, 5.03, 60.03)

THEMES: Final[Mapping[str, Theme]] = {
    "steps": Theme(("function", "function", "sleep")),
    "saga": Theme(("function", "fanout"), most_children=3, compensated=2),
    "fanout": Theme(("fanout", "function"), most_steps=2),
    "join": Theme(("fanout", "function"), most_steps=1, luck=GOOD),
    "signals": Theme(("wait_for_signal", "function", "sleep"), ("go", "go", "stop")),
    "children": Theme(("subworkflow", "function", "sleep"), workflows=4, most_steps=3),
    "cancel": Theme(
        ("function", "fanout", "sleep", "wait_for_signal"),
        ("cancel", "go"),
        most_children=10,
        most_steps=4,
    ),
    "family": Theme(
        ("subworkflow", "subworkflow", "wait_for_signal", "sleep", "fanout"),
        ("cancel", "cascade", "go"),
        most_steps=2,
        most_children=3,
        workflows=3,
        child_seconds=_APART,
    ),
    "ceiling": Theme(
        ("function", "fanout", "subworkflow"),
        most_steps=4,
        workflows=2,
        child_seconds=_APART,
        ceilings=(10_000, 1, 2, 3, 5, 8, 10),
        compensated=2,
    ),
}

REACHED: Final[Mapping[str, frozenset[str]]] = {
    "steps": frozenset(
        {"a run succeeded", "a run failed", "sleep succeeded", "timeout", "unknown_resource"}
        | {"output_too_large", "the longest backoff", "compensation: compensated"}
    ),
    "saga": frozenset(
        {"compensation: none", "compensation: compensated", "compensation: failed"}
        | {"a late success is compensated", "join failed", "child_failed"}
    ),
    "fanout": frozenset(
        {"join succeeded", "join failed", "output_too_large", "a sibling succeeds late"}
        | {"a child never starts", "a child backs off no more", "a late success is compensated"}
    ),
    "join": frozenset({"join succeeded", "output_too_large"}),
    "signals": frozenset(
        {"an early signal", "a signal that was waited for", "wait_timed_out", "a run succeeded"}
    ),
    "children": frozenset(
        {"a new child is started", "timeout", "depth 5", "depth_exceeded", "child_failed"}
        | {"unknown_resource", "subworkflow succeeded", "a run cancelled", "compensation: failed"}
    ),
    "cancel": frozenset(
        {"a run cancelled", "join cancelled", "sleep cancelled", "wait_for_signal cancelled"}
        | {"a child never starts", "a child backs off no more", "compensation: incomplete"}
        | {"a cancel while a step backs off"}
    ),
    "family": frozenset(
        {"child_cancelled", "a child outlives its parent", "a child is cancelled with its parent"}
        | {"a new child is started", "subworkflow cancelled", "a signal that was waited for"}
    ),
    "ceiling": frozenset({"a run failed", "a run succeeded", "compensation: failed"}),
}
