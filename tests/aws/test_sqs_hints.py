"""Hints on SQS: their form, their delays, and what becomes of one that cannot be sent."""

import logging
from dataclasses import replace

import pytest

from stepwell_engine.adapters.process.counters import Counters
from stepwell_engine.adapters.sqs.hints import SqsBatches, SqsDispatcher, SqsRedeliveries
from stepwell_engine.core.values.subject import about_run
from stepwell_engine.limits import MAX_HINT_DELAY
from stepwell_engine.ports import Dispatcher
from stepwell_engine.settings.aws import AwsSettings
from tests.aws.installation import HINTS, clients, waiting
from tests.service.world import ManualClock

REFUSED = "delay must be 0 to 900000 ms, not "


class Sender:
    """Both ways of sending hints."""

    def __init__(self, settings: AwsSettings) -> None:
        self.counters = Counters()
        urls = settings.hints_queue_url, settings.alone_queue_url
        self.single = SqsDispatcher(clients(), *urls, self.counters)
        self.batches = SqsBatches(clients(), settings.hints_queue_url, self.counters)
        self.redeliveries = SqsRedeliveries(clients(), *urls, self.counters)


@pytest.fixture
def sender(settings: AwsSettings) -> Sender:
    return Sender(settings)


def delays(clock: ManualClock) -> list[float]:
    return [max(0, one.delayed_until - clock.now()) for one in waiting(HINTS)]


def test_a_hint_names_its_run_and_stands_in_its_projects_group(sender: Sender) -> None:
    sender.single.hint(about_run("run-1", "shop"))
    sender.batches.hint(about_run("run-1", "shop"))
    sender.batches.flush()
    first, second = waiting(HINTS)
    assert first.body == second.body == '{"r":"run-1","p":"shop"}'
    assert first.group_id == second.group_id == "shop"
    assert sender.counters.take() == {"HintsSent": 2}


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [(0, 0), (1, 1), (999, 1), (1_000, 1), (1_001, 2), (MAX_HINT_DELAY, 900)],
)
def test_a_delay_is_rounded_up_to_seconds(
    sender: Sender, clock: ManualClock, delay: int, seconds: int
) -> None:
    sender.single.hint(about_run("run-1", "shop"), delay)
    sender.batches.hint(about_run("run-1", "shop"), delay)
    sender.batches.flush()
    assert delays(clock) == [seconds * 1_000] * 2


@pytest.mark.parametrize("delay", [-1, MAX_HINT_DELAY + 1])
def test_a_delay_past_the_limits_is_refused(sender: Sender, delay: int) -> None:
    dispatchers: list[Dispatcher] = [sender.single, sender.batches]
    for dispatcher in dispatchers:
        with pytest.raises(ValueError, match=f"{REFUSED}{delay}"):
            dispatcher.hint(about_run("run-1", "shop"), delay)
    sender.batches.flush()
    assert waiting(HINTS) == []


def test_ten_hints_are_one_request_and_the_rest_needs_a_flush(sender: Sender) -> None:
    for number in range(25):
        sender.batches.hint(about_run(f"run-{number}", "shop"))
    assert len(waiting(HINTS)) == 20
    sender.batches.flush()
    sender.batches.flush()
    assert [one.body for one in waiting(HINTS)] == [
        f'{{"r":"run-{number}","p":"shop"}}' for number in range(25)
    ]
    assert sender.counters.take() == {"HintsSent": 25}


def test_hints_that_cannot_be_sent_are_logged_counted_and_dropped(
    settings: AwsSettings, caplog: pytest.LogCaptureFixture
) -> None:
    gone = Sender(replace(settings, hints_queue_url=settings.hints_queue_url + "-gone"))
    with caplog.at_level(logging.WARNING):
        gone.single.hint(about_run("run-1", "shop"))
        for number in range(11):
            gone.batches.hint(about_run(f"run-{number}", "shop"))
        gone.batches.flush()
    assert gone.counters.take() == {"HintsLost": 12}
    first, second, third = [record.getMessage() for record in caplog.records]
    assert first.startswith("run run-1: a hint was not sent: ")
    assert second.startswith("10 of 10 hints were not sent: ")
    assert third.startswith("1 of 1 hints were not sent: ")


def test_the_part_of_a_batch_that_sqs_refuses_is_counted(
    sender: Sender, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = clients().get("sqs", attempts=3)
    failed = [{"Id": "1", "Code": "InternalError", "Message": "try again", "SenderFault": False}]
    monkeypatch.setattr(client, "send_message_batch", lambda **_: {"Failed": failed})
    for number in range(3):
        sender.batches.hint(about_run(f"run-{number}", "shop"))
    sender.batches.flush()
    assert sender.counters.take() == {"HintsLost": 1, "HintsSent": 2}
    assert "1 of 3 hints were not sent: try again" in caplog.text


@pytest.mark.parametrize(
    ("receives", "seconds"), [(1, 5), (2, 10), (3, 20), (6, 160), (7, 300), (1_000, 300)]
)
def test_a_message_that_failed_is_delivered_again_in_seconds(
    sender: Sender, settings: AwsSettings, clock: ManualClock, receives: int, seconds: int
) -> None:
    sender.single.hint(about_run("run-1", "shop"))
    sqs = clients().get("sqs", attempts=1)
    (message,) = sqs.receive_message(QueueUrl=settings.hints_queue_url)["Messages"]
    sender.redeliveries.again(message["ReceiptHandle"], receives)
    (hidden,) = waiting(HINTS)
    assert hidden.visible_at - clock.now() == seconds * 1000
    assert sender.counters.take() == {"HintsSent": 1}


def test_a_message_that_sqs_keeps_hidden_is_logged_and_counted(
    sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        sender.redeliveries.again("no receipt", 1)
    assert "a message that failed comes late: " in caplog.text
    assert sender.counters.take() == {"HintsHidden": 1}
