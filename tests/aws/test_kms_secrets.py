"""Secrets sealed by KMS: bound to their project, opened once, and clear about what went wrong."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from stepwell_engine.adapters.secrets.kms import (
    KEPT,
    MAX_PLAIN,
    MOST_KEPT,
    REFUSED_FIRST,
    REFUSED_LONGEST,
    KmsSecrets,
)
from stepwell_engine.errors import StoreError, TooLong, Unavailable
from stepwell_engine.settings.aws import AwsSettings
from tests.aws.installation import clients
from tests.service.world import ManualClock


@pytest.fixture
def secrets(settings: AwsSettings, clock: ManualClock) -> KmsSecrets:
    return KmsSecrets(clients(), settings.key_id, clock)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, settings: AwsSettings) -> list[bytes]:
    """What KMS was asked to open."""
    client = clients().get("kms", attempts=3)
    asked: list[bytes] = []
    decrypt: Callable[..., object] = client.decrypt

    def noted(**arguments: object) -> object:
        blob = arguments["CiphertextBlob"]
        assert isinstance(blob, bytes)
        asked.append(blob)
        return decrypt(**arguments)

    monkeypatch.setattr(client, "decrypt", noted)
    return asked


def test_a_secret_is_opened_as_it_was_and_not_stored_plain(secrets: KmsSecrets) -> None:
    sealed = secrets.seal("hünter2", "shop")
    assert sealed.startswith("k1.")
    assert "hünter2" not in sealed
    assert secrets.open(sealed, "shop") == "hünter2"


def test_the_longest_secret_is_taken_and_one_byte_more_refused(secrets: KmsSecrets) -> None:
    longest = "é" * (MAX_PLAIN // 2)
    assert secrets.open(secrets.seal(longest, "shop"), "shop") == longest
    with pytest.raises(TooLong, match=r"^a secret has 4,097 bytes, at most 4,096"):
        secrets.seal(longest + "a", "shop")


def test_a_secret_is_asked_for_once_in_five_minutes(
    secrets: KmsSecrets, clock: ManualClock, opened: list[bytes]
) -> None:
    sealed = secrets.seal("hunter2", "shop")
    for _ in range(3):
        assert secrets.open(sealed, "shop") == "hunter2"
    clock.sleep(KEPT - 1)
    secrets.open(sealed, "shop")
    assert len(opened) == 1
    clock.sleep(1)
    secrets.open(sealed, "shop")
    assert len(opened) == 2


def test_so_many_secrets_are_kept_and_the_oldest_goes_first(
    secrets: KmsSecrets, opened: list[bytes]
) -> None:
    sealed = [secrets.seal(str(number), "shop") for number in range(MOST_KEPT + 1)]
    for one in sealed:
        secrets.open(one, "shop")
    secrets.open(sealed[1], "shop")
    assert len(opened) == MOST_KEPT + 1
    secrets.open(sealed[0], "shop")
    assert len(opened) == MOST_KEPT + 2


def test_what_was_opened_for_one_project_is_not_for_another(secrets: KmsSecrets) -> None:
    sealed = secrets.seal("hunter2", "shop")
    secrets.open(sealed, "shop")
    with pytest.raises(ValueError, match="sealed for another project"):
        secrets.open(sealed, "bank")


@pytest.mark.parametrize(
    ("sealed", "message"),
    [
        ("s1.abc", "no sealed secret of a version known"),
        ("", "no sealed secret of a version known"),
        ("k1.a", "damaged"),
        ("k1.ä", "damaged"),
    ],
)
def test_what_is_no_sealed_secret_is_refused(
    secrets: KmsSecrets, sealed: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        secrets.open(sealed, "shop")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("InvalidCiphertextException", ValueError),
        ("IncorrectKeyException", ValueError),
        ("AccessDeniedException", StoreError),
        ("DisabledException", StoreError),
        ("ThrottlingException", Unavailable),
        ("KMSInternalException", Unavailable),
    ],
)
def test_what_kms_says_is_told_apart(
    secrets: KmsSecrets, monkeypatch: pytest.MonkeyPatch, code: str, expected: type[Exception]
) -> None:
    sealed = secrets.seal("hunter2", "shop")
    client = clients().get("kms", attempts=3)

    def refuse(**_: object) -> None:
        raise client.exceptions.ClientError({"Error": {"Code": code, "Message": "x"}}, "Decrypt")

    monkeypatch.setattr(client, "decrypt", refuse)
    with pytest.raises(expected) as caught:
        secrets.open(sealed, "shop")
    assert type(caught.value) is expected
    assert "hunter2" not in str(caught.value)


@dataclass
class Kms:
    """A KMS that answers as it is told to: with the code of an error, or as it would."""

    code: str | None = "AccessDeniedException"
    asked: list[bytes] = field(default_factory=list)


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch, settings: AwsSettings) -> Kms:
    found = Kms()
    client = clients().get("kms", attempts=3)
    decrypt: Callable[..., object] = client.decrypt

    def answer(**arguments: object) -> object:
        blob = arguments["CiphertextBlob"]
        assert isinstance(blob, bytes)
        found.asked.append(blob)
        if found.code is None:
            return decrypt(**arguments)
        error = {"Error": {"Code": found.code, "Message": f"no: {found.code}"}}
        raise client.exceptions.ClientError(error, "Decrypt")

    monkeypatch.setattr(client, "decrypt", answer)
    return found


def refused(secrets: KmsSecrets, sealed: str, project: str = "shop") -> str:
    with pytest.raises(StoreError) as caught:
        secrets.open(sealed, project)
    assert type(caught.value) is StoreError
    return str(caught.value)


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "DisabledException", "KMSInvalidStateException"]
)
def test_a_refusal_is_asked_for_again_after_a_pause_that_doubles(
    secrets: KmsSecrets, clock: ManualClock, kms: Kms, code: str
) -> None:
    kms.code = code
    sealed = secrets.seal("hunter2", "shop")
    text = f"KMS did not decrypt: no: {code}"
    pauses = [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]
    assert (pauses[0], pauses[-1]) == (REFUSED_FIRST, REFUSED_LONGEST)
    for number, pause in enumerate(pauses, 1):
        assert [refused(secrets, sealed) for _ in range(100)] == [text] * 100
        clock.sleep(pause - 1)
        assert refused(secrets, sealed) == text
        assert len(kms.asked) == number
        clock.sleep(1)


def test_a_success_clears_a_refusal(secrets: KmsSecrets, clock: ManualClock, kms: Kms) -> None:
    sealed = secrets.seal("hunter2", "shop")
    for pause in (REFUSED_FIRST, 2 * REFUSED_FIRST):
        refused(secrets, sealed)
        clock.sleep(pause)
    kms.code = None
    assert secrets.open(sealed, "shop") == "hunter2"
    clock.sleep(KEPT)
    kms.code = "DisabledException"
    refused(secrets, sealed)
    clock.sleep(REFUSED_FIRST)
    kms.code = None
    assert secrets.open(sealed, "shop") == "hunter2"


def test_a_refusal_is_that_of_one_secret(secrets: KmsSecrets, kms: Kms) -> None:
    """Another may be another key's, and a key's policy may tell projects apart."""
    sealed, other, bank = (
        secrets.seal("hunter2", "shop"),
        secrets.seal("hunter3", "shop"),
        secrets.seal("hunter4", "bank"),
    )
    refused(secrets, sealed)
    kms.code = None
    assert secrets.open(other, "shop") == "hunter3"
    assert secrets.open(bank, "bank") == "hunter4"
    refused(secrets, sealed)
    assert len(kms.asked) == 3


def test_a_kms_that_does_not_answer_is_asked_every_time(secrets: KmsSecrets, kms: Kms) -> None:
    kms.code = "KMSInternalException"
    sealed = secrets.seal("hunter2", "shop")
    for _ in range(3):
        with pytest.raises(Unavailable):
            secrets.open(sealed, "shop")
    kms.code = None
    assert secrets.open(sealed, "shop") == "hunter2"
    assert len(kms.asked) == 4


def test_while_one_asks_again_the_others_hear_what_was_said(
    secrets: KmsSecrets, clock: ManualClock, kms: Kms, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = secrets.seal("hunter2", "shop")
    text = refused(secrets, sealed)
    clock.sleep(REFUSED_FIRST)
    kms.code = None
    ask = secrets._open
    heard: list[str] = []

    def asking(sealed: str, project: str, within: int | None) -> str:
        heard.append(refused(secrets, sealed))
        return ask(sealed, project, within)

    monkeypatch.setattr(secrets, "_open", asking)
    assert secrets.open(sealed, "shop") == "hunter2"
    assert heard == [text]


def test_so_many_refusals_are_kept_and_the_oldest_goes_first(secrets: KmsSecrets, kms: Kms) -> None:
    sealed = [secrets.seal(str(number), "shop") for number in range(MOST_KEPT + 1)]
    for one in sealed:
        refused(secrets, one)
    refused(secrets, sealed[1])
    assert len(kms.asked) == MOST_KEPT + 1
    refused(secrets, sealed[0])
    assert len(kms.asked) == MOST_KEPT + 2
