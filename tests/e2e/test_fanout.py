"""A fan-out of every kind on the deployed template: eight at once, and one that is tried again."""

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Final

import psycopg
import pytest

from tests.e2e.data_api import DATABASE, DataApi
from tests.e2e.installation import RESERVE, Installation, JsonObject
from tests.scenarios.receiver import Call, Receiver, Reply
from tests.scenarios.step_builders import called, fan, hook, statuses

pytestmark = pytest.mark.e2e

AT_ONCE: Final = 8
HOOKS: Final = [f"hook{n}" for n in range(AT_ONCE)]
FUNCTIONS: Final = ["reserve1", "reserve2"]
MAILS: Final = ["mail1", "mail2"]
CHILDREN: Final = [*HOOKS, *FUNCTIONS, *MAILS, "row"]
AGAIN: Final = "hook3"
TOGETHER: Final = 20  # seconds that a request waits for the others, less than its step does


class Crossing:
    """Answers no child's first request before eight are there, and one of them with a failure."""

    def __init__(self) -> None:
        self._together = threading.Barrier(AT_ONCE)
        self._lock = threading.Lock()
        self._seen: set[str] = set()

    def __call__(self, request: Call) -> Reply:
        with self._lock:
            first = request.path not in self._seen
            self._seen.add(request.path)
        if not first:
            return Reply()
        self._together.wait(TOGETHER)
        return Reply(500 if request.path == f"/{AGAIN}" else 200)


@dataclass(frozen=True)
class EndedRun:
    """A run that has ended, and its steps by key."""

    run: JsonObject
    steps: dict[str, JsonObject]


def children(receiver: Receiver) -> list[JsonObject]:
    reserve = {"kind": "function", "target": "reserve"}
    mail = {"kind": "enqueue", "target": "parcels"}
    return [
        *(hook(receiver, key, payload={"for": key}) for key in HOOKS),
        *({"key": key, **reserve, "payload": {"sku": key}} for key in FUNCTIONS),
        *({"key": key, **mail, "payload": {"for": key}} for key in MAILS),
        {"key": "row", "kind": "sql", "target": "insert into parcels values (7)"},
    ]


@pytest.fixture(scope="module")
def ended(installed: Installation, receiver: Receiver) -> EndedRun:
    receiver.answer = Crossing()
    installed.ok("PUT", "/queues/parcels", {})
    installed.ok("PUT", "/functions/reserve", {"lambda": RESERVE})
    installed.ok("PUT", "/database", DATABASE)
    installed.publish("parcel", *fan(*children(receiver)))
    run = installed.finish("parcel", installed.start("parcel"))
    return EndedRun(run, {step["key"]: step for step in run["steps"]})


def test_eight_siblings_are_in_flight_at_once_and_one_is_tried_again(
    ended: EndedRun, receiver: Receiver
) -> None:
    """None of the eight was answered before all were there, or they would have failed."""
    assert statuses(ended.run) == dict.fromkeys(["all", *CHILDREN, "joined"], "succeeded")
    attempts = {key: ended.steps[key]["attempt"] for key in CHILDREN}
    assert attempts == {**dict.fromkeys(CHILDREN, 1), AGAIN: 2}
    assert Counter(called(receiver)) == {**dict.fromkeys(HOOKS, 1), AGAIN: 2}
    assert called(receiver)[-1] == AGAIN


def test_the_receiver_got_what_each_child_sends(ended: EndedRun, receiver: Receiver) -> None:
    for request in receiver.calls:
        key = request.path[1:]
        assert request.body == {"for": key}
        assert request.headers["webhook-id"] == f"{ended.run['id']}:{key}"
        assert request.headers["idempotency-key"] == f"{ended.run['id']}:{key}"


def test_the_children_stand_in_the_order_of_the_definition_with_their_parent(
    ended: EndedRun,
) -> None:
    parents = [(step["key"], step.get("parent_step_id")) for step in ended.run["steps"]]
    assert parents == [("all", None), *((key, "all") for key in CHILDREN), ("joined", None)]


def test_the_output_of_the_join_is_an_object_by_key(
    ended: EndedRun, installed: Installation, database: DataApi
) -> None:
    taken = installed.ok("POST", "/queues/parcels/messages/receive", {"max": 10})["items"]
    sent = {message["body"]["for"]: message["id"] for message in taken}
    assert (len(taken), sorted(sent)) == (2, MAILS)
    assert ended.steps["joined"]["output"] == {
        **{key: {"delivered": True, "status": 200} for key in HOOKS},
        **{key: {"reserved": key, "key": f"{ended.run['id']}:{key}"} for key in FUNCTIONS},
        **{key: {"msg_id": sent[key]} for key in MAILS},
        "row": {"rows_affected": 1},
    }
    assert ended.run["output"] == ended.steps["joined"]["output"]
    with psycopg.connect(database.dsn) as connection:
        assert connection.execute("select * from parcels").fetchall() == [(7,)]
