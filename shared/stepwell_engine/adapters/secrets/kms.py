"""Secrets sealed by KMS, each bound to its project by the encryption context."""

import base64
import binascii
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from stepwell_engine.adapters.aws_clients import ERRORS, Clients, bounded, code_of, message_of
from stepwell_engine.core.values.units import EpochMs, Ms, ProjectRef
from stepwell_engine.errors import StoreError, TooLong, Unavailable
from stepwell_engine.limits import KIB, MINUTE, SECOND
from stepwell_engine.ports import Clock

T = TypeVar("T")

MAX_PLAIN: Final = 4 * KIB  # bytes that one call of KMS seals
KEPT: Final = 5 * MINUTE  # that an opened secret is used again without asking KMS
MOST_KEPT: Final = 256
REFUSED_FIRST: Final = 5 * SECOND  # that KMS is not asked again once it refuses, doubling
REFUSED_LONGEST: Final = 60 * SECOND

_VERSION: Final = "k1"
_ATTEMPTS: Final = 3
# Sealed for another project, with another key, or damaged.
_CANNOT_OPEN: Final = frozenset(
    {"InvalidCiphertextException", "IncorrectKeyException", "NotFoundException"}
)
_REFUSED: Final = frozenset(
    {"AccessDeniedException", "DisabledException", "KMSInvalidStateException"}
)
_REFUSAL: Final = "KMS refuses the key"


@dataclass(frozen=True, slots=True)
class _Refusal:
    """What KMS said: the answer to all who ask before `until`, `pause` after KMS said it."""

    text: str
    until: EpochMs
    pause: Ms


class KmsSecrets:
    """The Secrets port. Sealed text is `k1.` and the URL-safe base64 of KMS's ciphertext.

    What was opened is kept in memory for KEPT, so that a signed webhook is not a call of KMS each
    time; a key that is disabled or deleted still opens what is kept. That KMS refuses to open a
    secret is kept too, so that a thousand steps that need it do not ask a thousand times.
    """

    def __init__(self, clients: Clients, key_id: str, clock: Clock) -> None:
        self._clients = clients
        self._key_id = key_id
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[int, str]] = OrderedDict()
        self._refusals: OrderedDict[tuple[str, str], _Refusal] = OrderedDict()

    def seal(self, plain: str, project: ProjectRef) -> str:
        """Sealed text; another one every time. TooLong above MAX_PLAIN."""
        data = plain.encode()
        if len(data) > MAX_PLAIN:
            raise TooLong(f"a secret has {len(data):,} bytes, at most {MAX_PLAIN:,} can be kept")
        answer = self._call("encrypt", project, None, KeyId=self._key_id, Plaintext=data)
        return f"{_VERSION}.{base64.urlsafe_b64encode(answer['CiphertextBlob']).decode()}"

    def open(self, sealed: str, project: ProjectRef, within: Ms | None = None) -> str:
        """ValueError if it was sealed for another project, with another key, or is damaged.

        Unavailable if KMS does not answer, StoreError if it refuses to, or did so just now. Bounded
        by `within`, KMS is asked once: several tries would each take that time.
        """
        now = self._clock.now()
        key = (project, sealed)
        with self._lock:
            until, plain = self._kept.get(key, (0, ""))
            if now < until:
                return plain
            refusal = self._refusals.get(key)
            if refusal is not None:
                if now < refusal.until:
                    raise StoreError(refusal.text, _REFUSAL)
                # Who asks again does so for all: the others hear the same meanwhile.
                self._refusals[key] = replace(refusal, until=now + refusal.pause)
        try:
            plain = self._open(sealed, project, within)
        except Unavailable:  # a StoreError too, but KMS has not refused
            raise
        except StoreError as error:
            pause = REFUSED_FIRST if refusal is None else min(2 * refusal.pause, REFUSED_LONGEST)
            with self._lock:
                _keep(self._refusals, key, _Refusal(str(error), now + pause, pause))
            raise
        with self._lock:
            self._refusals.pop(key, None)
            _keep(self._kept, key, (now + KEPT, plain))
        return plain

    def _open(self, sealed: str, project: ProjectRef, within: Ms | None) -> str:
        version, _, text = sealed.partition(".")
        if version != _VERSION:
            raise ValueError("this is no sealed secret of a version known here")
        try:
            data = base64.b64decode(text, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError("the sealed secret is damaged") from error
        answer = self._call("decrypt", project, within, KeyId=self._key_id, CiphertextBlob=data)
        plain: bytes = answer["Plaintext"]
        return plain.decode()

    def _call(
        self, operation: str, project: ProjectRef, within: Ms | None, **arguments: Any
    ) -> Any:
        client = self._clients.get("kms", attempts=_ATTEMPTS if within is None else 1)
        try:
            return getattr(client, operation)(
                EncryptionContext={"project": project}, **arguments, **bounded(within)
            )
        except ERRORS as error:
            code = code_of(error)
            if operation == "decrypt" and code in _CANNOT_OPEN:
                raise ValueError(
                    "the secret cannot be opened: it is damaged, or was sealed for another project "
                    "or with another key"
                ) from error
            text = f"KMS did not {operation}: {message_of(error)}"
            if code in _REFUSED:
                raise StoreError(text, _REFUSAL) from error
            raise Unavailable(text, "KMS does not answer") from error


def _keep(kept: OrderedDict[tuple[str, str], T], key: tuple[str, str], value: T) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > MOST_KEPT:
        kept.popitem(last=False)
