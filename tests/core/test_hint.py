"""Hints as messages: their bytes, and what is none."""

import pytest

from stepwell_engine.core.run import hint as hints
from stepwell_engine.core.run.hint import Hint

HINT = Hint("0190c3a4-1f7e-7000-8000-000000000001", "shop")
TEXT = '{"r":"0190c3a4-1f7e-7000-8000-000000000001","p":"shop"}'


def test_a_hint_is_compact_json() -> None:
    assert hints.encode(HINT) == TEXT
    assert hints.decode(TEXT) == HINT


def test_fields_of_a_later_version_are_no_fault() -> None:
    assert hints.decode('{"p":"shop","x":[1],"r":"a"}') == Hint("a", "shop")


def test_the_longest_ids_are_taken() -> None:
    assert hints.decode(hints.encode(Hint("r" * 200, "p" * 200))) == Hint("r" * 200, "p" * 200)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "null",
        "[]",
        '"r"',
        "{}",
        '{"r":"a"}',
        '{"p":"a"}',
        '{"r":"a","p":null}',
        '{"r":1,"p":"a"}',
        '{"r":"","p":"a"}',
        '{"r":"a","p":""}',
        '{"r":"a\\n","p":"a"}',
        '{"r":"\\ud800","p":"a"}',
        '{"r":"a","p":NaN}',
        '{"r":"' + "r" * 201 + '","p":"a"}',
        "[" * 100_000,
    ],
)
def test_what_is_no_hint_is_told_apart(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  JSON's words or ours
        hints.decode(text)
