"""What a project's steps use, registered by name: queues, functions, the database."""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from stepwell_engine import limits
from stepwell_engine.core.declared.fields import FUNCTION_NAME, QUEUE_NAME, URL, Name
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.core.values.units import ProjectRef, Seconds
from stepwell_engine.errors import Problem, QueueNotFound
from stepwell_engine.ports import Clock, Queues, Resource, Resources, Secrets
from stepwell_engine.service.paging import listing, page, text_position
from stepwell_engine.service.projects.refusals import as_problems

QUEUE: Final = "queue"
FUNCTION: Final = "function"
DATABASE: Final = "database"
FUNCTION_KINDS: Final = ("url", "lambda", "command", "python")
DATABASE_KINDS: Final = ("embedded", "dsn", "cluster")

_RESERVED_QUEUES: Final = "stepwell_"
_PYTHON: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.A)
_DSN_SCHEMES: Final = ("postgresql", "postgres")
_ACCOUNT: Final = "arn:aws[a-z-]*:{}:[a-z0-9-]+:[0-9]{{12}}"
_LAMBDA: Final = re.compile(
    _ACCOUNT.format("lambda") + r":function:[A-Za-z0-9_-]{1,64}(:[A-Za-z0-9_$-]{1,128})?"
)
_CLUSTER: Final = re.compile(_ACCOUNT.format("rds") + r":cluster:[A-Za-z0-9-]{1,63}")
_SECRET: Final = re.compile(
    _ACCOUNT.format("secretsmanager") + r":secret:[A-Za-z0-9/_+=.@-]{1,512}"
)
_DATABASE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$-]{0,62}")
_NAMES: Final[Mapping[str, Name]] = {QUEUE: QUEUE_NAME, FUNCTION: FUNCTION_NAME}


class ResourceRegistry:
    """The resources of all projects."""

    def __init__(
        self,
        resources: Resources,
        queues: Queues,
        secrets: Secrets,
        clock: Clock,
        function_kinds: AbstractSet[str],
        database_kinds: AbstractSet[str],
    ) -> None:
        """Those of FUNCTION_KINDS that this installation can call, and those of DATABASE_KINDS
        that it can reach.
        """
        self._resources = resources
        self._queues = queues
        self._secrets = secrets
        self._clock = clock
        self._function_kinds = function_kinds
        self._database_kinds = database_kinds

    def put_queue(
        self,
        project: ProjectRef,
        name: str,
        visibility_timeout: Seconds = limits.DEFAULT_VISIBILITY,
        max_receives: int = limits.DEFAULT_RECEIVES,
    ) -> Resource:
        """Create a queue, or change its settings; its messages stay. Seconds.

        Problem: invalid_request, unavailable.
        """
        _check_name(QUEUE, name)
        if name.startswith(_RESERVED_QUEUES):
            raise Problem(
                "invalid_request",
                f"names of queues that begin with {_RESERVED_QUEUES} are reserved",
            )
        _check_range("visibility_timeout", visibility_timeout, limits.MAX_VISIBILITY)
        _check_range("max_receives", max_receives, limits.MAX_RECEIVES)
        with as_problems():
            self._queues.create(project, name, visibility_timeout * limits.SECOND, max_receives)
        config = {"visibility_timeout": visibility_timeout, "max_receives": max_receives}
        return self._put(project, QUEUE, name, config)

    def put_function(self, project: ProjectRef, name: str, target: Mapping[str, Any]) -> Resource:
        """Register a function. `target` is exactly one of `{"url": "https://…"}`,
        `{"lambda": "arn:…"}`, `{"command": ["program", …]}`, `{"python": "module:callable"}`.
        Problem `invalid_request`.
        """
        _check_name(FUNCTION, name)
        allowed = [kind for kind in FUNCTION_KINDS if kind in self._function_kinds]
        if len(target) != 1:
            raise Problem("invalid_request", f"a function has exactly one of {', '.join(allowed)}")
        ((kind, value),) = target.items()
        if kind not in allowed:
            raise Problem(
                "invalid_request",
                f"functions by {kind} are not available in this installation, "
                f"only by {', '.join(allowed)}",
            )
        violation = _FUNCTION_VIOLATIONS[kind](value)
        if violation is not None:
            raise Problem("invalid_request", violation)
        return self._put(project, FUNCTION, name, {kind: value})

    def put_database(
        self, project: ProjectRef, dsn: str | None = None, cluster: Mapping[str, str] | None = None
    ) -> Resource:
        """Set the project's database: a PostgreSQL by DSN, kept sealed; an Aurora cluster by its
        RDS Data API, `{"cluster": "arn:…", "secret": "arn:…", "database"?: name}`; or, with
        neither, the embedded one. Problem `invalid_request`.
        """
        kind = "cluster" if cluster is not None else "embedded" if dsn is None else "dsn"
        if kind not in self._database_kinds:
            raise Problem(
                "invalid_request",
                f"this installation has no {_DATABASES[kind]}: give {self._right}",
            )
        if cluster is not None:
            violation = _cluster_violation(cluster)
            if violation is not None:
                raise Problem("invalid_request", violation)
            return self._put(project, DATABASE, DATABASE, {"embedded": False, **cluster})
        if dsn is None:
            return self._put(project, DATABASE, DATABASE, {"embedded": True})
        violation = _dsn_violation(dsn)
        if violation is not None:
            raise Problem("invalid_request", violation)
        with as_problems():
            sealed = self._secrets.seal(dsn, project)
        return self._put(project, DATABASE, DATABASE, {"embedded": False}, sealed)

    @property
    def _right(self) -> str:
        """What to say of a database here."""
        return " or ".join(text for kind, text in _RIGHT.items() if kind in self._database_kinds)

    def get(self, project: ProjectRef, kind: str, name: str) -> Resource:
        """One resource. Problem `not_found`."""
        found = self._resources.get(project, kind, name)
        if found is None:
            raise _unknown(kind, name)
        return found

    def list(
        self, project: ProjectRef, kind: str, given: str | None, limit: int
    ) -> tuple[Sequence[Resource], str | None]:
        """The resources of a kind by name, and the cursor of the next page."""
        of = listing(kind, project)
        found = self._resources.list(project, kind, text_position(of, given), limit + 1)
        return page(of, found, limit, lambda one: one.name)

    def delete(self, project: ProjectRef, kind: str, name: str) -> None:
        """Delete a resource; a queue goes with its messages. Problem `not_found`."""
        self.get(project, kind, name)
        if kind == QUEUE:
            # First the queue: as long as the entry is there, this can be done again.
            with suppress(QueueNotFound):
                self._queues.delete(project, name)
        self._resources.delete(project, kind, name)

    def _put(
        self,
        project: ProjectRef,
        kind: str,
        name: str,
        config: Mapping[str, Any],
        sealed: str | None = None,
    ) -> Resource:
        existing = self._resources.get(project, kind, name)
        resource = Resource(
            project=project,
            kind=kind,
            name=name,
            config=jsonvalue.encode(config),
            sealed=sealed,
            created_at=self._clock.now() if existing is None else existing.created_at,
        )
        self._resources.put(resource)
        return resource


