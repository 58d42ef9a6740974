"""Many threads at one document: a condition lets exactly one of them through."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from stepwell_engine.core.run.head import Blob
from stepwell_engine.core.run.status import Status
from stepwell_engine.limits import INLINE_MESSAGES
from stepwell_engine.ports import Delivered, Done, Refused, Written
from tests.contract.heads import (
    COMMIT,
    NOW,
    RUN,
    TOKEN,
    UNTIL,
    a_head,
    held,
    put,
    some_message,
)
from tests.contract.homes import Home
from tests.contract.inboxes import pending

THREADS = 32
TURNS = 10

T = TypeVar("T")


def at_once(call: Callable[[int], T], threads: int = THREADS) -> list[T]:
    """The results of calls that all threads begin together, by thread."""
    start = threading.Barrier(threads)

    def begin(number: int) -> T:
        start.wait()
        return call(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


def the_only_done(results: list[Written]) -> Done:
    (done,) = [result for result in results if isinstance(result, Done)]
    assert all(isinstance(result, Refused) for result in results if result is not done)
    return done


def test_one_of_many_claims_gets_the_lease(shared: Home) -> None:
    put(shared.runs, a_head())
    done = the_only_done(at_once(lambda n: shared.runs.claim(RUN, f"t{n}", NOW, UNTIL)))
    assert shared.runs.get(RUN) == done.head
    assert done.head.lost_leases == 0


def test_one_of_many_claims_takes_a_lost_lease(shared: Home) -> None:
    put(shared.runs, held(lease_expires_at=0))
    done = the_only_done(at_once(lambda n: shared.runs.claim(RUN, f"t{n}", NOW, UNTIL)))
    assert shared.runs.get(RUN) == done.head
    assert done.head.lost_leases == 1


def test_one_of_many_commits_of_a_number_is_written(shared: Home) -> None:
    put(shared.runs, held())

    def write(number: int) -> Written:
        page = Blob(f"{TOKEN}/{turn}-{number}", b"page %d" % number)
        journal = page.name.encode()
        return shared.runs.commit(replace(COMMIT, commit_seq=turn, journal=journal, blobs=(page,)))

    for turn in range(TURNS):
        done = the_only_done(at_once(write))
        assert shared.runs.get(RUN) == done.head
        assert done.head.commit_seq == turn + 1
        name = done.head.journal.decode()
        assert shared.runs.blob(RUN, name) == b"page %d" % int(name.rpartition("-")[2])


def test_one_of_many_starts_with_a_key_creates_its_run(shared: Home) -> None:
    def start(number: int) -> Written:
        return shared.runs.create(a_head(f"{turn}-{number}", idempotency_key=str(turn)))

    for turn in range(TURNS):
        results = at_once(start)
        done = the_only_done(results)
        assert all(result.head == done.head for result in results)
        assert shared.runs.list("shop", "order", None, 100, None)[0] == done.head
        assert shared.runs.by_key("shop", "order", str(turn)) == done.head
    assert len(shared.runs.list("shop", "order", None, 100, None)) == TURNS


def test_one_of_many_starts_with_an_id_creates_it(shared: Home) -> None:
    done = the_only_done(at_once(lambda n: shared.runs.create(a_head(version=n))))
    assert shared.runs.get(RUN) == done.head


def test_all_of_many_messages_arrive(shared: Home) -> None:
    put(shared.runs, a_head(commit_seq=1))
    results = at_once(lambda n: shared.runs.deliver(RUN, f"m{n}", some_message(), NOW, None))
    assert all(isinstance(result, Delivered) for result in results)
    head = shared.runs.get(RUN)
    assert head is not None
    assert head.inbox_seq == THREADS
    assert len(head.inbox) == INLINE_MESSAGES
    assert set(pending(shared.runs, head)) == {f"m{n}" for n in range(THREADS)}


def test_one_of_many_deliveries_of_a_message_arrives(shared: Home) -> None:
    put(shared.runs, a_head(commit_seq=1))
    results = at_once(lambda n: shared.runs.deliver(RUN, "m", some_message(f"s{n}"), NOW, None))
    head = shared.runs.get(RUN)
    assert head is not None
    assert head.inbox_seq == 1
    assert results == [Delivered(head, NOW)] * THREADS


def test_one_of_many_deliveries_with_a_key_arrives(shared: Home) -> None:
    put(shared.runs, a_head(commit_seq=1))
    results = at_once(
        lambda n: shared.runs.deliver(RUN, f"m{n}", some_message(), NOW, None, key="once")
    )
    head = shared.runs.get(RUN)
    assert head is not None
    assert (head.inbox_seq, head.pending) == (1, 1)
    assert results == [Delivered(head, NOW)] * THREADS


def test_one_of_many_who_tell_the_parent_marks_it_as_notified(shared: Home) -> None:
    put(shared.runs, a_head(status=Status.FAILED, parent="parent", notify_pending=True))
    done = the_only_done(at_once(lambda _: shared.runs.mark_notified(RUN)))
    assert shared.runs.get(RUN) == done.head


def test_one_of_many_cancels_ends_a_run(shared: Home) -> None:
    put(shared.runs, held())
    done = the_only_done(at_once(lambda n: shared.runs.cancel(RUN, NOW + n)))
    assert shared.runs.get(RUN) == done.head
    assert done.head.inbox_seq == 1


def test_a_park_never_misses_a_message(shared: Home) -> None:
    """Mail comes before the park, which is then refused, or after it, and then wakes the run."""
    put(shared.runs, held())
    park = replace(COMMIT, wake_at=UNTIL, ready_at=UNTIL, wants="paid", release=True)

    def park_or_deliver(number: int) -> Written | Delivered:
        if number == 0:
            return shared.runs.commit(replace(park, commit_seq=turn, inbox_seq=3 * turn))
        return shared.runs.deliver(RUN, f"{turn}-{number}", some_message(), NOW, None)

    for turn in range(TURNS):
        parked = at_once(park_or_deliver, 4)[0]
        head = shared.runs.get(RUN)
        assert head is not None
        assert (head.inbox_seq, head.pending) == (3 * turn + 3, 3 * turn + 3)
        if isinstance(parked, Refused):  # the number goes on by one a turn, either way
            shared.runs.commit(replace(COMMIT, commit_seq=turn))
        else:
            assert (head.ready_at, head.wake_at) == (0, NOW)
            shared.runs.claim(RUN, TOKEN, NOW, UNTIL)


def test_a_cancel_and_a_commit_come_one_after_the_other(shared: Home) -> None:
    def commit_or_cancel(number: int) -> Written:
        run_id = f"run-{turn}"
        if number == 0:
            return shared.runs.commit(replace(COMMIT, run_id=run_id))
        return shared.runs.cancel(run_id, NOW)

    for turn in range(TURNS):
        put(shared.runs, held(run_id=f"run-{turn}"))
        committed, cancelled = at_once(commit_or_cancel, 2)
        assert isinstance(cancelled, Done)
        assert cancelled.head.commit_seq == int(isinstance(committed, Done))
        assert shared.runs.get(f"run-{turn}") == cancelled.head


def test_versions_published_at_once_have_no_gap(shared: Home) -> None:
    def publish(number: int) -> list[int]:
        document = str(number).encode()
        return [
            shared.versions.publish("shop", "order", document, True, NOW).version for _ in range(10)
        ]

    published = at_once(publish, 8)
    assert sorted(number for numbers in published for number in numbers) == list(range(1, 81))
    for thread, numbers in enumerate(published):
        for number in numbers:
            version = shared.versions.get("shop", "order", number)
            assert version is not None
            assert version.document == str(thread).encode()


def test_every_message_is_received_by_one_of_many(shared: Home) -> None:
    shared.queues.create("shop", "orders", 30_000, 3)

    def fill(number: int) -> list[int | str]:
        return [shared.queues.send("shop", "orders", b"%d" % number, NOW) for _ in range(5)]

    def drain(_: int) -> list[int | str]:
        taken: list[int | str] = []
        while messages := shared.queues.receive("shop", "orders", 2, NOW):
            for message in messages:
                assert shared.queues.delete_message("shop", "orders", message.receipt)
                taken.append(message.id)
        return taken

    sent = at_once(fill, 8)
    received = at_once(drain, 8)
    counted = Counter(number for numbers in received for number in numbers)
    assert counted == Counter(number for numbers in sent for number in numbers)
    assert set(counted.values()) == {1}
