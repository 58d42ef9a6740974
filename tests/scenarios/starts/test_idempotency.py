"""One idempotency key, one run."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.scenarios.homes import Answer, Home

STEP = {"key": "notify", "kind": "enqueue", "target": "emails"}


@pytest.fixture(autouse=True)
def workflows(home: Home) -> None:
    home.ok("PUT", "/queues/emails", {})
    home.publish("order", STEP)
    home.publish("other", STEP)


def start(home: Home, workflow: str, **body: Any) -> Answer:
    return home.request("POST", f"/workflows/{workflow}/runs", body)


def test_a_key_used_again_gives_the_run_that_it_stands_for(home: Home) -> None:
    first = start(home, "order", input={"n": 1}, idempotency_key="order-42")
    again = start(home, "order", input={"n": 2}, idempotency_key="order-42")
    assert (first.status, again.status) == (201, 200)
    assert again.body["id"] == first.body["id"]
    run = home.finish("order", first.body["id"])
    assert (run["input"], run["idempotency_key"]) == ({"n": 1}, "order-42")
    finished = start(home, "order", idempotency_key="order-42")
    assert (finished.status, finished.body) == (
        200,
        {"id": first.body["id"], "status": "succeeded"},
    )
    assert home.messages("emails") == [{}]


def test_many_starts_at_once_with_one_key_make_one_run(home: Home) -> None:
    with ThreadPoolExecutor(16) as threads:
        answers = list(
            threads.map(lambda n: start(home, "order", input=n, idempotency_key="k"), range(32))
        )
    assert sorted(answer.status for answer in answers) == [200] * 31 + [201]
    assert len({answer.body["id"] for answer in answers}) == 1
    (created,) = [n for n, answer in enumerate(answers) if answer.status == 201]
    run = home.finish("order", answers[0].body["id"])
    assert run["input"] == created
    assert home.messages("emails") == [{}]


def test_a_key_belongs_to_its_workflow(home: Home) -> None:
    one = start(home, "order", idempotency_key="k")
    two = start(home, "other", idempotency_key="k")
    assert (one.status, two.status) == (201, 201)
    assert one.body["id"] != two.body["id"]


def test_without_a_key_every_start_is_a_run(home: Home) -> None:
    ids = {home.start("order") for _ in range(5)}
    for run_id in ids:
        assert home.finish("order", run_id)["status"] == "succeeded"
    assert len(ids) == 5
    assert len(home.messages("emails")) == 5
