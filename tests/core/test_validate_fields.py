"""The value of every field of a step: accepted at the limit, refused one past it."""

import json
from typing import Any

import pytest

from stepwell_engine.core.declared.fields import RESERVED_WORKFLOW_NAMES
from stepwell_engine.core.declared.validate import Violation, check
from stepwell_engine.limits import (
    MAX_ATTEMPTS,
    MAX_DEFINITION,
    MAX_PAYLOAD_DEPTH,
    MAX_SECRET,
    MAX_STEP_PAYLOAD,
    MAX_TARGET,
)

URL = "https://example.com/hook"
MONTH = 30 * 86_400

MINIMAL: dict[str, dict[str, Any]] = {
    "enqueue": {"kind": "enqueue", "target": "mails"},
    "sql": {"kind": "sql", "target": "select 1"},
    "webhook": {"kind": "webhook", "target": URL},
    "function": {"kind": "function", "target": "resize"},
    "sleep": {"kind": "sleep", "sleep_for": "1m"},
    "wait_for_signal": {"kind": "wait_for_signal", "signal": "approved"},
    "subworkflow": {"kind": "subworkflow", "target": "other"},
}
ACTIONS = ("enqueue", "sql", "webhook", "function")
PAYLOAD_KINDS = ("enqueue", "webhook", "function", "subworkflow")
RETRIED = (*ACTIONS, "subworkflow")


def violations(kind: str, **fields: Any) -> list[str]:
    """Messages about a definition of one step called `a`."""
    step = {"key": "a", **MINIMAL[kind], **fields}
    found = check({"steps": [step]}, "flow")
    assert all(violation.step == "a" for violation in found)
    return [violation.message for violation in found]


def one_violation(kind: str, **fields: Any) -> str:
    messages = violations(kind, **fields)
    assert len(messages) == 1, messages
    return messages[0]


@pytest.mark.parametrize("kind", MINIMAL)
def test_a_minimal_step_of_every_kind_is_valid(kind: str) -> None:
    assert violations(kind) == []


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("enqueue", "m"),
        ("enqueue", "m" * 48),
        ("enqueue", "m_9"),
        ("function", "f" * 64),
        ("function", "9-f_"),
        ("subworkflow", "w" * 64),
        ("subworkflow", "0_-"),
        ("subworkflow", "apps"),
        ("sql", "update t set a = 1; -- é"),
        ("sql", "s" * MAX_TARGET),
        ("sql", "é" * (MAX_TARGET // 2)),
        ("webhook", "http://h"),
        ("webhook", "HTTPS://EXAMPLE.com:65535/a?b=c@d#e"),
        ("webhook", "http://127.0.0.1:1/"),
        ("webhook", "http://[::1]:8080/x"),
        ("webhook", "https://bücher.example/é"),
        ("webhook", URL + "/" + "x" * (MAX_TARGET - len(URL) - 1)),
    ],
)
def test_accepts_targets_that_fit_the_kind(kind: str, target: str) -> None:
    assert violations(kind, target=target) == []


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        *[("enqueue", bad) for bad in ("m" * 49, "Mails", "9m", "_m", "a-b", "a.b", "a\n", "é")],
        *[("function", bad) for bad in ("f" * 65, "F", "-f", "_f", "a.b", "a:b", "f\n", " f")],
        *[("subworkflow", bad) for bad in ("w" * 65, "W", "-w", "a/b", "a:b", "w\n")],
    ],
)
def test_refuses_names_that_do_not_match(kind: str, target: str) -> None:
    message = one_violation(kind, target=target)
    assert f"target of {kind} must be 1 to" in message
    assert "lower-case letters" in message
    assert "(^[a-z" in message


@pytest.mark.parametrize("name", sorted(RESERVED_WORKFLOW_NAMES))
def test_refuses_reserved_words_as_the_target_of_a_subworkflow(name: str) -> None:
    assert "reserved word" in one_violation("subworkflow", target=name)
    assert violations("function", target=name) == []


@pytest.mark.parametrize(
    "target",
    [
        "example.com/hook", "/hook", "//example.com", "ftp://example.com", "file:///etc/passwd",
        "javascript:alert(1)", "https://", "https:///x", "http://:80/", "https:example.com",
        "https://exa mple.com", " https://example.com", "https://example.com\n", "http://a\tb",
        "http://a\0b", "http://a\u200bb", "http://a\\@b", "http://<a>", "http://[::1", "http://]",
        "http://[zz]/", "http://[1.2.3.4]/", "http://a:99999/", "http://a:x/", "http://a:0/",
        "http://a:-1/", "http://.", "http://a%62/", "http://a|b/", "http://a{b}/", "\u2100://a",
        "http://a\u2100b/",
    ],
)  # fmt: skip
def test_refuses_webhook_targets_that_are_no_http_url_with_a_host(target: str) -> None:
    assert "must be an http or https URL with a host" in one_violation("webhook", target=target)


