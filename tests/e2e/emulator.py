"""MiniStack, an emulator of AWS, as a process of its own: TLS, IAM enforced, on loopback.

It runs in .venv-e2e, and so do the Lambda functions: it starts them on its own interpreter.
"""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import boto3  # type: ignore[import-untyped]
import requests

from tests.arch.sources import ROOT
from tests.e2e.certificate import write_certificate

PYTHON: Final = ROOT / ".venv-e2e" / "bin" / "python"
REGION: Final = "eu-west-1"
ACCOUNT: Final = "123456789012"
# Twelve digits are the root user of that account; functions get sessions of their roles.
ROOT_USER: Final = {"AWS_ACCESS_KEY_ID": ACCOUNT, "AWS_SECRET_ACCESS_KEY": "root"}
PATIENCE: Final = 30  # seconds that it may take to start, or to go on


@dataclass(frozen=True)
class Emulator:
    """Where it is; `certificate` is what its clients have to trust."""

    url: str
    certificate: Path
    log: Path

    def client(self, service: str) -> Any:
        """A client with the rights of the account's root user."""
        return boto3.client(
            service,
            region_name=REGION,
            endpoint_url=self.url,
            verify=str(self.certificate),
            aws_access_key_id=ROOT_USER["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=ROOT_USER["AWS_SECRET_ACCESS_KEY"],
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """What makes every client of the AWS SDK in a process the root user here."""
        return {
            **{name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ},
            **ROOT_USER,
            "AWS_CA_BUNDLE": str(self.certificate),
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.url,
        }


@contextmanager
def running(folder: Path, **environment: str) -> Iterator[Emulator]:
    """Run an emulator with all its files in an empty folder.

    `environment` is that of the functions too. Nothing of it is left afterwards.
    """
    assert PYTHON.exists(), "the emulator is not installed: `make e2e` does that"
    certificate, key = write_certificate(folder)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        emulator = Emulator(f"https://127.0.0.1:{port}", certificate, folder / "log")
        # Not by `-m ministack`: with TLS that takes port 443 as well.
        command = [str(PYTHON), "-m", "hypercorn", "ministack.app:app", "--keep-alive", "75"]
        command += ["--bind", f"fd://{listening.fileno()}"]
        command += ["--certfile", str(certificate), "--keyfile", str(key)]
        with emulator.log.open("wb") as log:
            process = subprocess.Popen(
                command,
                env={**_environment(folder, port, certificate, key), **environment},
                cwd=folder,
                pass_fds=(listening.fileno(),),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    try:
        _wait(emulator)
        yield emulator
    finally:
        # The process group: the emulator, and the functions that it runs.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _environment(folder: Path, port: int, certificate: Path, key: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "STATE_DIR": str(folder / "state"),
        "S3_DATA_DIR": str(folder / "s3"),
        "AUTH": "true",
        "GATEWAY_PORT": str(port),
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_REGION": REGION,
        "USE_SSL": "1",
        "MINISTACK_SSL_CERT": str(certificate),
        "MINISTACK_SSL_KEY": str(key),
    }


def _wait(emulator: Emulator) -> None:
    """Until it answers; the port listens already."""
    health = f"{emulator.url}/_ministack/health"
    try:
        answer = requests.get(health, verify=str(emulator.certificate), timeout=PATIENCE)
    except requests.RequestException as error:
        raise AssertionError(emulator.log.read_text("utf-8")) from error
    assert answer.status_code == 200, answer.text
