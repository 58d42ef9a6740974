"""Secrets are sealed for one project with one key, and the key file is the owner's alone."""

import base64
import stat
from pathlib import Path

import pytest

from stepwell_engine.adapters.secrets.sealed import SealedSecrets, create_key, read_key
from stepwell_engine.errors import StoreError

KEY = bytes(range(32))
PLAIN = "whsec_c2VjcmV0 – ü"


def test_what_was_sealed_can_be_opened() -> None:
    secrets = SealedSecrets(KEY)
    sealed = secrets.seal(PLAIN, "demo")
    assert sealed.startswith("s1.")
    assert PLAIN not in sealed
    assert SealedSecrets(KEY).open(sealed, "demo") == PLAIN


def test_an_empty_secret_can_be_sealed() -> None:
    secrets = SealedSecrets(KEY)
    assert secrets.open(secrets.seal("", "demo"), "demo") == ""


def test_the_same_secret_never_looks_the_same() -> None:
    secrets = SealedSecrets(KEY)
    assert len({secrets.seal(PLAIN, "demo") for _ in range(50)}) == 50


def test_old_sealed_text_keeps_opening() -> None:
    sealed = "s1.AAECAwQFBgcICQoLNGe1aaCRmjnKH4Hy38KXrC6ioO9jIg=="
    assert SealedSecrets(KEY).open(sealed, "demo") == "secret"


def test_another_projects_secret_is_refused() -> None:
    secrets = SealedSecrets(KEY)
    with pytest.raises(ValueError, match="another project"):
        secrets.open(secrets.seal(PLAIN, "demo"), "other")


def test_a_secret_sealed_with_another_key_is_refused() -> None:
    sealed = SealedSecrets(bytes(32)).seal(PLAIN, "demo")
    with pytest.raises(ValueError, match="another key"):
        SealedSecrets(KEY).open(sealed, "demo")


def test_a_flipped_bit_anywhere_is_refused() -> None:
    secrets = SealedSecrets(KEY)
    data = base64.urlsafe_b64decode(secrets.seal("x", "demo")[3:])
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1
        text = base64.urlsafe_b64encode(damaged).decode()
        with pytest.raises(ValueError, match="damaged"):
            secrets.open(f"s1.{text}", "demo")


@pytest.mark.parametrize("sealed", ["", "plain", "s2.AAAA", "s1.", "s1.AAAA", "s1.!!!!", "s1.ü"])
def test_what_is_no_sealed_text_is_refused(sealed: str) -> None:
    with pytest.raises(ValueError, match="sealed secret"):
        SealedSecrets(KEY).open(sealed, "demo")


def test_a_key_is_created_once_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    create_key(path)
    key = read_key(path)
    assert len(key) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    create_key(path)
    assert read_key(path) == key
    assert list(tmp_path.iterdir()) == [path]


def test_two_keys_differ(tmp_path: Path) -> None:
    for name in ("a", "b"):
        create_key(tmp_path / name)
    assert read_key(tmp_path / "a") != read_key(tmp_path / "b")


def test_a_missing_key_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"secret\.key is missing: .* put it back from a copy"):
        read_key(tmp_path / "secret.key")


@pytest.mark.parametrize("content", [b"", b"zz" * 32, b"00" * 31, b"00" * 33, b"\xff" * 64])
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "secret.key"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="holds no key: 64 hexadecimal digits"):
        read_key(path)
    assert path.read_bytes() == content
