"""What the API does with a body before it looks at its fields."""

import base64
import gzip
import json
import re
from typing import Any

import pytest

from stepwell_engine import limits
from stepwell_engine.service.projects.identity import Role
from tests.api.events import event
from tests.api.home import PROJECT, SQL, Answer, Home, refused

PATH = f"{PROJECT}/workflows/orders"


def put(home: Home, body: str | None, **request: Any) -> Answer:
    return home.send(event("PUT", PATH, body, token=home.tokens[Role.OWNER], **request))


def start(home: Home, body: str | None, **request: Any) -> Answer:
    return home.send(event("POST", f"{PATH}/runs", body, token=home.tokens[Role.OWNER], **request))


DEFINITION = json.dumps({"steps": [SQL]})


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;charset=UTF-8",
        'application/json; charset="utf-8"',
    ],
)
def test_json_in_utf_8_is_taken(home: Home, content_type: str) -> None:
    assert put(home, DEFINITION, headers={"content-type": content_type}).status == 201


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", ""],
)
def test_another_media_type_is_415(home: Home, content_type: str) -> None:
    answer = put(home, DEFINITION, headers={"content-type": content_type})
    assert answer.status == 415
    assert "must be application/json" in refused(answer, "unsupported_media_type")


def test_a_body_without_a_media_type_is_415(home: Home) -> None:
    request = event("PUT", PATH, DEFINITION, token=home.tokens[Role.OWNER])
    del request["headers"]["content-type"]
    assert "not none" in refused(home.send(request), "unsupported_media_type")


@pytest.mark.parametrize("encoding", ["identity", "Identity", " identity ", ""])
def test_a_body_that_is_sent_as_it_is_is_taken(home: Home, encoding: str) -> None:
    assert put(home, DEFINITION, headers={"content-encoding": encoding}).status == 201


@pytest.mark.parametrize(
    "encoding", ["gzip", "br", "deflate, gzip", "x", "identity, gzip", "utf-8"]
)
def test_an_encoded_body_is_415(home: Home, encoding: str) -> None:
    headers = {"content-encoding": encoding}
    packed = gzip.compress(DEFINITION.encode())
    for answer in (
        put(home, DEFINITION, headers=headers),
        put(home, encoded(packed), headers=headers, encoded=True),
        put(home, "!", headers=headers, encoded=True),
    ):
        assert answer.status == 415
        assert refused(answer, "unsupported_media_type") == (
            f'the body must be sent as it is, without a Content-Encoding, not with "{encoding}"'
        )
    assert home.call("GET", "/workflows/orders").status == 404


@pytest.mark.parametrize("body", [None, "", "  \n"])
def test_an_empty_body_is_refused_where_one_is_needed(home: Home, body: str | None) -> None:
    assert refused(put(home, body), "invalid_request") == ("the body is empty: send a JSON object")


@pytest.mark.parametrize("body", [None, "", "  \n"])
def test_an_empty_body_needs_no_media_type(home: Home, body: str | None) -> None:
    home.publish()
    headers = {"content-type": "text/plain", "content-encoding": "gzip"}
    assert start(home, body, headers=headers).status == 201


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ('{"steps": [}', "the body is not JSON: Expecting value at line 1, column 12"),
        ('{"a": 1,\n"b"}', "the body is not JSON: Expecting ':' delimiter at line 2, column 4"),
        ("{} {}", "the body is not JSON: Extra data at line 1, column 4"),
        ('{"a" 1}', "the body is not JSON: Expecting ':' delimiter at line 1, column 6"),
        ('{"a": 1 "b"}', "the body is not JSON: Expecting ',' delimiter at line 1, column 9"),
        ('{"a": [1 2]}', "the body is not JSON: Expecting ',' delimiter at line 1, column 10"),
        (
            "{a: 1}",
            "the body is not JSON: Expecting property name enclosed in double quotes "
            "at line 1, column 2",
        ),
        ('{"a": "b}', "the body is not JSON: Unterminated string starting at line 1, column 7"),
        ('{"a": "\t"}', "the body is not JSON: Invalid control character at line 1, column 8"),
        ('{"a": "\\x"}', "the body is not JSON: Invalid \\escape at line 1, column 8"),
        ('{"a": "\\u12"}', "the body is not JSON: Invalid \\uXXXX escape at line 1, column 9"),
        ('{"a": NaN}', "the body is refused: NaN is not JSON: use null"),
        ('{"a": -Infinity}', "the body is refused: -Infinity is not JSON: use null"),
        ('{"a": 1e999}', "the body is refused: the number 1e999 is too large for a 64-bit float"),
        ('{"a": 1, "a": 2}', 'the body is refused: the key "a" occurs twice in one object'),
        (
            '{"x": [{"b": {}, "b": 1}]}',
            'the body is refused: the key "b" occurs twice in one object',
        ),
        ("[]", "the body must be a JSON object, not a list"),
        ("null", "the body must be a JSON object, not null"),
        ('"{}"', 'the body must be a JSON object, not "{}"'),
        ("3", "the body must be a JSON object, not 3"),
        (
            '{"a": ' + "1" * 5_000 + "}",
            "the body is refused: a whole number has too many digits",
        ),
        (
            '{"a": "\\ud800"}',
            "the body is refused: text with a lone surrogate is not valid Unicode",
        ),
        (
            '{"\\udfff": 1}',
            "the body is refused: text with a lone surrogate is not valid Unicode",
        ),
        ('{"a": "\ud800"}', "the body is not valid UTF-8"),
        ("\ufeff{}", "the body begins with a byte order mark: leave it out"),
    ],
)
def test_a_bad_body_is_refused_with_its_location(home: Home, body: str, detail: str) -> None:
    home.publish()
    assert refused(start(home, body), "invalid_request") == detail


