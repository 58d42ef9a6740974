"""Names for the columns of a result."""

from collections.abc import Sequence


def distinct(names: Sequence[str]) -> list[str]:
    """The names, those that come again with a number: `a`, `a` becomes `a`, `a_2`."""
    given, used = set(names), set[str]()
    found = []
    for name in names:
        shown, number = name, 1
        while shown in used or (number > 1 and shown in given):
            number += 1
            shown = f"{name}_{number}"
        used.add(shown)
        found.append(shown)
    return found
