"""What the engine needs from the outside world, as protocols. Times in ms since the epoch.

Every method of a store may raise Unavailable: the call may then have happened, or may still
happen later. Every write is therefore conditional and safe to repeat.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Protocol

from stepwell_engine.core.outcome import Act, Outcome
from stepwell_engine.core.run import Blob, Head, Mail, Status


class Clock(Protocol):
    """The one clock."""

    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def sleep(self, ms: int) -> None:
        """Pause the calling thread."""
        ...


class Ids(Protocol):
    """The one source of randomness."""

    def run_id(self) -> str:
        """A UUIDv7: sorts by time of creation."""
        ...

    def token(self) -> str:
        """A short random text, unique per lease: 12 letters and digits."""
        ...


# --- runs -------------------------------------------------------------------------------------


class Keep(Enum):
    """Leave the stored value as it is."""

    KEEP = "keep"


KEEP = Keep.KEEP


@dataclass(frozen=True, slots=True)
class Commit:
    """One conditional write of a head by the holder of its lease.

    Conditions: the stored `token` and `commit` are these; the status is live (`expect` "live")
    or `cancelled`; and, if `revision` is given, nobody else wrote since (no new mail).
    Then: `commit` + 1, the fields below, the `consumed` mail removed, `lost` back to 0 if
    `progress`, `token` removed if `release`, `until` kept otherwise. `status`, `ready_at`,
    `wake_at`, `ended_at` left out stay as they are. `blobs` are written before the head.
    """

    run_id: str
    token: str
    commit: int
    journal: bytes
    expect: Literal["live", "cancelled"] = "live"
    revision: int | None = None
    status: Status | None = None
    ready_at: int | None = None
    wake_at: int | Keep | None = KEEP
    ended_at: int | None = None
    release: bool = False
    progress: bool = False
    consumed: tuple[str, ...] = ()
    blobs: tuple[Blob, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """The write happened; `head` is the document after it."""

    head: Head


@dataclass(frozen=True, slots=True)
class Refused:
    """A condition did not hold, nothing was written; `head` as it stands, None if there is none."""

    head: Head | None


Written = Done | Refused


class Runs(Protocol):
    """The runs: heads with their blobs and idempotency keys."""

    def create(self, head: Head, blobs: Sequence[Blob] = ()) -> Written:
        """Put a new run, and its idempotency key if it has one, at once or not at all.

        Refused with the run that holds (project, workflow, key), or that has this very id. A key
        whose run is gone is free again.
        """
        ...

    def get(self, run_id: str) -> Head | None:
        """The head, strongly consistent. NewerFormat if this version cannot read it."""
        ...

    def by_key(self, project: str, workflow: str, key: str) -> Head | None:
        """The run that an idempotency key stands for."""
        ...

    def claim(self, run_id: str, token: str, now: int, until: int) -> Written:
        """Take the lease: token and until are set; nothing else moves but `lost`.

        Conditions: live; a format this version reads; ready_at <= now; no token, or a lease that
        ended more than CLOCK_MARGIN before now (then `lost` + 1).
        A stored token equal to `token` is Done too: the claim had succeeded before.
        """
        ...

    def extend(self, run_id: str, token: str, until: int, wake_at: int) -> Written:
        """Move the end of a lease that is held, and wake_at.

        Conditions: this token, live, `until` no earlier than the stored one: a call that comes
        late must not shorten a lease in use.
        """
        ...

    def commit(self, commit: Commit) -> Written:
        """One step forward; see Commit."""
        ...

    def deliver(
        self, run_id: str, mail_id: str, mail: Mail, now: int, blob: Blob | None
    ) -> Written:
        """Put mail: ready_at = 0, wake_at = now, revision + 1.

        Conditions: live, the mailbox holds fewer than MAX_PENDING_SIGNALS, no mail of this id.
        """
        ...

    def cancel(self, run_id: str, now: int) -> Written:
        """status = cancelled, ended_at = now, revision + 1. Condition: live.

        The lease's token stays, so that the worker in flight can record its outcome, and wake_at
        with it; without a token wake_at is removed.
        """
        ...

    def close(self, run_id: str, token: str, commit: int, journal: bytes) -> Written:
        """Settle a cancelled run whose lease is over: journal replaced, token and wake_at gone.

        Conditions: cancelled, this token, this commit number; commit + 1.
        """
        ...

    def due(self, before: int, cursor: str | None, limit: int) -> tuple[list["Due"], str | None]:
        """A page of the heads with wake_at <= before, any status; NewerFormat ones left out.

        May be stale. The second value is the cursor of the next page.
        """
        ...

    def list(
        self, project: str, workflow: str, before: str | None, limit: int, status: Status | None
    ) -> list[Head]:
        """Heads of a workflow, newest first, with ids below `before`; `status` as stored."""
        ...

    def blob(self, run_id: str, name: str) -> bytes | None:
        """A blob's data."""
        ...


@dataclass(frozen=True, slots=True)
class Due:
    """A run at which the tick must look."""

    run_id: str
    project: str
    wake_at: int


