"""Keys of records. A record has a string for a key; in storage it may stand as a number."""

from collections.abc import Mapping
from dataclasses import dataclass, field

StepKey = str
"""Which record of a run: a step's key, or `compensate:<key>` for its compensation."""

_UNNAMED = "#"  # no key of a step begins so
_COMPENSATION = "c"


@dataclass(frozen=True, slots=True)
class StepKeys:
    """The keys of one program's steps, and the small numbers that stand for them in a journal.

    `steps` and `compensations` map a step's number to the key of its record, and to that of its
    compensation. A number that they lack (the program cannot be read, or is not at hand) gets a
    key that means nothing, and that is stored as the same number again.
    """

    steps: Mapping[int, StepKey] = field(default_factory=dict)
    compensations: Mapping[int, StepKey] = field(default_factory=dict)
    numbers: Mapping[StepKey, tuple[int, bool]] = field(init=False)

    def __post_init__(self) -> None:
        """Turn the two maps around."""
        numbers = {key: (number, False) for number, key in self.steps.items()}
        numbers |= {key: (number, True) for number, key in self.compensations.items()}
        object.__setattr__(self, "numbers", numbers)

    def key_of(self, number: int, compensation: bool = False) -> StepKey:
        """The key of the record that is stored under these."""
        known = self.compensations if compensation else self.steps
        return known.get(number) or f"{_UNNAMED}{number}{_COMPENSATION if compensation else ''}"

    def number_of(self, key: StepKey) -> tuple[int, bool]:
        """What stands for a record's key: its step's number, and whether it is a compensation.

        KeyError for a key that is none of the program's.
        """
        known = self.numbers.get(key)
        if known is not None:
            return known
        if not key.startswith(_UNNAMED):
            raise KeyError(key)
        digits = key.removeprefix(_UNNAMED)
        return int(digits.removesuffix(_COMPENSATION)), digits.endswith(_COMPENSATION)


UNNAMED = StepKeys()
"""For whoever reads a journal without its program: statuses, errors and children are there."""