NOT_JSON = re.compile(
    r"the body is not JSON: [A-Z][^ ]*( (?!at\b)[^ ]+)*[^ :] at line [0-9]+, column [0-9]+"
)


def test_every_complaint_of_the_parser_reads_well(home: Home) -> None:
    home.publish()
    text = '{"a": [1, -2.5e3, true, null, "x\\n\\u00e9"], "b": {"c": {}}}'
    complaints = set()
    for at in range(len(text)):
        for message in ("", '"', "\\", "\t", ",", ":", "}", "]", "x", "0"):
            answer = start(home, text[:at] + message + text[at + 1 :])
            if answer.body["detail"].startswith("the body is not JSON"):
                detail = refused(answer, "invalid_request")
                assert NOT_JSON.fullmatch(detail), detail
                complaints.add(detail.partition(" at line ")[0])
    assert len(complaints) >= 9


def test_escaped_pairs_of_surrogates_are_text(home: Home) -> None:
    home.publish()
    answer = start(home, '{"input": "\\ud83d\\ude00"}')
    assert home.show(answer.body["id"])["input"] == "😀"


def nested(levels: int) -> str:
    """A start body that nests so deep, its own object included."""
    return '{"input": ' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


def test_a_body_nests_at_most_200_levels(home: Home) -> None:
    home.publish()
    run_id = start(home, nested(limits.MAX_NESTING)).body["id"]
    assert home.call("GET", f"/workflows/orders/runs/{run_id}").status == 200
    for levels in (limits.MAX_NESTING + 1, 10_000, 100_000):
        answer = start(home, nested(levels))
        assert "more than 200 levels deep" in refused(answer, "invalid_request")


def test_many_brackets_in_a_flat_body_are_no_nesting(home: Home) -> None:
    home.publish()
    assert start(home, json.dumps({"input": [[]] * 500 + ["[" * 500]})).status == 201


def test_a_body_has_at_most_5_mib(home: Home) -> None:
    fits = '{"x": "' + "y" * (limits.MAX_BODY - 9) + '"}'
    assert len(fits) == limits.MAX_BODY
    refused(start(home, fits), "invalid_request")
    answer = start(home, fits + " ")
    assert answer.status == 413
    assert "5,242,880" in refused(answer, "payload_too_large")


def test_the_size_of_a_body_is_counted_in_bytes(home: Home) -> None:
    fits = '{"x": "' + "ä" * ((limits.MAX_BODY - 10) // 2) + '"}'
    refused(start(home, fits), "invalid_request")
    refused(start(home, fits + "   "), "payload_too_large")


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_base64_body_is_decoded(home: Home) -> None:
    assert put(home, encoded(DEFINITION.encode()), encoded=True).status == 201


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ("!", "the body is not valid base64"),
        ("ä", "the body is not valid base64"),
        (encoded(b'{"a": "\xff"}'), "the body is not valid UTF-8: see byte 7"),
    ],
)
def test_a_bad_base64_body_is_refused(home: Home, body: str, detail: str) -> None:
    assert refused(put(home, body, encoded=True), "invalid_request") == detail


def test_a_base64_body_has_at_most_5_mib_decoded(home: Home) -> None:
    fits = b'{"x": "' + b"y" * (limits.MAX_BODY - 9) + b'"}'
    refused(start(home, encoded(fits), encoded=True), "invalid_request")
    refused(start(home, encoded(fits + b" "), encoded=True), "payload_too_large")
    refused(start(home, "A" * (2 * limits.MAX_BODY + 4), encoded=True), "payload_too_large")


def test_a_body_of_a_get_is_not_read(home: Home) -> None:
    answer = home.send(event("GET", f"{PROJECT}/workflows", "{", token=home.tokens[Role.VIEWER]))
    assert answer.status == 200
