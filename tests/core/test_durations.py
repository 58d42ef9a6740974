"""Durations: what is read, what is refused, and in which words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell_engine.core.values.durations import in_seconds, parse
from stepwell_engine.limits import DAY, HOUR, MAX_DURATION, MAX_DURATION_TEXT, MINUTE, SECOND


@pytest.mark.parametrize(
    ("given_value", "ms"),
    [
        ("500ms", 500),
        ("30s", 30 * SECOND),
        ("15m", 15 * MINUTE),
        ("2h", 2 * HOUR),
        ("1d", DAY),
        ("1w", 7 * DAY),
        ("1h30m", 90 * MINUTE),
        ("1w2d3h4m5s6ms", 9 * DAY + 3 * HOUR + 4 * MINUTE + 5 * SECOND + 6),
        ("90m", 90 * MINUTE),
        ("1.5h", 90 * MINUTE),
        ("0.001s", 1),
        ("0h1m", MINUTE),
        ("007s", 7 * SECOND),
        ("1.4ms", 1),
        ("1.5ms", 2),
        ("2.5ms", 3),
        ("PT1H", HOUR),
        ("P1DT2H", 26 * HOUR),
        ("P2W", 14 * DAY),
        ("P1W1D", 8 * DAY),
        ("PT1M30S", 90 * SECOND),
        ("PT0.5S", 500),
        ("PT0,5S", 500),
        (30, 30 * SECOND),
        (0.25, 250),
        (1e-3, 1),
        (0.0015, 2),
        (2.5e6, 2_500_000 * SECOND),
    ],
)
def test_reads_every_form(given_value: object, ms: int) -> None:
    assert parse(given_value) == ms


@pytest.mark.parametrize(
    "given_value",
    [
        "", " ", "5", "30 s", " 30s", "30s ", "30s\n", "1h 30m", "-1h", "+1h", "1H", "30sec", "h",
        "30m1h", "1h1h", "1ms1s", "1.h", ".5h", "1,5h", "1e3s", "٣s", "1h\0", "\ud800", "soon",
        "P", "PT", "P1DT", "PT1", "pt1h", "P1H", "PT1D", "-PT1H", "P-1D", "P1D2W", "T1H",
        None, True, False, [], ["1h"], {}, {"hours": 1}, b"1h", float("nan"),
    ],
)  # fmt: skip
def test_refuses_what_is_no_duration(given_value: object) -> None:
    with pytest.raises(ValueError, match=r"is not a duration: .*1h30m.*PT1H.*number of seconds"):
        parse(given_value)


@pytest.mark.parametrize("text", ["P1Y", "P1M", "P1Y2M3DT4H", "P1MT1M"])
def test_says_why_years_and_months_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f'"{text}" has years or months.*P30D'):
        parse(text)


@pytest.mark.parametrize(
    "given_value",
    [0, -1, -0.5, 0.0, 0.0009, 1e-300, float("-inf"), "0s", "0.9ms", "PT0S", "0.0009s"],
)
def test_refuses_less_than_a_millisecond(given_value: object) -> None:
    with pytest.raises(ValueError, match="too short: a duration is at least 1 ms"):
        parse(given_value)


def test_the_longest_duration_is_read_and_a_millisecond_more_is_refused() -> None:
    days = MAX_DURATION // DAY
    assert parse(f"{days}d") == parse(days * 86_400) == MAX_DURATION
    for value in (f"{days}d1ms", days * 86_400 + 0.001, f"PT{days * 24}H1S"):
        with pytest.raises(ValueError, match=f"too long: a duration is at most {days} days"):
            parse(value)


@pytest.mark.parametrize(
    "given_value",
    [
        float("inf"),
        1e308,
        pytest.param(10**5000, id="5001-digits"),
        "9" * 98 + "w",
        "P" + "9" * 98 + "W",
    ],
)
def test_refuses_huge_numbers(given_value: object) -> None:
    with pytest.raises(ValueError, match="too long"):
        parse(given_value)


def test_reads_text_up_to_the_longest_and_refuses_one_character_more() -> None:
    assert parse("1s".rjust(MAX_DURATION_TEXT, "0")) == SECOND
    with pytest.raises(
        ValueError, match=f"{MAX_DURATION_TEXT + 1} characters, at most {MAX_DURATION_TEXT}"
    ):
        parse("1s".rjust(MAX_DURATION_TEXT + 1, "0"))


def test_an_error_shortens_what_was_given() -> None:
    with pytest.raises(ValueError, match="…") as caught:
        parse("x" * 1_000_000)
    assert len(str(caught.value)) < 300


@given(
    *(st.integers(0, 50) for _ in range(6)),
)
def test_a_combination_is_the_sum_of_its_parts(
    w: int, d: int, h: int, m: int, s: int, ms: int
) -> None:
    total = (((w * 7 + d) * 24 + h) * 60 + m) * MINUTE + s * SECOND + ms
    if total == 0:
        total, ms = 1, 1
    assert parse(f"{w}w{d}d{h}h{m}m{s}s{ms}ms") == total
    if ms == 0:
        assert parse(f"P{w}W{d}DT{h}H{m}M{s}S") == total


@given(
    st.one_of(
        st.text(),
        st.text(alphabet="PT0123456789.,wdhmsYMWDHS-", max_size=120),
        st.floats(),
        st.integers(),
        st.none(),
    )
)
def test_gives_a_sound_length_or_an_error_that_an_answer_can_carry(value: object) -> None:
    try:
        length: int | str = parse(value)
    except ValueError as error:
        length = str(error)
    if isinstance(length, str):
        assert 0 < len(length.encode()) < 1_000
    else:
        assert 1 <= length <= MAX_DURATION


@pytest.mark.parametrize(
    ("ms", "text"),
    [(1, "0.001 s"), (1_000, "1 s"), (1_900, "1.9 s"), (90_050, "90.05 s"), (DAY, "86400 s")],
)
def test_a_time_in_seconds_keeps_its_fraction(ms: int, text: str) -> None:
    assert in_seconds(ms) == text