def _check_name(kind: str, name: str) -> None:
    violation = _NAMES[kind].violation(f"the {kind}'s name", name)
    if violation is not None:
        raise Problem("invalid_request", violation)


def _check_range(field: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise Problem(
            "invalid_request",
            f"{field} must be a whole number from 1 to {most}, not {excerpt(value)}",
        )


def _url_violation(value: Any) -> str | None:
    if URL.violation("url", value) is None:
        return None
    return (
        "url must be an http or https URL with a host (https://example.com/function), without "
        f"a user name or password, at most {limits.MAX_TARGET:,} bytes, not {excerpt(value)}"
    )


def _command_violation(value: Any) -> str | None:
    right = f"command must be a list of 1 to {limits.MAX_COMMAND} texts, the program first"
    if not isinstance(value, list) or not 1 <= len(value) <= limits.MAX_COMMAND:
        return right
    if not all(isinstance(word, str) and "\0" not in word for word in value) or not value[0]:
        return f"{right}, none with a NUL character"
    size = len(jsonvalue.encode(value))
    if size > limits.MAX_TARGET:
        return f"command has {size:,} bytes, at most {limits.MAX_TARGET:,} are allowed"
    return None


def _python_violation(value: Any) -> str | None:
    if not isinstance(value, str) or _PYTHON.fullmatch(value) is None:
        return f"python must be module:callable (shop.stock:reserve), not {excerpt(value)}"
    if len(value) > limits.MAX_TARGET:
        return f"python has {len(value):,} characters, at most {limits.MAX_TARGET:,} are allowed"
    return None


def _lambda_violation(value: Any) -> str | None:
    if isinstance(value, str) and _LAMBDA.fullmatch(value):
        return None
    return (
        "lambda must be the ARN of a function, with a version or alias if wanted "
        f"(arn:aws:lambda:eu-west-1:123456789012:function:reserve:live), not {excerpt(value)}"
    )


_FUNCTION_VIOLATIONS: Final = {
    "url": _url_violation,
    "lambda": _lambda_violation,
    "command": _command_violation,
    "python": _python_violation,
}


def _dsn_violation(dsn: str) -> str | None:
    """What is wrong with a DSN; never quotes it, for it contains the password."""
    right = "dsn must be like postgresql://user:password@host:5432/name"
    if len(dsn) > limits.MAX_TARGET:
        return f"dsn has {len(dsn):,} characters, at most {limits.MAX_TARGET:,} are allowed"
    if not dsn.isprintable() or " " in dsn:
        return f"{right}, without spaces and control characters"
    try:
        parts = urlsplit(dsn)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return right
    return None if parts.scheme in _DSN_SCHEMES and host else right


_DATABASES: Final = {
    "embedded": "embedded database",
    "dsn": "database client, and reaches databases over the RDS Data API only",
    "cluster": "access to the RDS Data API",
}
_RIGHT: Final = {
    "dsn": 'a "dsn", postgresql://user:password@host/name',
    "cluster": '"cluster" and "secret", the ARNs of an Aurora PostgreSQL cluster and of its secret',
}


def _cluster_violation(given: Mapping[str, str]) -> str | None:
    """What is wrong with an Aurora cluster."""
    if not _CLUSTER.fullmatch(given.get("cluster", "")):
        example = "arn:aws:rds:eu-west-1:123456789012:cluster:orders"
        return f"cluster must be the ARN of an Aurora cluster ({example})"
    if not _SECRET.fullmatch(given.get("secret", "")):
        example = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:orders-a1b2c3"
        return f"secret must be the ARN of the secret with the cluster's password ({example})"
    if "database" in given and not _DATABASE_NAME.fullmatch(given["database"]):
        return (
            "database must be the name of a database of the cluster, at most 63 letters, digits, "
            f"_, $ and -, not {excerpt(given['database'])}"
        )
    return None


def _unknown(kind: str, name: str) -> Problem:
    if kind == DATABASE:
        return Problem("not_found", "this project has no database yet")
    return Problem("not_found", f"there is no {kind} {excerpt(name)} in this project")
