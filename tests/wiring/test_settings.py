"""Settings: flags before the environment before defaults; clear errors; the table is complete."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from stepwell_engine.settings.embedded import BadSetting, Settings, read, unknown, variable_of

TABLE = Path(__file__).parents[2] / "docs" / "settings.md"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("STEPWELL_"):
            monkeypatch.delenv(name)


def test_without_anything_given_all_are_defaults() -> None:
    assert read() == Settings()
    assert (read().port, read().data, read().workers) == (8787, Path(".stepwell"), 32)


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STEPWELL_PORT", "9000")
    monkeypatch.setenv("STEPWELL_DATA", "/var/lib/stepwell")
    monkeypatch.setenv("STEPWELL_FUNCTIONS", f"{tmp_path}{os.pathsep}{tmp_path.parent}")
    monkeypatch.setenv("STEPWELL_LOG_LEVEL", "DEBUG")
    settings = read()
    assert settings.port == 9000
    assert settings.data == Path("/var/lib/stepwell")
    assert settings.functions == (tmp_path, tmp_path.parent)
    assert settings.log_level == "DEBUG"


def test_a_flag_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_PORT", "9000")
    assert read({"port": "9001", "data": None}).port == 9001
    assert read({"port": None}).port == 9000


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_PORT", "")
    assert read().port == 8787


def test_other_variables_are_not_the_hosts_business(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_SIGNING_KEY", "x")
    monkeypatch.setenv("PORT", "1")
    assert read() == Settings()


def test_a_variable_named_like_a_setting_that_is_none_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert unknown() == []
    for name in (
        "STEPWELL_DATA",
        "STEPWELL_WORKER",
        "STEPWELL_A_BIRD",
        "STEPWEL_PORT",
    ):
        monkeypatch.setenv(name, "1")
    assert unknown() == [
        "STEPWELL_A_BIRD is no setting",
        "STEPWELL_WORKER is no setting: did you mean STEPWELL_WORKERS?",
    ]


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("port", 0, 65_535),
        ("workers", 1, 1_000),
        ("request_threads", 1, 1_000),
        ("stop_seconds", 0, 600),
    ],
)
def test_numbers_have_limits(name: str, least: int, most: int) -> None:
    assert getattr(read({name: str(least)}), name) == least
    assert getattr(read({name: str(most)}), name) == most
    flag = "--" + name.replace("_", "-")
    with pytest.raises(BadSetting, match=f"{flag}: should be greater than or equal to {least}"):
        read({name: str(least - 1)})
    with pytest.raises(BadSetting, match=f"{flag}: should be less than or equal to {most}"):
        read({name: str(most + 1)})


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"port": "http"}, "--port: should be a valid integer"),
        ({"log_level": "LOUD"}, "--log-level: should be 'DEBUG', 'INFO', 'WARNING' or 'ERROR'"),
        ({"functions": ["/no/such/folder"]}, "--functions: path does not point to a directory"),
        ({"dsn": "mysql://host/name"}, "--dsn: should be like postgresql://user:password@host"),
        ({"dsn": "postgresql://host:x/name"}, "--dsn: should be like postgresql://"),
        ({"dsn": "postgres:secret"}, "--dsn: should be like postgresql://"),
    ],
)
def test_a_bad_value_is_named_with_what_would_be_right(flags: dict[str, Any], message: str) -> None:
    with pytest.raises(BadSetting) as caught:
        read(flags)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_bad_variable_is_named_as_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_WORKERS", "many")
    with pytest.raises(BadSetting, match=r"^STEPWELL_WORKERS: should be a valid integer"):
        read()


def test_the_password_of_a_bad_dsn_is_not_told() -> None:
    with pytest.raises(BadSetting) as caught:
        read({"dsn": "mysql://user:hunter2@host/name"})
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value.__cause__)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().port = 1


def test_the_table_in_the_docs_says_what_the_code_does() -> None:
    rows = re.findall(
        r"^\| `(STEPWELL_\w+)` \| `(\S+)` \| (.+?) \| (.+) \|$", TABLE.read_text(), re.M
    )
    expected = []
    for name, field in Settings.model_fields.items():
        default = "none" if field.default in ((), None) else f"`{field.default}`"
        flag = "--" + name.replace("_", "-")
        expected.append((variable_of(name), flag, default, field.description))
    assert rows == expected
