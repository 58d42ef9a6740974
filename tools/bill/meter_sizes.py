"""How large DynamoDB takes an item to be, and how many units that is.

After "DynamoDB item sizes and formats" and "Read and write requests" of its developer guide.
"""

from collections.abc import Mapping, Set
from decimal import Decimal
from typing import Any, Final

WRITE_UNIT: Final = 1024  # bytes
READ_UNIT: Final = 4096  # bytes
_DOCUMENT: Final = 3  # bytes of a list or map, however much is in it
_ELEMENT: Final = 1  # bytes more for each element

Item = Mapping[str, Any]


def write_units(size: int) -> int:
    """Of one write of an item, or index entry, of `size` bytes."""
    return max(1, -(-size // WRITE_UNIT))


def read_units(size: int, consistent: bool) -> float:
    """Of one read that looked at `size` bytes."""
    units = max(1, -(-size // READ_UNIT))
    return units if consistent else units / 2


def item_size(item: Item | None) -> int:
    """Bytes of an item, names of attributes included; 0 for none."""
    if item is None:
        return 0
    return sum(_text(name) + value_size(value) for name, value in item.items())


def value_size(value: Mapping[str, Any]) -> int:
    """Bytes of a value in DynamoDB's form: {"S": "text"}."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return _text(content)
        case "N":
            return number_size(content)
        case "B":
            return len(content)
        case "BOOL" | "NULL":
            return 1
        case "L":
            return _DOCUMENT + sum(_ELEMENT + value_size(element) for element in content)
        case "M":
            return _DOCUMENT + len(content) * _ELEMENT + item_size(content)
        case "SS" | "NS" | "BS":
            return sum(value_size({kind[0]: element}) for element in content)
    raise ValueError(f"a value of DynamoDB is no {kind}")


def number_size(text: str) -> int:
    """One byte for every two significant digits, one for the exponent, one for a minus."""
    sign, digits, _ = Decimal(text).normalize().as_tuple()
    significant = 0 if digits == (0,) else len(digits)
    return -(-significant // 2) + 1 + sign


def index_units(before: Item | None, after: Item | None, keys: Set[str]) -> int:
    """Of what a write changes in an index; `keys` are the names of the index's own keys.

    An entry whose key changes is deleted and put anew; one that stays the same costs nothing.
    """
    if before is None and after is None:
        return 0
    if before is None or after is None:
        return write_units(item_size(before) + item_size(after))
    if any(before[key] != after[key] for key in keys):
        return write_units(item_size(before)) + write_units(item_size(after))
    if before == after:
        return 0
    return write_units(max(item_size(before), item_size(after)))


def _text(text: str) -> int:
    return len(text.encode())
