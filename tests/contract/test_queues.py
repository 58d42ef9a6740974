"""A project's queues: order, visibility, receipts, the archive."""

from collections.abc import Callable, Sequence

import pytest

from stepwell_engine.errors import QueueNotFound
from stepwell_engine.ports import Message, Queues
from tests.contract.heads import NOW

VISIBILITY = 30_000
MAX_RECEIVES = 3

Call = Callable[[Queues, str, str], object]
CALLS: dict[str, Call] = {
    "delete": lambda queues, project, name: queues.delete(project, name),
    "send": lambda queues, project, name: queues.send(project, name, b"x", NOW),
    "receive": lambda queues, project, name: queues.receive(project, name, 1, NOW),
    "delete a message": lambda queues, project, name: queues.delete_message(project, name, "1.1"),
    "delete nonsense": lambda queues, project, name: queues.delete_message(
        project, name, "nonsense"
    ),
    "peek": lambda queues, project, name: queues.peek(project, name, None, 1, False),
    "peek at the archive": lambda queues, project, name: queues.peek(project, name, None, 1, True),
}


@pytest.fixture
def queue(queues: Queues) -> Queues:
    """The queues, with an empty one called orders."""
    queues.create("shop", "orders", VISIBILITY, MAX_RECEIVES)
    return queues


def send(queue: Queues, *bodies: bytes, now: int = NOW) -> list[int | str]:
    return [queue.send("shop", "orders", body, now) for body in bodies]


def receive(queue: Queues, now: int = NOW, limit: int = 10) -> Sequence[Message]:
    return queue.receive("shop", "orders", limit, now)


def bodies(messages: Sequence[Message]) -> list[bytes]:
    return [message.body for message in messages]


def waiting(queue: Queues) -> list[bytes]:
    return bodies(queue.peek("shop", "orders", None, 100, False))


def archived(queue: Queues) -> list[bytes]:
    return bodies(queue.peek("shop", "orders", None, 100, True))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("missing", [("shop", "other"), ("bank", "orders")])
def test_a_queue_that_does_not_exist_is_a_key_error(
    queue: Queues, name: str, missing: tuple[str, str]
) -> None:
    with pytest.raises(QueueNotFound):
        CALLS[name](queue, *missing)


def test_an_empty_queue_gives_nothing(queue: Queues) -> None:
    assert list(receive(queue)) == []
    assert waiting(queue) == archived(queue) == []


def test_a_message_is_received_as_it_was_sent(queue: Queues) -> None:
    (number,) = send(queue, b"\x00\xff")
    (message,) = receive(queue, NOW + 5)
    assert message.id == number
    assert message.body == b"\x00\xff"
    assert message.sent_at == NOW
    assert message.receives == 1
    assert message.visible_at == NOW + 5 + VISIBILITY
    assert message.receipt


def test_messages_come_oldest_first_and_no_more_than_asked(queue: Queues) -> None:
    send(queue, b"a", b"b", b"c", b"d", b"e")
    assert bodies(receive(queue, limit=2)) == [b"a", b"b"]
    assert bodies(receive(queue, limit=2)) == [b"c", b"d"]
    assert bodies(receive(queue, limit=2)) == [b"e"]


def test_a_received_message_is_hidden_until_its_timeout_is_over(queue: Queues) -> None:
    send(queue, b"a")
    receive(queue)
    assert list(receive(queue, NOW + VISIBILITY - 1)) == []
    (again,) = receive(queue, NOW + VISIBILITY)
    assert (again.body, again.receives) == (b"a", 2)


def test_a_message_that_comes_back_keeps_its_place(queue: Queues) -> None:
    send(queue, b"a", b"b", b"c")
    receive(queue, limit=1)
    assert bodies(receive(queue, NOW + VISIBILITY)) == [b"a", b"b", b"c"]


def test_a_removed_message_does_not_come_back(queue: Queues) -> None:
    send(queue, b"a", b"b")
    first, _ = receive(queue)
    assert queue.delete_message("shop", "orders", first.receipt)
    assert waiting(queue) == [b"b"]
    assert not queue.delete_message("shop", "orders", first.receipt)


def test_a_receipt_removes_after_its_timeout_too_if_nobody_received_since(queue: Queues) -> None:
    send(queue, b"a")
    (message,) = receive(queue)
    assert queue.delete_message("shop", "orders", message.receipt)
    assert list(receive(queue, NOW + VISIBILITY)) == []


def test_a_late_receipt_does_not_remove(queue: Queues) -> None:
    send(queue, b"a")
    (first,) = receive(queue)
    (second,) = receive(queue, NOW + VISIBILITY)
    assert not queue.delete_message("shop", "orders", first.receipt)
    assert waiting(queue) == [b"a"]
    assert queue.delete_message("shop", "orders", second.receipt)


@pytest.mark.parametrize("receipt", ["", "1", "1.0", ".", "1.1.1", "x", "9" * 40 + ".1", "-1.1"])
def test_what_is_no_receipt_removes_nothing(queue: Queues, receipt: str) -> None:
    send(queue, b"a")
    receive(queue)
    assert not queue.delete_message("shop", "orders", receipt)
    assert waiting(queue) == [b"a"]


