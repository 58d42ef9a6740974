"""The embedded host: HTTP, executor threads and the tick over one data folder."""

import logging
import os
import queue
import signal
import socket
import stat
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from local import credentials, descriptors
from local.credentials import Credentials
from local.listening import PortBusy, address_of, listen, url_of
from local.lock import FolderInUse, locked
from local.workers import Workers
from stepwell_engine.errors import Problem, StoreError
from stepwell_engine.service.projects.identity import Identity, Permission, Role
from stepwell_engine.service.projects.resources import DATABASE, ResourceRegistry
from stepwell_engine.settings.embedded import Settings
from stepwell_engine.wiring.embedded import CREDENTIALS, Home, embedded

if TYPE_CHECKING:
    from local.server import Server

ORGANIZATION: Final = "local"
PROJECT: Final = "demo"

log = logging.getLogger(__name__)


class CannotStart(Exception):
    """The host cannot start; the message is one sentence for its user."""


class Signals:
    """SIGTERM, SIGINT, SIGHUP: the first asks for a clean stop, a second for one at once.

    SIGHUP, the end of its terminal, is ignored if it was from the start (nohup).

    A handler runs in the main thread in the midst of whatever that does, so it may take no lock
    that the main thread could hold: a SimpleQueue's put is made for that, an Event's set is not.
    """

    def __init__(self) -> None:
        self._received: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._again = False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda number, _: self._received.put(number))

    def ignore(self) -> None:
        """Ignore what comes from now on. Python ends with the defaults, which would kill it."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    def wait(self) -> None:
        """Wait for the first."""
        self._received.get()

    def again(self, seconds: float) -> bool:
        """Whether a second one came, within `seconds` from now."""
        if not self._again:
            try:
                self._received.get(timeout=seconds)
                self._again = True
            except queue.Empty:
                return False
        return True


def up(settings: Settings, signals: Signals, ready: Callable[[Credentials], None]) -> None:
    """Run the host until a signal stops it. `ready` is called once the API answers.

    CannotStart if the folder or the port cannot be used; what was there stays as it was.
    """
    files = descriptors.allow_many()
    with ExitStack() as opened:
        home, sock, found = _open(settings, opened)
        descriptors.keep_from_children(settings.data, address_of(sock))
        workers = Workers(home, settings.workers)
        workers.start()
        server = _serve(home, sock, settings, files)
        ready(found)
        signals.wait()
        log.info("stopping")
        workers.halt()
        home.stop_long_polls()
        server.stop(signals.again)
        left = workers.wait(settings.stop_seconds, signals.again)
        if left:
            log.warning(
                "runs with a step in flight, which starts anew with the next host: %d", left
            )
            workers.abandon()


def _serve(home: Home, sock: socket.socket, settings: Settings, files: int) -> "Server":
    """Answer requests. Loading all that takes a while: the runs go on before."""
    from local.server import Server  # noqa: PLC0415

    server = Server(home, sock, settings.request_threads, files)
    server.start()
    return server


def _open(settings: Settings, opened: ExitStack) -> tuple[Home, socket.socket, Credentials]:
    """Everything that may stand in the way of a start, in the order that harms nothing."""
    folder = settings.data
    try:
        sock = opened.enter_context(_listen(settings))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        opened.enter_context(locked(folder))
        home = embedded(settings)
        opened.callback(home.close)
        recovered = home.recover()
        if recovered:
            log.info("runs that go on: %d", recovered)
        _close_to_others(folder)
        services = home.engine.services
        found = _sign_in(services.identity, folder / CREDENTIALS, url_of(sock))
        _furnish(services.resources)
        return home, sock, found
    except FileExistsError as error:
        raise CannotStart(f"the data folder {folder} is a file: name a folder") from error
    except OSError as error:
        reason = error.strerror or error
        raise CannotStart(f"the data folder {folder} cannot be used: {reason}") from error
    except (FolderInUse, PortBusy, StoreError) as error:
        raise CannotStart(str(error)) from error


def _listen(settings: Settings) -> socket.socket:
    """Listen, before the folder is made. A second host on one folder is refused for the folder."""
    try:
        return listen(settings.port)
    except PortBusy:
        if (settings.data / "lock").exists():
            with locked(settings.data):
                pass
        raise


def _close_to_others(folder: Path) -> None:
    """Files that others may read or write are taken from them; a folder is its user's affair."""
    if folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        log.warning("others may change what lies in %s: chmod 700 it", folder)
    for file in sorted(folder.iterdir()):
        mode = stat.S_IMODE(file.stat().st_mode)
        if not file.is_file() or not mode & (stat.S_IRWXG | stat.S_IRWXO):
            continue
        if file.stat().st_uid == os.geteuid():
            file.chmod(0o600)
            log.warning("others could read or write %s (%03o): now they cannot", file, mode)
        else:
            log.warning("others may read or write %s (%03o), which is not ours", file, mode)


def _sign_in(identity: Identity, path: Path, url: str) -> Credentials:
    """The demo project and a token of its owner, the one in the file as long as it works."""
    identity.create_project(ORGANIZATION, PROJECT)
    kept = credentials.load(path)
    token = kept.token if kept is not None and _works(identity, kept.token) else None
    if token is None:
        token = identity.mint_session(ORGANIZATION, Role.OWNER)
    found = Credentials(url, PROJECT, token)
    credentials.save(path, found)
    return found


def _furnish(resources: ResourceRegistry) -> None:
    """A project without a database has the embedded one, which starts with its first sql step."""
    try:
        resources.get(PROJECT, DATABASE, DATABASE)
    except Problem:
        resources.put_database(PROJECT)


def _works(identity: Identity, token: str) -> bool:
    try:
        actor = identity.identify(token)
        identity.authorize(actor, Permission.ADMINISTER, PROJECT)
    except Problem:
        return False
    return True
