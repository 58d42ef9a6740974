"""JSON as the engine keeps it."""

from typing import Any

import pytest

from stepwell_engine.core.values.jsonvalue import encode, is_deeper


def nested(levels: int, opened: type = list) -> Any:
    value: Any = opened() if opened is not dict else {}
    for _ in range(levels - 1):
        value = {"a": value} if opened is dict else opened([value])
    return value


@pytest.mark.parametrize("opened", [list, dict, tuple])
def test_levels_are_counted(opened: type) -> None:
    assert not is_deeper(7, 0)
    assert is_deeper(nested(1, opened), 0)
    assert not is_deeper(nested(100, opened), 100)
    assert is_deeper(nested(101, opened), 100)
    assert is_deeper([1, nested(100, opened), "x"], 100)


def test_a_value_that_contains_itself_is_deeper_than_any_limit() -> None:
    circle: dict[str, Any] = {}
    circle["a"] = [circle, {"b": circle}]
    assert is_deeper(circle, 200)
    with pytest.raises(ValueError, match="not a JSON value: it contains itself"):
        encode(circle)


def test_one_value_in_many_places_is_looked_at_once_a_level() -> None:
    value: Any = []
    for _ in range(100):
        value = [value, value]
    assert not is_deeper(value, 101)
    assert is_deeper(value, 100)