def test_a_message_that_was_not_received_has_no_receipt_to_guess(queue: Queues) -> None:
    send(queue, b"a")
    for receipt in ("", "1.0", "1.1"):
        assert not queue.delete_message("shop", "orders", receipt)
    assert waiting(queue) == [b"a"]


def test_a_message_received_too_often_moves_to_the_archive(queue: Queues) -> None:
    numbers = send(queue, b"a")
    for turn in range(MAX_RECEIVES):
        (message,) = receive(queue, NOW + turn * VISIBILITY)
        assert message.receives == turn + 1
        assert archived(queue) == []
    assert list(receive(queue, NOW + MAX_RECEIVES * VISIBILITY)) == []
    assert (waiting(queue), archived(queue)) == ([], [b"a"])
    (kept,) = queue.peek("shop", "orders", None, 10, True)
    assert (kept.id, kept.receives, kept.sent_at) == (numbers[0], MAX_RECEIVES, NOW)
    assert not queue.delete_message("shop", "orders", message.receipt)


def test_archived_messages_do_not_stand_in_the_way_of_others(queue: Queues) -> None:
    send(queue, b"a", b"b")
    for turn in range(MAX_RECEIVES):
        assert bodies(receive(queue, NOW + turn * VISIBILITY)) == [b"a", b"b"]
    send(queue, b"c")
    late = NOW + MAX_RECEIVES * VISIBILITY
    assert bodies(receive(queue, late, limit=1)) == [b"c"]
    assert archived(queue) == [b"a", b"b"]


def test_settings_can_be_changed_and_messages_stay(queue: Queues) -> None:
    send(queue, b"a")
    queue.create("shop", "orders", 1_000, 1)
    (message,) = receive(queue)
    assert message.visible_at == NOW + 1_000
    assert list(receive(queue, NOW + 1_000)) == []
    assert archived(queue) == [b"a"]


def test_a_raised_limit_counts_for_messages_that_are_there(queue: Queues) -> None:
    queue.create("shop", "orders", 0, 1)
    send(queue, b"a")
    receive(queue)
    queue.create("shop", "orders", 0, 2)
    assert bodies(receive(queue)) == [b"a"]


def test_one_receive_gives_a_message_once_even_without_a_timeout(queue: Queues) -> None:
    queue.create("shop", "orders", 0, 10)
    send(queue, b"a", b"b")
    assert bodies(receive(queue)) == [b"a", b"b"]
    assert bodies(receive(queue)) == [b"a", b"b"]


def test_ids_rise_and_are_never_used_again(queue: Queues) -> None:
    first, second = send(queue, b"a", b"b")
    for message in receive(queue):
        queue.delete_message("shop", "orders", message.receipt)
    (third,) = send(queue, b"c")
    queue.delete("shop", "orders")
    queue.create("shop", "orders", VISIBILITY, MAX_RECEIVES)
    (fourth,) = send(queue, b"d")
    assert len({first, second, third, fourth}) == 4


def test_a_dropped_queue_takes_everything_with_it(queue: Queues) -> None:
    queue.create("shop", "orders", 0, 1)
    send(queue, b"a", b"b")
    receive(queue, limit=1)
    receive(queue, limit=1)
    assert archived(queue) == [b"a"]
    queue.delete("shop", "orders")
    with pytest.raises(QueueNotFound):
        queue.delete("shop", "orders")
    queue.create("shop", "orders", VISIBILITY, MAX_RECEIVES)
    assert waiting(queue) == archived(queue) == []


def test_a_receipt_of_a_dropped_queue_does_not_remove(queue: Queues) -> None:
    send(queue, b"a")
    (old,) = receive(queue)
    queue.delete("shop", "orders")
    queue.create("shop", "orders", VISIBILITY, MAX_RECEIVES)
    send(queue, b"b")
    receive(queue)
    assert not queue.delete_message("shop", "orders", old.receipt)
    assert waiting(queue) == [b"b"]


def test_queues_do_not_mix(queue: Queues) -> None:
    queue.create("bank", "orders", VISIBILITY, MAX_RECEIVES)
    queue.create("shop", "emails", VISIBILITY, MAX_RECEIVES)
    send(queue, b"a")
    queue.send("bank", "orders", b"b", NOW)
    (mine,) = receive(queue)
    assert mine.body == b"a"
    assert list(queue.receive("shop", "emails", 10, NOW)) == []
    queue.delete("bank", "orders")
    assert waiting(queue) == [b"a"]


def test_peek_lists_in_order_page_by_page_and_receives_nothing(queue: Queues) -> None:
    numbers = send(queue, b"a", b"b", b"c")
    receive(queue, limit=1)
    first = queue.peek("shop", "orders", None, 2, False)
    rest = queue.peek("shop", "orders", first[-1].id, 2, False)
    listed = [*first, *rest]
    assert [message.id for message in listed] == numbers
    assert bodies(listed) == [b"a", b"b", b"c"]
    assert [message.receives for message in listed] == [1, 0, 0]
    assert [message.visible_at for message in listed] == [NOW + VISIBILITY, NOW, NOW]
    assert {message.receipt for message in listed} == {""}
    assert list(queue.peek("shop", "orders", numbers[-1], 2, False)) == []
    assert bodies(receive(queue)) == [b"b", b"c"]
