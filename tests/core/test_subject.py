"""Hints as messages: their bytes, and what is none."""

import pytest

from stepwell_engine.core.values import subject as subjects
from stepwell_engine.core.values.subject import Subject, SubjectKind, about_run

HINT = about_run("0190c3a4-1f7e-7000-8000-000000000001", "shop")
TEXT = '{"r":"0190c3a4-1f7e-7000-8000-000000000001","p":"shop"}'


def test_a_hint_is_compact_json() -> None:
    assert subjects.encode(HINT) == TEXT
    assert subjects.decode(TEXT) == HINT


def test_fields_of_a_later_version_are_no_fault() -> None:
    assert subjects.decode('{"p":"shop","x":[1],"r":"a"}') == about_run("a", "shop")


def test_the_longest_ids_are_taken() -> None:
    assert subjects.decode(subjects.encode(about_run("r" * 200, "p" * 200))) == about_run(
        "r" * 200, "p" * 200
    )


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
def test_what_is_no_hint_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  JSON's words or ours
        subjects.decode(text)


@pytest.mark.parametrize("kind", SubjectKind)
def test_a_hint_about_any_kind_comes_back(kind: SubjectKind) -> None:
    subject = Subject(kind, "a", "shop")
    assert subjects.decode(subjects.encode(subject)) == subject


@pytest.mark.parametrize("text", ['{"k":"cron","i":"a","p":"shop"}', '{"c":"a","p":"shop"}'])
def test_a_hint_about_a_kind_of_a_later_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a hint is like"):
        subjects.decode(text)


def test_no_other_kind_uses_the_key_of_runs() -> None:
    """So that a worker of an older version refuses it."""
    bodies = [subjects.encode(Subject(kind, "a", "shop")) for kind in SubjectKind]
    assert [body for body in bodies if '"r"' in body] == ['{"r":"a","p":"shop"}']
