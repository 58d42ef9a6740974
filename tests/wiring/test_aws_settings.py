"""The variables of the functions: read, checked, and listed in the docs."""

import re
from ipaddress import ip_network

import pytest

from stepwell_engine.settings.aws import OPTIONAL, REQUIRED, BadEnvironment, read
from tests.arch.sources import ROOT

TABLE = ROOT / "docs" / "settings.md"


@pytest.fixture(autouse=True)
def complete(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in REQUIRED:
        monkeypatch.setenv(name, name.lower())
    for name in OPTIONAL:
        monkeypatch.delenv(name, raising=False)


def test_what_is_left_out_has_its_default() -> None:
    settings = read()
    assert settings.runs_table == "stepwell_runs_table"
    assert settings.queue_prefix == "stepwell_queue_prefix"
    assert (settings.log_level, settings.allowed_networks) == ("INFO", ())
    assert settings.due_shards == 16


@pytest.mark.parametrize("name", REQUIRED)
def test_a_variable_that_is_missing_or_empty_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "")
    with pytest.raises(BadEnvironment, match=f"^{name}: not set, but the deployment sets it$"):
        read()
    monkeypatch.delenv(name)
    with pytest.raises(BadEnvironment, match=f"^{name}: not set"):
        read()


def test_networks_are_a_list_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_ALLOWED_NETWORKS", "10.0.0.0/8, fd00::/8")
    assert read().allowed_networks == (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize("text", ["10.0.0.0/33", "10.0.0.1/8", "intranet"])
def test_what_is_no_network_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("STEPWELL_ALLOWED_NETWORKS", text)
    with pytest.raises(
        BadEnvironment, match=r"^STEPWELL_ALLOWED_NETWORKS: .*right is 10\.0\.0\.0/8"
    ):
        read()


@pytest.mark.parametrize("text", ["1", "64", "256"])
def test_the_shards_of_what_is_due_are_a_number(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("STEPWELL_DUE_SHARDS", text)
    assert read().due_shards == int(text)


@pytest.mark.parametrize("text", ["0", "257", "-1", "16.0", "many", "²"])
def test_what_is_no_number_of_shards_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("STEPWELL_DUE_SHARDS", text)
    with pytest.raises(BadEnvironment, match=r"^STEPWELL_DUE_SHARDS: should be 1 to 256$"):
        read()


def test_a_level_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_LOG_LEVEL", "LOUD")
    with pytest.raises(BadEnvironment, match="should be one of DEBUG, INFO, WARNING, ERROR"):
        read()


def test_the_table_in_the_docs_says_what_the_code_does() -> None:
    _, _, section = TABLE.read_text("utf-8").partition("## The functions on AWS")
    rows = re.findall(r"^\| `(STEPWELL_\w+)` \| (.+?) \| (.+) \|$", section, re.M)
    expected = [(name, "set by the deployment", text) for name, text in REQUIRED.items()]
    for name, (default, text) in OPTIONAL.items():
        expected.append((name, f"`{default}`" if default else "none", text))
    assert rows == expected
