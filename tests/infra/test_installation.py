"""Context values: what is allowed at the limits, what is refused past them, and how it is said."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.installation import RETENTIONS, BadContext, Installation, from_values
from tests.arch.sources import ROOT
from tests.infra.synthesize import CHOSEN

ARN = "arn:aws:sqs:eu-west-1:123456789012:orders"


def test_every_value_has_a_default() -> None:
    found = from_values({})
    assert (found.name, found.queue_prefix) == ("stepwell-dev", "stepwell-dev-q-")


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("environment", ["a", "a" * 16]),
        ("log_level", ["DEBUG", "ERROR"]),
        ("log_retention", [*RETENTIONS, "30"]),
        ("throttle_rate", [1, 10_000, "7"]),
        ("throttle_burst", [1, 5_000]),
        ("api_concurrency", [1, 10_000]),
        ("executor_concurrency", [2, 1_000]),
        ("due_shards", [1, 256, "64"]),
        ("deletion_protection", ["true", "false", True]),
        ("functions", ["", ARN, f"{ARN},{ARN}-2", [ARN]]),
        ("alarm_email", ["ops@example.com"]),
        ("allowed_networks", ["10.0.0.0/8", "127.0.0.0/8,fd00::/8"]),
    ],
)
def test_a_value_that_fits_is_taken(name: str, good: list[Any]) -> None:
    for value in good:
        from_values({name: value})


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("environment", ["", "a" * 17, "Prod", "1a", "a-b"]),
        ("log_level", ["info", "TRACE"]),
        ("log_retention", [0, 2, 31, 3654, "month"]),
        ("throttle_rate", [0, 10_001, "many"]),
        ("throttle_burst", [0, 5_001]),
        ("api_concurrency", [0, 10_001]),
        ("executor_concurrency", [1, 1_001]),
        ("due_shards", [0, 257, "many"]),
        ("deletion_protection", ["perhaps"]),
        ("functions", ["orders", f"{ARN}, {ARN}", f"{ARN},orders"]),
        ("alarm_email", ["ops", "ops@"]),
        ("alarm_topic", ["pager"]),
        ("allowed_networks", ["example.com", "10.0.0.0/8,", "10.0.0.0/8, fd00::/8"]),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(name: str, bad: list[Any]) -> None:
    for value in bad:
        with pytest.raises(BadContext, match=rf"^context {name}: \S"):
            from_values({name: value})


def test_a_refused_retention_says_which_there_are() -> None:
    with pytest.raises(BadContext, match="should be one of 1, 3, 5, 7, 14, 30,"):
        from_values({"log_retention": "31"})


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"domain": "a.example.com"}, "domain and certificate are given together"),
        ({"certificate": ARN}, "domain and certificate are given together"),
        ({"databases": ARN}, "databases and secrets are given together"),
        ({"alarm_topic": ARN, "alarm_email": "a@example.com"}, "only one is given"),
    ],
)
def test_values_that_need_or_exclude_each_other(values: dict[str, str], reason: str) -> None:
    with pytest.raises(BadContext, match=reason):
        from_values(values)


def test_the_command_refuses_a_value_in_one_sentence(assemblies: Path) -> None:
    refused = json.loads((assemblies / "refused.json").read_text("utf-8"))
    assert refused == {
        "environment=Prod": [
            2,
            "context environment: string should match pattern '^[a-z][a-z0-9]{0,15}$'\n",
        ],
        "colour=red": [
            2,
            "context colour: there is no such value, only "
            f"{', '.join(Installation.model_fields)}\n",
        ],
        "domain": [2, "context domain: should be NAME=VALUE\n"],
        "domain=a.example.com": [2, "context: domain and certificate are given together\n"],
    }
    assert not (assemblies / "refused" / "manifest.json").exists()


def test_the_document_lists_every_value_with_its_default() -> None:
    document = (ROOT / "docs" / "deploy.md").read_text("utf-8")
    rows = [line for line in document.splitlines() if line.startswith("| `")]
    for name, field in Installation.model_fields.items():
        shown = "none" if field.default in (None, ()) else f"`{str(field.default).lower()}`"
        if name == "log_level":
            shown = f"`{field.default}`"
        assert f"| `{name}` | {shown} | {field.description} |" in rows


def test_the_tests_choose_every_value_somewhere() -> None:
    assert CHOSEN.keys() | {"alarm_email"} == Installation.model_fields.keys()
