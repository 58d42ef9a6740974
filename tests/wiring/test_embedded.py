"""The embedded home is complete, and opens whole or not at all."""

import socket
import sqlite3
from pathlib import Path

import pytest

from stepwell_engine.core.declared.kinds import ACTION_KINDS
from stepwell_engine.errors import StoreError
from stepwell_engine.service.projects.identity import Role
from stepwell_engine.settings.embedded import Settings
from stepwell_engine.wiring.embedded import Home, embedded
from tests.fresh import run


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def failing(home: Home, step: dict[str, object]) -> str:
    """What a run of one step failed of."""
    services = home.engine.services
    services.identity.create_project("local", "demo")
    services.workflows.publish("demo", "one", {"steps": [{"key": "one", **step}]})
    head = services.starts.start("demo", "one", b"{}").head
    hint = home.hints.take_due()
    assert hint is not None
    home.engine.advance.run(hint.subject.id, hint.subject.project, 5_000)
    error = services.queries.detail("demo", "one", head.run_id).run.last_error
    assert error is not None
    return error


def test_it_keeps_what_it_was_told_from_one_time_to_the_next(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    home = embedded(settings)
    home.engine.services.identity.create_project("local", "demo")
    token = home.engine.services.identity.mint_session("local", Role.OWNER)
    home.close()
    home = embedded(settings)
    assert home.engine.services.identity.identify(token).role is Role.OWNER
    home.close()


def test_secrets_are_sealed_with_the_key_in_the_folder(tmp_path: Path) -> None:
    home = embedded(Settings(data=tmp_path))
    home.engine.services.resources.put_database("demo", "postgresql://a:hunter2@db/name")
    home.close()
    assert b"hunter2" not in (tmp_path / "stepwell.db").read_bytes()


def test_what_only_some_steps_need_is_not_loaded_before_them() -> None:
    """A host that starts after a crash goes on with its runs at once."""
    loaded = run("import sys, stepwell_engine.wiring.embedded\nprint(*sys.modules)").split()
    assert set(loaded).isdisjoint({"aws_lambda_powertools", "psutil", "psycopg", "requests"})


def test_every_kind_with_a_side_effect_is_performed(tmp_path: Path) -> None:
    home = embedded(Settings(data=tmp_path))
    performed = set(home.engine.advance._tools.runners)
    home.close()
    assert performed == ACTION_KINDS


@pytest.mark.parametrize(
    "damage", ["database", "header of the database", "key", "other key", "no database"]
)
def test_what_cannot_be_opened_leaves_nothing_open(tmp_path: Path, damage: str) -> None:
    embedded(Settings(data=tmp_path)).close()
    if damage == "database":
        (tmp_path / "stepwell.db").write_bytes(b"garbage" * 1_000)
    elif damage == "header of the database":
        (tmp_path / "stepwell.db").write_bytes(b"SQLite format 3\x00" + b"?" * 1_000)
    elif damage == "no database":
        (tmp_path / "stepwell.db").unlink()
    else:
        (tmp_path / "secret.key").write_text("none" if damage == "key" else "00" * 32)
    before = open_files()
    # The error is kept: with it go the last references to what was opened.
    with pytest.raises(StoreError) as refused:
        embedded(Settings(data=tmp_path))
    assert open_files() == before, refused.value


@pytest.mark.parametrize("made", [[], ["stepwell.db"], ["stepwell.db", "secret.key"]])
def test_a_beginning_that_was_cut_short_is_taken_up(tmp_path: Path, made: list[str]) -> None:
    """In the order in which the files are made; the host writes its own file last."""
    embedded(Settings(data=tmp_path)).close()
    for file in tmp_path.iterdir():
        if file.name not in made:
            file.unlink()
    if made:
        (tmp_path / "stepwell.db").write_bytes(b"")
    embedded(Settings(data=tmp_path)).close()
    embedded(Settings(data=tmp_path)).close()


def test_a_database_without_tables_does_not_count_where_a_host_was(tmp_path: Path) -> None:
    embedded(Settings(data=tmp_path)).close()
    (tmp_path / "credentials.json").touch()
    (tmp_path / "stepwell.db").unlink()
    connection = sqlite3.connect(tmp_path / "stepwell.db")
    connection.execute("pragma journal_mode = wal")
    connection.close()
    before = (tmp_path / "stepwell.db").read_bytes()
    assert before
    with pytest.raises(StoreError, match=r"stepwell\.db holds nothing of Stepwell's: restore it"):
        embedded(Settings(data=tmp_path))
    assert (tmp_path / "stepwell.db").read_bytes() == before


def test_a_database_from_before_keys_were_checked_takes_the_first_key(tmp_path: Path) -> None:
    embedded(Settings(data=tmp_path)).close()
    connection = sqlite3.connect(tmp_path / "stepwell.db")
    with connection:
        connection.execute("delete from meta")
    connection.close()
    embedded(Settings(data=tmp_path)).close()
    (tmp_path / "secret.key").write_text("00" * 32)
    with pytest.raises(StoreError, match=r"secret\.key is not the key"):
        embedded(Settings(data=tmp_path))


def test_a_given_server_takes_the_place_of_the_embedded_one(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    home = embedded(Settings(data=tmp_path, dsn=f"postgresql://a:b@127.0.0.1:{port}/c"))
    home.engine.services.resources.put_database("demo")
    error = failing(home, {"kind": "sql", "target": "select 1", "max_attempts": 1})
    home.close()
    assert f"port {port} failed: Connection refused" in error
    assert not (tmp_path / "postgres").exists()


def test_closing_gives_back_every_file(tmp_path: Path) -> None:
    before = open_files()
    home = embedded(Settings(data=tmp_path))
    assert open_files() > before
    home.close()
    assert open_files() == before
