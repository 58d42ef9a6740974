"""`credentials.json` in the data folder: where the host is, and how to sign in."""

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Credentials:
    """What a client needs to know."""

    url: str
    project: str
    token: str


def load(path: Path) -> Credentials | None:
    """What the file says; None if it is missing or damaged."""
    try:
        found = json.loads(path.read_bytes())
        fields = {name: found[name] for name in ("url", "project", "token")}
    except (FileNotFoundError, ValueError, TypeError, LookupError):
        return None
    if not all(isinstance(value, str) for value in fields.values()):
        return None
    return Credentials(**fields)


def save(path: Path, credentials: Credentials) -> None:
    """Write the file, readable by its owner only; a reader sees the old one or the new one."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(asdict(credentials), file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
