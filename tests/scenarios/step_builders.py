"""Steps that stories are made of, and what stories ask of runs."""

from collections.abc import Mapping
from typing import Any

from tests.scenarios.homes import Answer, Home, JsonObject
from tests.scenarios.receiver import Call, Receiver, Reply


def hook(receiver: Receiver, key: str, **fields: Any) -> JsonObject:
    """A webhook to the path of its key."""
    return {"key": key, "kind": "webhook", "target": f"{receiver.url}/{key}", **fields}


def compensated(receiver: Receiver, key: str, attempts: int = 3, **fields: Any) -> JsonObject:
    """A webhook that another one compensates, to the path `undo-<key>`."""
    compensation = {
        "kind": "webhook",
        "target": f"{receiver.url}/undo-{key}",
        "max_attempts": attempts,
    }
    return hook(receiver, key, compensate=compensation, **fields)


def doomed(receiver: Receiver, key: str = "doomed") -> JsonObject:
    """A webhook with a single attempt."""
    return hook(receiver, key, max_attempts=1)


def nap(sleep_for: str = "1h", key: str = "nap") -> JsonObject:
    """A sleep."""
    return {"key": key, "kind": "sleep", "sleep_for": sleep_for}


def await_signal(signal: str = "approved", key: str = "wait", **fields: Any) -> JsonObject:
    """A wait for a signal."""
    return {"key": key, "kind": "wait_for_signal", "signal": signal, **fields}


def call(workflow: str, key: str = "call", **fields: Any) -> JsonObject:
    """A sub-workflow."""
    return {"key": key, "kind": "subworkflow", "target": workflow, **fields}


def fan(*children: JsonObject) -> tuple[JsonObject, JsonObject]:
    """A fan-out `all` with its join `joined`."""
    fanout: JsonObject = {"key": "all", "kind": "fanout", "children": list(children)}
    return fanout, {"key": "joined", "kind": "join"}


def answer_by_path(receiver: Receiver, statuses: Mapping[str, list[int]]) -> None:
    """Answer each path with its statuses, the last one for ever; other paths with 200."""
    left = {path: list(codes) for path, codes in statuses.items()}

    def answer(request: Call) -> Reply:
        codes = left.get(request.path[1:], [200])
        return Reply(codes.pop(0) if len(codes) > 1 else codes[0], b"as told")

    receiver.answer = answer


def called(receiver: Receiver) -> list[str]:
    """The paths that were called, in order."""
    return [request.path[1:] for request in receiver.calls]


def statuses(run: JsonObject) -> dict[str, str]:
    """The status of every step that a run shows."""
    return {step["key"]: step["status"] for step in run["steps"]}


def send(home: Home, workflow: str, run_id: str, signal: str = "approved", **body: Any) -> Answer:
    """Send a signal to a run."""
    path = f"/workflows/{workflow}/runs/{run_id}/signals"
    return home.request("POST", path, {"signal": signal, **body})


def cancel(home: Home, workflow: str, run_id: str, cascade: bool = False) -> Answer:
    """Cancel a run."""
    query = {"cascade": "true"} if cascade else None
    return home.request("POST", f"/workflows/{workflow}/runs/{run_id}/cancel", query=query)


def runs_of(home: Home, workflow: str) -> list[str]:
    """The ids of a workflow's runs, oldest first."""
    return [item["id"] for item in home.ok("GET", f"/workflows/{workflow}/runs")["items"]][::-1]


def states_of(home: Home, workflow: str) -> list[str]:
    """The statuses of a workflow's runs, oldest first."""
    return [item["status"] for item in home.ok("GET", f"/workflows/{workflow}/runs")["items"]][::-1]