class Dispatcher(Protocol):
    """Hints that a run may go on. They may be lost, doubled, late, reordered."""

    def hint(self, run_id: str, project: str, delay: int = 0) -> None:
        """Ask that somebody advances this run in `delay` ms (at most MAX_HINT_DELAY)."""
        ...


class Performer(Protocol):
    """Does the side effect of one kind of step."""

    def perform(self, act: Act) -> Outcome:
        """Try once, within act.timeout ms. Never raises for what the outside world did."""
        ...


# --- a project's queues -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """A received message. `receipt` deletes it; `receives` counts deliveries, this one included."""

    id: int | str
    body: bytes
    sent_at: int
    receives: int
    receipt: str
    visible_at: int


class Queues(Protocol):
    """Queues of the user's, with SQS's delivery rules: at least once, a visibility timeout.

    A message received more than `max_receives` times moves to the queue's archive.
    All raise KeyError for a queue that does not exist, but create.
    """

    def create(self, project: str, queue: str, visibility: int, max_receives: int) -> None:
        """Create a queue, or change its settings; messages stay."""
        ...

    def drop(self, project: str, queue: str) -> None:
        """Delete a queue with its messages and its archive."""
        ...

    def send(self, project: str, queue: str, body: bytes, now: int) -> int | str:
        """Append a message; its id."""
        ...

    def receive(self, project: str, queue: str, limit: int, now: int) -> Sequence[Message]:
        """Take up to `limit` visible messages, oldest first; hidden for the visibility timeout."""
        ...

    def remove(self, project: str, queue: str, receipt: str) -> bool:
        """Delete a received message; False if the receipt is no longer the newest."""
        ...

    def peek(
        self, project: str, queue: str, after: int | str | None, limit: int, archived: bool
    ) -> Sequence[Message]:
        """List messages in order without receiving them (receipt is empty).

        Problem `not_supported` where that cannot be done.
        """
        ...


# --- what a project consists of ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Project:
    """A project of an organization."""

    ref: str
    organization: str
    created_at: int


@dataclass(frozen=True, slots=True)
class Grant:
    """Who a bearer token is. `token_hash` is its SHA-256 in hex; the token itself is not kept.

    `kind`: `session` (a member's), `publishable` or `secret` (a project's keys).
    `role` (owner, admin, developer, viewer) for sessions, `project` for keys.
    """

    token_hash: str
    kind: Literal["session", "publishable", "secret"]
    organization: str
    role: str | None = None
    project: str | None = None
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """A stored version of a workflow. `document` is the body as published, its secrets sealed."""

    project: str
    workflow: str
    version: int
    enabled: bool
    created_at: int
    document: bytes
    format: int = 1


@dataclass(frozen=True, slots=True)
class Resource:
    """A named thing of the user's. `kind`: queue, function, database (named `database`).

    `config` is its JSON without secrets; `sealed` the secret part, sealed.
    """

    project: str
    kind: str
    name: str
    config: bytes
    sealed: str | None
    created_at: int


class Catalog(Protocol):
    """Projects, grants, workflow versions, resources: what changes seldom and is read often."""

    def put_project(self, project: Project) -> None: ...

    def project(self, ref: str) -> Project | None: ...

    def put_grant(self, grant: Grant) -> None: ...

    def grant(self, token_hash: str) -> Grant | None: ...

    def publish(
        self, project: str, workflow: str, document: bytes, enabled: bool, now: int
    ) -> Published:
        """Store version max + 1, at once or not at all, under any concurrency."""
        ...

    def version(self, project: str, workflow: str, version: int) -> Published | None: ...

    def newest(self, project: str, workflow: str) -> Published | None: ...

    def newest_enabled(self, project: str, workflow: str) -> Published | None: ...

    def workflows(self, project: str, after: str | None, limit: int) -> Sequence[Published]:
        """The newest version of each workflow, by name, with names above `after`."""
        ...

    def set_enabled(self, project: str, workflow: str, enabled: bool) -> bool:
        """Set the flag on every version, at once; False if there is none."""
        ...

    def put_resource(self, resource: Resource) -> None: ...

    def resource(self, project: str, kind: str, name: str) -> Resource | None: ...

    def resources(
        self, project: str, kind: str, after: str | None, limit: int
    ) -> Sequence[Resource]:
        """By name, with names above `after`."""
        ...

    def drop_resource(self, project: str, kind: str, name: str) -> bool:
        """False if there was none."""
        ...


class Secrets(Protocol):
    """Seals secrets; what is stored is sealed text only."""

    def seal(self, plain: str, project: str) -> str: ...

    def open(self, sealed: str, project: str) -> str:
        """ValueError if it was sealed for another project, with another key, or is damaged."""
        ...


def pages(store: Runs, before: int, size: int = 100) -> Iterable[Due]:
    """All due heads, page by page."""
    cursor: str | None = None
    while True:
        found, cursor = store.due(before, cursor, size)
        yield from found
        if cursor is None:
            return


JsonObject = dict[str, Any]
