"""Runs are listed newest first, page by page, and shown in detail to their own workflow alone."""

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver, Reply


def test_runs_are_listed_newest_first_in_pages(home: Home) -> None:
    home.publish("drip", {"key": "nap", "kind": "sleep", "sleep_for": "1m"})
    ids = [home.start("drip") for _ in range(5)]
    seen: list[str] = []
    query = {"limit": "2"}
    while True:
        page = home.request("GET", "/workflows/drip/runs", query=query).body
        assert len(page["items"]) <= 2
        seen += [item["id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == ids[::-1]


def test_the_list_can_be_cut_by_time(home: Home) -> None:
    home.publish("drip", {"key": "nap", "kind": "sleep", "sleep_for": "1m"})
    ids = []
    for _ in range(4):
        ids.append(home.start("drip"))
        home.clock.at += 1_000
    times = [home.run("drip", run_id)["created_at"] for run_id in ids]
    query = {"from": times[1], "to": times[3]}
    page = home.request("GET", "/workflows/drip/runs", query=query).body
    assert [item["id"] for item in page["items"]] == [ids[2], ids[1]]
    assert home.request("GET", "/workflows/drip/runs", query={"from": "x"}).status == 400


def test_the_list_can_be_filtered_by_status(home: Home, receiver: Receiver) -> None:
    receiver.script(Reply(200), Reply(500))
    step = {"key": "pay", "kind": "webhook", "target": receiver.url, "max_attempts": 1}
    home.publish("order", step)
    good = home.start("order")
    home.drain()
    bad = home.start("order")
    home.drain()
    for status, expected in (("succeeded", [good]), ("failed", [bad]), ("sleeping", [])):
        page = home.request("GET", "/workflows/order/runs", query={"status": status}).body
        assert [item["id"] for item in page["items"]] == expected
    assert home.request("GET", "/workflows/order/runs", query={"status": "lost"}).status == 400


def test_a_run_is_shown_to_its_own_workflow_and_project_only(home: Home) -> None:
    nap = {"key": "nap", "kind": "sleep", "sleep_for": "1m"}
    home.publish("drip", nap)
    home.publish("other", nap)
    run_id = home.start("drip")
    assert home.request("GET", f"/workflows/drip/runs/{run_id}").status == 200
    for path in (f"/workflows/other/runs/{run_id}", "/workflows/drip/runs/none"):
        assert home.request("GET", path).status == 404
        assert home.request("POST", f"{path}/cancel").status == 404
    assert home.run("drip", run_id)["status"] == "pending"


def test_the_detail_shows_what_happened_and_what_is_to_come(home: Home, receiver: Receiver) -> None:
    home.publish(
        "order",
        {"key": "pay", "kind": "webhook", "target": receiver.url},
        {"key": "nap", "kind": "sleep", "sleep_for": "1m"},
        {"key": "tell", "kind": "webhook", "target": receiver.url, "max_attempts": 5},
    )
    run_id = home.start("order", input={"order": 42}, test=True)
    home.drain()
    run = home.run("order", run_id)
    assert (run["status"], run["cursor"], run["test"]) == ("sleeping", 1, True)
    assert run["input"] == {"order": 42}
    assert run["output"] == {"delivered": True, "status": 200}
    shown = [(step["key"], step["status"], step["attempt"]) for step in run["steps"]]
    assert shown[0] == ("pay", "succeeded", 1)
    assert shown[1][:2] == ("nap", "sleeping")
    assert shown[2] == ("tell", "pending", 0)
    assert run["finished_at"] is None


def test_two_hundred_steps_are_all_there(home: Home) -> None:
    home.ok("PUT", "/queues/emails", {})
    steps = [{"key": f"s{n}", "kind": "enqueue", "target": "emails"} for n in range(200)]
    home.publish("long", *steps)
    run_id = home.start("long")
    run = home.finish("long", run_id)
    assert run["status"] == "succeeded"
    assert [step["key"] for step in run["steps"]] == [f"s{n}" for n in range(200)]
    assert run["output"] == run["steps"][-1]["output"]
    assert len({step["output"]["msg_id"] for step in run["steps"]}) == 200
    page = home.request("GET", f"/workflows/long/runs/{run_id}/steps", query={"limit": "100"}).body
    assert [step["key"] for step in page["items"]] == [f"s{n}" for n in range(100)]
    assert page["next_cursor"] is not None
