"""What a due entry or a hint is about, and a hint as a message on the queue.

A message names its subject by a key of its kind, and the project: `{"r": run id, "p": project}`.
So a worker that does not know a kind finds no subject in the message, and drops it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.core.values.units import ProjectRef, RunId

_PROJECT: Final = "p"
_LONGEST: Final = 200  # characters of an id; our own are much shorter


class SubjectKind(StrEnum):
    """What somebody may have to look at."""

    RUN = "run"


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """One thing that somebody has to look at: its kind, its id, the project that it belongs to."""

    kind: SubjectKind
    id: str
    project: ProjectRef


def about_run(run_id: RunId, project: ProjectRef) -> Subject:
    """A run: somebody should advance it."""
    return Subject(SubjectKind.RUN, run_id, project)


def encode(subject: Subject) -> str:
    """The body of a message."""
    return jsonvalue.encode({_key(subject.kind): subject.id, _PROJECT: subject.project}).decode()


def decode(text: str) -> Subject:
    """What `encode` was given. Further fields are a later version's. ValueError for no hint."""
    value = jsonvalue.decode(text)
    if isinstance(value, dict) and _is_id(value.get(_PROJECT)):
        for kind in SubjectKind:
            if _is_id(value.get(_key(kind))):
                return Subject(kind, value[_key(kind)], value[_PROJECT])
    raise ValueError(f'a hint is like {{"r": run id, "p": project}}, not {excerpt(text)}')


def _key(kind: SubjectKind) -> str:
    """The key that an id stands under: never that of another kind, and never `p`."""
    match kind:
        case SubjectKind.RUN:
            return "r"
        case _:
            assert_never(kind)


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= _LONGEST and value.isprintable()
