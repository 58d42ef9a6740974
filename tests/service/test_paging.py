"""Cursors take nothing but what they gave."""

import base64
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell_engine import limits
from stepwell_engine.errors import Problem
from stepwell_engine.service.paging import (
    any_position,
    cursor,
    from_url,
    listing,
    number_position,
    page,
    text_position,
    to_url,
)


def forged(value: object) -> str:
    return to_url(json.dumps(value))


@pytest.mark.parametrize("place", ["a", "order-pipeline", "a" * 200, 0, 1, 2**63 - 1])
def test_a_cursor_gives_its_place_back(place: str | int) -> None:
    assert any_position("list", cursor("list", place)) == place


def test_no_cursor_is_the_beginning() -> None:
    assert any_position("list", None) is None


@pytest.mark.parametrize(
    "given_cursor",
    [
        "",
        "x",
        "ä",
        "!!!!",
        "\ud800",
        forged(["other", "a"]),
        forged(["list"]),
        forged(["list", "a", "b"]),
        forged({"list": "a"}),
        forged(["list", None]),
        forged(["list", True]),
        forged(["list", False]),
        cursor("list", True),
        forged(["list", 1.5]),
        forged(["list", -1]),
        forged(["list", 2**63]),
        forged(["list", ""]),
        forged(["list", "a b"]),
        forged(["list", "a\n"]),
        forged(["list", "a" * 201]),
        forged(["list", "\ud800"]),
        to_url("[" * 100_000),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    ],
)
def test_garbage_is_refused(given_cursor: str) -> None:
    with pytest.raises(Problem, match="next_cursor of its previous page") as refusal:
        any_position("list", given_cursor)
    assert refusal.value.code == "invalid_request"


def test_a_cursor_of_another_kind_of_place_is_refused() -> None:
    with pytest.raises(Problem):
        text_position("list", cursor("list", 1))
    with pytest.raises(Problem):
        number_position("list", cursor("list", "a"))


def test_a_list_is_named_after_all_that_tells_it_from_others() -> None:
    lists = [
        *(("runs",), ("runs", None), ("runs", ""), ("runs", "a"), ("runs", "a", 1)),
        *(("runs", "a", "1"), ("runs", 'a", "1'), ("runs", "a", None, 1), ("runs", "\ud800")),
    ]
    assert len({listing(*one) for one in lists}) == len(lists)
    assert listing("runs", "a", 1) == listing("runs", "a", 1)


@pytest.mark.parametrize("text", ["a", "ab", "abc"])
def test_text_has_one_form_in_a_url(text: str) -> None:
    form = to_url(text)
    padded = base64.urlsafe_b64encode(text.encode()).decode()
    others = {padded, f"{form}=", f"{form} ", f"{form}\n"} - {form}
    # The last character of some forms has bits that carry nothing.
    others |= {form[:-1] + chr(ord(form[-1]) + 1)} if len(text) % 3 else set()
    for other in others:
        with pytest.raises(ValueError, match=r"base64|adding|one way"):
            from_url(other)


@given(st.text())
def test_any_text_is_a_place_or_refused(given_cursor: str) -> None:
    with suppress(Problem):
        assert isinstance(any_position("list", given_cursor), str | int)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_survives_a_url(text: str) -> None:
    assert from_url(to_url(text)) == text
    assert set(to_url(text)) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    )


def test_a_page_knows_whether_there_is_more() -> None:
    assert page("list", ["a", "b"], 2, str) == (["a", "b"], None)
    assert page("list", ["a", "b", "c"], 2, str) == (["a", "b"], cursor("list", "b"))
    assert page("list", [], 2, str) == ([], None)


def test_a_page_has_at_most_2_mib_and_at_least_one_item() -> None:
    half = limits.MAX_PAGE_BYTES // 2
    sizes = [half, half, 1]
    assert page("list", sizes, 3, str, int) == ([half, half], cursor("list", str(half)))
    assert page("list", sizes[:2], 3, str, int) == ([half, half], None)
    assert page("list", [half, half + 1], 3, str, int)[0] == [half]
    huge = limits.MAX_PAGE_BYTES + 1
    assert page("list", [huge, huge], 3, str, int) == ([huge], cursor("list", str(huge)))
