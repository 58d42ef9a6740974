"""Creating and reading runs: ids, idempotency keys, blobs."""

import pytest

from stepwell_engine.core.run.head import Blob
from stepwell_engine.core.run.inbox import InboxMessage, MessageKind
from stepwell_engine.core.run.status import Status
from stepwell_engine.limits import KIB
from stepwell_engine.ports import Done, Refused, Runs
from tests.contract.heads import LIVE_STATUSES, NOW, RUN, a_head, check_done, check_refused, put
from tests.contract.homes import Home

KEY = "order-17"


def test_a_head_comes_back_as_it_was_put(runs: Runs) -> None:
    head = a_head(
        status=Status.WAITING,
        ended_at=NOW + 1,
        ready_at=NOW + 2,
        wake_at=NOW + 3,
        lease_token="t" * 12,
        lease_expires_at=NOW + 4,
        inbox_seq=5,
        commit_seq=6,
        lost_leases=7,
        journal=b"\x00\xff journal",
        inbox={
            "m1": InboxMessage(MessageKind.SIGNAL, "paid", 8, b"{}"),
            "m2": InboxMessage(MessageKind.CHILD, "", 9, None, "b"),
        },
        input=b'{"a":1}',
        idempotency_key=KEY,
        test=True,
        parent="01890000-0000-7000-8000-000000000002",
        depth=5,
        notify_pending=True,
    )
    check_done(runs, runs.create(head), head)


def test_a_head_of_defaults_comes_back(runs: Runs) -> None:
    head = a_head(ready_at=0, wake_at=None, journal=b"")
    check_done(runs, runs.create(head), head)


@pytest.mark.parametrize("status", [*Status])
def test_every_status_comes_back(runs: Runs, status: Status) -> None:
    put(runs, a_head(status=status))
    assert runs.get(RUN) == a_head(status=status)


def test_a_run_that_does_not_exist_is_none(runs: Runs) -> None:
    assert runs.get(RUN) is None
    assert runs.by_key("shop", "order", KEY) is None
    assert runs.blob(RUN, "input") is None


def test_an_id_that_exists_is_refused(runs: Runs) -> None:
    put(runs, a_head())
    check_refused(runs, lambda: runs.create(a_head(version=9)))
    assert runs.create(a_head(version=9)) == Refused(a_head())


def test_a_refused_id_takes_no_key(runs: Runs) -> None:
    put(runs, a_head())
    assert runs.create(a_head(idempotency_key=KEY)) == Refused(a_head())
    assert runs.by_key("shop", "order", KEY) is None


def test_a_key_stands_for_its_run(runs: Runs) -> None:
    head = put(runs, a_head(idempotency_key=KEY))
    assert runs.by_key("shop", "order", KEY) == head


def test_a_key_that_is_held_is_refused_with_its_run(runs: Runs) -> None:
    head = put(runs, a_head(idempotency_key=KEY))
    assert runs.create(a_head("other", idempotency_key=KEY)) == Refused(head)
    assert runs.get("other") is None
    assert runs.by_key("shop", "order", KEY) == head


def test_a_repeated_create_with_a_key_is_refused_with_the_run_itself(runs: Runs) -> None:
    head = put(runs, a_head(idempotency_key=KEY))
    assert runs.create(head) == Refused(head)


@pytest.mark.parametrize("status", [*LIVE_STATUSES, Status.SUCCEEDED, Status.CANCELLED])
def test_a_key_is_held_whatever_the_status_of_its_run(runs: Runs, status: Status) -> None:
    head = put(runs, a_head(status=status, idempotency_key=KEY))
    assert runs.create(a_head("other", idempotency_key=KEY)) == Refused(head)


@pytest.mark.parametrize(("project", "workflow"), [("shop", "refund"), ("bank", "order")])
def test_a_key_belongs_to_one_workflow_of_one_project(
    runs: Runs, project: str, workflow: str
) -> None:
    first = put(runs, a_head(idempotency_key=KEY))
    second = put(runs, a_head("other", project=project, workflow=workflow, idempotency_key=KEY))
    assert runs.by_key("shop", "order", KEY) == first
    assert runs.by_key(project, workflow, KEY) == second


def test_keys_differ_by_every_character(runs: Runs) -> None:
    put(runs, a_head(idempotency_key=KEY))
    second = put(runs, a_head("other", idempotency_key=KEY.upper()))
    assert runs.by_key("shop", "order", KEY.upper()) == second


def test_a_key_whose_run_is_gone_is_free_again(home: Home) -> None:
    put(home.runs, a_head(idempotency_key=KEY))
    home.forget(RUN)
    assert home.runs.by_key("shop", "order", KEY) is None
    second = put(home.runs, a_head("other", idempotency_key=KEY))
    assert home.runs.by_key("shop", "order", KEY) == second


def test_runs_without_a_key_are_independent(runs: Runs) -> None:
    put(runs, a_head())
    put(runs, a_head("other"))


def test_blobs_are_created_with_the_run(runs: Runs) -> None:
    blobs = [Blob("input", b"\x00\x01"), Blob("empty", b"")]
    assert runs.create(a_head(), blobs) == Done(a_head())
    assert runs.blob(RUN, "input") == b"\x00\x01"
    assert runs.blob(RUN, "empty") == b""
    assert runs.blob(RUN, "other") is None
    assert runs.blob("other", "input") is None


def test_a_blob_may_be_large(runs: Runs) -> None:
    data = bytes(range(256)) * 4_096
    runs.create(a_head(), [Blob("input", data)])
    assert runs.blob(RUN, "input") == data


def test_several_blobs_are_read_at_once(runs: Runs) -> None:
    large = Blob("large", bytes(range(256)) * 4 * KIB)
    put = [Blob(f"b{number}", b"%d" % number) for number in range(150)]
    runs.create(a_head(), [large, *put])
    names = ["large", "gone", *(blob.name for blob in put), "b7"]
    assert runs.blobs(RUN, names) == {blob.name: blob.data for blob in (large, *put)}
    assert runs.blobs(RUN, ["b3"]) == {"b3": b"3"}
    assert runs.blobs(RUN, []) == {}
