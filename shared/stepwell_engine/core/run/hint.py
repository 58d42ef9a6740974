"""A hint as a message on the queue: `{"r": run id, "p": project}`."""

from dataclasses import dataclass
from typing import Final

from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.excerpt import excerpt

_LONGEST: Final = 200  # characters of an id; our own are much shorter


@dataclass(frozen=True, slots=True)
class Hint:
    """Somebody should advance this run."""

    run_id: str
    project: str


def encode(hint: Hint) -> str:
    """The body of a message."""
    return jsonvalue.encode({"r": hint.run_id, "p": hint.project}).decode()


def decode(text: str) -> Hint:
    """What `encode` was given. Further fields are a later version's. ValueError for no hint."""
    value = jsonvalue.decode(text)
    if not isinstance(value, dict) or not _is_id(value.get("r")) or not _is_id(value.get("p")):
        raise ValueError(f'a hint is like {{"r": run id, "p": project}}, not {excerpt(text)}')
    return Hint(value["r"], value["p"])


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= _LONGEST and value.isprintable()
