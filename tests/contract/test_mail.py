"""Delivering mail: what wakes a run, what is refused, how much a mailbox holds."""

from dataclasses import replace

import pytest

from stepwell_engine.core.run import Blob, Mail, Status
from stepwell_engine.limits import MAX_PENDING_SIGNALS
from stepwell_engine.ports import Done, Refused, Runs
from tests.contract.heads import (
    COMMIT,
    ENDED_STATUSES,
    LIVE_STATUSES,
    NOW,
    RUN,
    a_head,
    check_done,
    check_refused,
    held,
    mailbox,
    put,
    some_mail,
)


@pytest.mark.parametrize("status", LIVE_STATUSES)
def test_mail_wakes_a_live_run(runs: Runs, status: Status) -> None:
    far = NOW + 1_000_000
    head = put(runs, a_head(status=status, ready_at=far, wake_at=far, commit=3))
    written = runs.deliver(RUN, "m1", some_mail(), NOW, None)
    after = replace(head, ready_at=0, wake_at=NOW, revision=1, mail={"m1": some_mail()})
    check_done(runs, written, after)


def test_mail_leaves_a_lease_in_force(runs: Runs) -> None:
    head = put(runs, held())
    written = runs.deliver(RUN, "m1", some_mail(), NOW, None)
    after = replace(head, ready_at=0, wake_at=NOW, revision=1, mail={"m1": some_mail()})
    check_done(runs, written, after)


def test_mail_joins_what_is_there(runs: Runs) -> None:
    put(runs, a_head(mail=mailbox([1])))
    written = runs.deliver(RUN, "2", some_mail("other"), NOW, None)
    assert isinstance(written, Done)
    assert written.head.mail == {"1": some_mail(), "2": some_mail("other")}


@pytest.mark.parametrize("status", ENDED_STATUSES)
def test_an_ended_run_refuses_mail(runs: Runs, status: Status) -> None:
    put(runs, a_head(status=status))
    check_refused(runs, lambda: runs.deliver(RUN, "m1", some_mail(), NOW, None))


def test_a_run_that_does_not_exist_refuses_mail(runs: Runs) -> None:
    assert runs.deliver(RUN, "m1", some_mail(), NOW, Blob("m1", b"x")) == Refused(None)


def test_a_repeated_delivery_is_refused_and_wakes_nothing(runs: Runs) -> None:
    put(runs, a_head(ready_at=NOW + 5, mail=mailbox([1]), revision=1))
    check_refused(runs, lambda: runs.deliver(RUN, "1", some_mail("other"), NOW + 1, None))


def test_the_same_id_is_another_mail_for_another_run(runs: Runs) -> None:
    put(runs, a_head(mail=mailbox([1])))
    put(runs, a_head("other"))
    assert isinstance(runs.deliver("other", "1", some_mail(), NOW, None), Done)


@pytest.mark.parametrize("mail_id", ["a.b", "#x", "$", "a b", "ä", "'"])
def test_a_mail_id_is_any_text(runs: Runs, mail_id: str) -> None:
    put(runs, held())
    written = runs.deliver(RUN, mail_id, some_mail(), NOW, None)
    assert isinstance(written, Done)
    assert written.head.mail == {mail_id: some_mail()}
    consumed = runs.commit(replace(COMMIT, consumed=(mail_id,)))
    assert isinstance(consumed, Done)
    assert consumed.head.mail == {}


def test_a_full_mailbox_refuses_and_takes_again_once_one_is_consumed(runs: Runs) -> None:
    put(runs, held(mail=mailbox(range(MAX_PENDING_SIGNALS - 1))))
    last = runs.deliver(RUN, "last", some_mail(), NOW, None)
    assert isinstance(last, Done)
    assert len(last.head.mail) == MAX_PENDING_SIGNALS == 1_000
    check_refused(runs, lambda: runs.deliver(RUN, "more", some_mail(), NOW, None))
    check_refused(runs, lambda: runs.deliver(RUN, "last", some_mail(), NOW, None))
    runs.commit(replace(COMMIT, consumed=("0",)))
    more = runs.deliver(RUN, "more", some_mail(), NOW, None)
    assert isinstance(more, Done)
    assert len(more.head.mail) == MAX_PENDING_SIGNALS
    check_refused(runs, lambda: runs.deliver(RUN, "0", some_mail(), NOW, None))


def test_mail_may_have_its_body_in_a_blob(runs: Runs) -> None:
    put(runs, a_head())
    mail = Mail("signal", "paid", NOW, None, "mail/m1")
    written = runs.deliver(RUN, "m1", mail, NOW, Blob("mail/m1", b"body"))
    assert isinstance(written, Done)
    assert written.head.mail == {"m1": mail}
    assert runs.blob(RUN, "mail/m1") == b"body"


def test_an_empty_body_is_not_a_missing_one(runs: Runs) -> None:
    put(runs, a_head())
    runs.deliver(RUN, "m1", Mail("signal", "", 0, b""), NOW, None)
    head = runs.get(RUN)
    assert head is not None
    assert head.mail["m1"].body == b""


def test_a_woken_run_can_be_claimed_by_a_clock_that_is_behind(runs: Runs) -> None:
    put(runs, a_head(ready_at=NOW + 1_000_000))
    runs.deliver(RUN, "m1", some_mail(), NOW, None)
    assert isinstance(runs.claim(RUN, "t", NOW - 1_500, NOW), Done)
