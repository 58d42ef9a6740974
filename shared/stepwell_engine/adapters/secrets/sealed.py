"""Secrets sealed with a key that lies in the data folder."""

import base64
import binascii
import os
import secrets
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from stepwell_engine.core.values.units import Ms, ProjectRef
from stepwell_engine.errors import StoreError

_VERSION: Final = "s1"
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16


class SealedSecrets:
    """The Secrets port: AES-256-GCM, with the project's ref as associated data.

    Sealed text is `s1.` and the URL-safe base64 of nonce and ciphertext.
    """

    def __init__(self, key: bytes) -> None:
        """`key`: 32 bytes."""
        self._cipher = AESGCM(key)

    def seal(self, plain: str, project: ProjectRef) -> str:
        """Sealed text; another one every time."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        data = nonce + self._cipher.encrypt(nonce, plain.encode(), _bound_to(project))
        return f"{_VERSION}.{base64.urlsafe_b64encode(data).decode()}"

    def open(
        self,
        sealed: str,
        project: ProjectRef,
        within: Ms | None = None,  # noqa: ARG002
    ) -> str:
        """ValueError if it was sealed for another project, with another key, or is damaged."""
        version, _, text = sealed.partition(".")
        if version != _VERSION:
            raise ValueError("this is no sealed secret of a version known here")
        try:
            data = base64.b64decode(text, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError("the sealed secret is damaged") from error
        if len(data) < _NONCE_BYTES + _TAG_BYTES:
            raise ValueError("the sealed secret is damaged: it is too short")
        nonce, ciphertext = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
        try:
            return self._cipher.decrypt(nonce, ciphertext, _bound_to(project)).decode()
        except InvalidTag as error:
            raise ValueError(
                "the secret cannot be opened: it is damaged, or was sealed for another project "
                "or with another key"
            ) from error


def create_key(path: Path) -> None:
    """Write a new key, readable by its owner only; a key that is there already stays.

    The file appears whole or not at all. OSError if it cannot be written.
    """
    if path.exists():
        return
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_hex(_KEY_BYTES).encode())
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(draft)  # unlike a rename this never replaces a key
        except FileExistsError:
            return
    finally:
        draft.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_key(path: Path) -> bytes:
    """The key. StoreError if the file is missing or holds no key; OSError if unreadable."""
    try:
        text = path.read_bytes()
    except FileNotFoundError as error:
        raise StoreError(
            f"{path} is missing: without it the stored secrets cannot be opened; "
            "put it back from a copy"
        ) from error
    try:
        key = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise StoreError(f"{path} holds no key: {2 * _KEY_BYTES} hexadecimal digits are expected")
    return key


def _bound_to(project: ProjectRef) -> bytes:
    return f"stepwell:{project}".encode()
