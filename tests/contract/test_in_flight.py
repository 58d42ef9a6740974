"""Runs of every kind in flight, as the last version left them that knew only format 1, go on."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.contract.homes import SqliteHome
from tests.contract.in_flight import Shop, as_item, check_goes_on, fill
from tools.moto_home import CONTROL, RUNS, DynamoHome, client

GOLDEN = Path(__file__).parents[1] / "golden"


def test_a_whole_sqlite_file_of_format_1_goes_on_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "stepwell.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript((GOLDEN / "sqlite_in_flight.sql").read_text("utf-8"))
    home = SqliteHome(path)
    check_goes_on(home)
    home.close()


def test_all_items_of_dynamodb_of_format_1_go_on_and_end() -> None:
    home = DynamoHome()
    stored: Any = json.loads((GOLDEN / "aws" / "runs_in_flight.json").read_text("utf-8"))
    for table, items in ((RUNS, stored["runs"]), (CONTROL, stored["control"])):
        for item in items:
            client().put_item(TableName=table, Item=as_item(item))
    check_goes_on(home)
    home.close()


def test_what_this_version_leaves_goes_on_as_well(tmp_path: Path) -> None:
    home = SqliteHome(tmp_path / "stepwell.db")
    fill(Shop(home))
    check_goes_on(home)
    home.close()