@pytest.mark.parametrize(
    "target", ["http://u:p@a/", "http://u@a/", "http://@a/", "https://:secret@a/"]
)
def test_refuses_credentials_in_a_webhook_target_and_does_not_repeat_them(target: str) -> None:
    message = one_violation("webhook", target=target)
    assert "must not contain a user name or password" in message
    assert target not in message


@pytest.mark.parametrize("kind", RETRIED)
@pytest.mark.parametrize("target", ["", "  ", "\n", None, 5, True, [], {}, ["mails"]])
def test_refuses_targets_that_are_no_text(kind: str, target: object) -> None:
    assert "target must be non-empty text, not" in one_violation(kind, target=target)


@pytest.mark.parametrize("kind", RETRIED)
def test_refuses_a_target_one_byte_past_the_limit(kind: str) -> None:
    for target in ("x" * (MAX_TARGET + 1), "é" * (MAX_TARGET // 2) + "x"):
        assert one_violation(kind, target=target) == (
            "target has 8,193 bytes, at most 8,192 are allowed"
        )


def test_refuses_a_statement_with_a_nul_character() -> None:
    assert "NUL character" in one_violation("sql", target="select '\0'")


@pytest.mark.parametrize("kind", RETRIED)
def test_refuses_a_target_with_a_lone_surrogate(kind: str) -> None:
    assert "lone surrogate" in one_violation(kind, target="a\ud800")


@pytest.mark.parametrize("kind", PAYLOAD_KINDS)
@pytest.mark.parametrize(
    "payload", [None, True, 0, -1.5, "", "é", [], {}, {"a": [1, {"b": None}]}, 10**300]
)
def test_accepts_any_json_value_as_payload(kind: str, payload: object) -> None:
    assert violations(kind, payload=payload) == []


@pytest.mark.parametrize("kind", PAYLOAD_KINDS)
def test_a_payload_may_have_64_kib_of_compact_json_and_no_byte_more(kind: str) -> None:
    at = {"a": "é" * ((MAX_STEP_PAYLOAD - 8) // 2)}  # {"a":""} has 8 bytes
    assert violations(kind, payload=at) == []
    over = {"a": at["a"] + "x"}
    assert one_violation(kind, payload=over) == (
        "payload has 65,537 bytes as compact JSON, at most 65,536 are allowed"
    )


def nested(depth: int, opened: str = "[") -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if opened == "[" else {"a": value}
    return value


@pytest.mark.parametrize("opened", ["[", "{"])
def test_a_payload_may_nest_up_to_the_limit(opened: str) -> None:
    assert violations("enqueue", payload=nested(MAX_PAYLOAD_DEPTH, opened)) == []
    for depth in (MAX_PAYLOAD_DEPTH + 1, 20_000):
        assert one_violation("enqueue", payload=nested(depth, opened)) == (
            f"payload must not be nested more than {MAX_PAYLOAD_DEPTH} levels deep"
        )


@pytest.mark.parametrize(
    "payload", [float("nan"), float("inf"), ["\ud800"], {"\udfff": 1}, {"a": {1, 2}}, 10**5000]
, ids=["nan", "inf", "surrogate", "surrogate-name", "set", "5001-digits"])  # fmt: skip
def test_refuses_payloads_that_are_not_json(payload: object) -> None:
    assert one_violation("webhook", payload=payload).startswith("payload must be a JSON value: ")


@pytest.mark.parametrize(
    "secret",
    ["s", " ", "é" * (MAX_SECRET // 2), "x" * MAX_SECRET, "whsec_AA==", "whsec_" + "QUJD" * 254,
     "WHSEC_!", "whse_"],
)  # fmt: skip
def test_accepts_secrets(secret: str) -> None:
    assert violations("webhook", secret=secret) == []


@pytest.mark.parametrize("secret", ["", None, 1, True, ["s"], {"s": 1}])
def test_refuses_secrets_that_are_no_text(secret: object) -> None:
    assert one_violation("webhook", secret=secret) == "secret must be non-empty text"


def test_refuses_a_secret_one_byte_past_the_limit() -> None:
    for secret in ("x" * (MAX_SECRET + 1), "é" * (MAX_SECRET // 2) + "x"):
        assert one_violation("webhook", secret=secret) == (
            "secret has 1,025 bytes, at most 1,024 are allowed"
        )


def test_refuses_a_secret_with_a_lone_surrogate() -> None:
    assert "lone surrogate" in one_violation("webhook", secret="\ud800")


@pytest.mark.parametrize(
    "rest", ["", "!", "QQ", "QQ=", "====", "A", "QUJ D", "QUJD\n", "é", "-_=="]
)
def test_refuses_a_signing_secret_that_is_not_base64_and_does_not_repeat_it(rest: str) -> None:
    message = one_violation("webhook", secret="whsec_" + rest)
    assert message == (
        "a secret that begins with whsec_ must go on with the key in base64, padded with ="
    )


def test_a_sealed_secret_is_not_held_to_the_rules_of_a_plain_one() -> None:
    document = {"steps": [{"key": "a", **MINIMAL["webhook"], "secret": "whsec_!" + "x" * 2000}]}
    assert check(document, "flow", sealed=True) == []
    for bad in ("", None, 5, "\ud800"):
        document["steps"][0]["secret"] = bad
        assert check(document, "flow", sealed=True) == [
            Violation("a", "secret must be sealed text")
        ]


@pytest.mark.parametrize("kind", RETRIED)
def test_max_attempts_is_a_whole_number_from_1_to_20(kind: str) -> None:
    assert MAX_ATTEMPTS == 20
    assert violations(kind, max_attempts=1) == violations(kind, max_attempts=20) == []
    for bad, shown in (
        (0, "0"), (21, "21"), (-1, "-1"), (True, "true"), (3.0, "3.0"), ("3", '"3"'),
        (None, "null"), ([], "a list"), ({}, "an object"), (float("nan"), "NaN"),
        (10**5000, "a number of more than 20 digits"),
    ):  # fmt: skip
        assert one_violation(kind, max_attempts=bad) == (
            f"max_attempts must be a whole number from 1 to 20, not {shown}"
        )


@pytest.mark.parametrize(
    ("kind", "longest"),
    [*[(kind, 600) for kind in ACTIONS], ("subworkflow", MONTH), ("wait_for_signal", MONTH)],
)
def test_timeout_seconds_has_a_range_per_kind(kind: str, longest: int) -> None:
    for good in (1, 1.0, 1.5, longest - 0.5, longest, float(longest)):
        assert violations(kind, timeout_seconds=good) == []
    for bad, shown in (
        (0, "0"), (0.999, "0.999"), (-1, "-1"), (longest + 1, str(longest + 1)),
        (longest + 0.001, repr(longest + 0.001)), (True, "true"), ("30", '"30"'), ("30s", '"30s"'),
        (None, "null"), ([], "a list"), ({}, "an object"), (float("nan"), "NaN"),
        (float("inf"), "inf"), (10**5000, "a number of more than 20 digits"),
    ):  # fmt: skip
        assert one_violation(kind, timeout_seconds=bad) == (
            f"timeout_seconds of {kind} must be a number from 1 to {longest}, not {shown}"
        )


@pytest.mark.parametrize(
    "length", ["1ms", "30m", "PT1H", "30d", "720h", "4w2d", 0.001, 1, MONTH, float(MONTH)]
)
def test_accepts_a_sleep_of_a_millisecond_to_30_days(length: object) -> None:
    assert violations("sleep", sleep_for=length) == []


@pytest.mark.parametrize("length", ["30d1ms", "31d", "5w", "P31D", MONTH + 1, MONTH + 0.001])
def test_refuses_a_sleep_longer_than_30_days(length: object) -> None:
    assert one_violation("sleep", sleep_for=length).startswith("sleep_for must be at most 30 days")


@pytest.mark.parametrize("length", [0, -1, "0s", "-1h", "", "soon", "1h 2m", None, True, [], {}])
def test_refuses_a_sleep_that_is_no_positive_duration(length: object) -> None:
    message = one_violation("sleep", sleep_for=length)
    assert message.startswith("sleep_for: ")
    assert "a duration is" in message


@pytest.mark.parametrize("name", ["a", "0", "a" * 64, "order.paid_v1-x"])
def test_accepts_signal_names(name: str) -> None:
    assert violations("wait_for_signal", signal=name) == []


@pytest.mark.parametrize(
    "name", ["", "a" * 65, ".a", "-a", "_a", "A", "a:b", "a b", "a\n", "é", None, 5, [], {}]
)
def test_refuses_signal_names_that_do_not_match(name: object) -> None:
    message = one_violation("wait_for_signal", signal=name)
    assert message.startswith("signal must be 1 to 64 lower-case letters, digits, _, . and -")
    assert "^[a-z0-9][a-z0-9_.-]{0,63}$" in message


def test_a_definition_may_have_256_kib_in_all_and_no_byte_more() -> None:
    def document(size: int) -> dict[str, Any]:
        steps = [
            {"key": f"s{at}", **MINIMAL["enqueue"], "payload": "x" * 60_000} for at in range(4)
        ]
        whole = {"steps": [*steps, {"key": "last", **MINIMAL["enqueue"], "payload": ""}]}
        filler = size - _bytes(whole)
        whole["steps"][-1]["payload"] = "x" * filler
        assert _bytes(whole) == size
        return whole

    assert check(document(MAX_DEFINITION), "flow") == []
    over = document(MAX_DEFINITION + 1)
    assert check(over, "flow") == [
        Violation(
            None,
            "the definition has 262,145 bytes as compact JSON, at most 262,144 are allowed",
        )
    ]
    assert check(over, "flow", sealed=True) == []


def _bytes(document: object) -> int:
    return len(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode())


def test_a_message_shortens_the_value_and_escapes_what_is_not_printable() -> None:
    message = one_violation("function", target="X\ud800\n" + "y" * 8_000)
    assert "lone surrogate" in message
    message = one_violation("wait_for_signal", signal="X\ud800\n" + "y" * 8_000)
    assert '"X\\ud800\\nyyy' in message
    assert message.endswith('y…"')
    assert len(message) < 250
    assert message.encode().decode() == message
