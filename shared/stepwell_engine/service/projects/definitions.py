"""Declared workflows: publishing versions, reading them, and loading them for the engine."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from stepwell_engine import limits
from stepwell_engine.core.declared.definition import Definition
from stepwell_engine.core.declared.fields import RESERVED_WORKFLOW_NAMES, WORKFLOW_NAME
from stepwell_engine.core.declared.program import DeclaredProgram
from stepwell_engine.core.declared.validate import Violation, build, check, map_secrets
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.core.values.excerpt import excerpt
from stepwell_engine.core.values.units import ProjectRef, WorkflowName
from stepwell_engine.errors import NewerFormat, Problem
from stepwell_engine.ports import Clock, Published, Secrets, Versions
from stepwell_engine.service.paging import listing, page, text_position
from stepwell_engine.service.projects.refusals import as_problems

_CACHED_DEFINITIONS: Final = 128


class Workflows:
    """The declared workflows of all projects."""

    def __init__(self, versions: Versions, secrets: Secrets, clock: Clock) -> None:
        self._versions = versions
        self._secrets = secrets
        self._clock = clock
        # Versions are immutable, so nothing in here ever goes stale. Errors are not kept.
        self._cached = lru_cache(maxsize=_CACHED_DEFINITIONS)(self._read)

    def publish(self, project: ProjectRef, name: WorkflowName, body: Any) -> Published:
        """Store the next version of a workflow, its secrets sealed.

        `body` is `{"enabled"?: bool, "steps": […]}`. Problem: `invalid_request` for the name,
        `invalid_definition` with all `violations`.
        """
        self.validate_only(project, name, body)
        with as_problems():
            sealed = map_secrets(body, lambda secret: self._secrets.seal(secret, project))
        enabled: bool = body.get("enabled", True)
        document = jsonvalue.encode(sealed)
        return self._versions.publish(project, name, document, enabled, self._clock.now())

    def validate_only(self, _project: ProjectRef, name: WorkflowName, body: Any) -> None:
        """Check what `publish` checks, and store nothing."""
        violation = WORKFLOW_NAME.violation("the workflow's name", name)
        if violation is None and name in RESERVED_WORKFLOW_NAMES:
            reserved = ", ".join(sorted(RESERVED_WORKFLOW_NAMES))
            violation = f'the workflow\'s name "{name}" is a reserved word ({reserved})'
        if violation is not None:
            raise Problem("invalid_request", violation)
        violations = check(body, name)
        if violations:
            raise _invalid(violations)

    def newest(self, project: ProjectRef, name: WorkflowName) -> Published:
        """The highest version, enabled or not. Problem `not_found`."""
        found = self._versions.newest(project, name)
        if found is None:
            raise _unknown(name)
        return _readable(found)

    def version(self, project: ProjectRef, name: WorkflowName, version: int) -> Published:
        """One version. Problem `not_found`."""
        found = self._versions.get(project, name, version)
        if found is None:
            raise Problem(
                "not_found", f"there is no version {version} of a workflow {excerpt(name)}"
            )
        return _readable(found)

    def list(
        self, project: ProjectRef, given: str | None, limit: int
    ) -> tuple[Sequence[Published], str | None]:
        """The newest version of each workflow, by name, and the cursor of the next page."""
        of = listing("workflows", project)
        found = self._versions.list(project, text_position(of, given), limit + 1)
        shown, following = page(of, found, limit, lambda one: one.workflow)
        return [_readable(one) for one in shown], following

    def set_enabled(self, project: ProjectRef, name: WorkflowName, enabled: bool) -> None:
        """Set the flag on every version. Problem `not_found`."""
        if not self._versions.set_enabled(project, name, enabled):
            raise _unknown(name)

    def enabled(self, project: ProjectRef, workflow: WorkflowName) -> int:
        """The version that a start resolves to. Problem: `not_found`, `workflow_disabled`."""
        found = self._versions.newest_enabled(project, workflow)
        if found is not None:
            return found.version
        self.newest(project, workflow)
        raise Problem(
            "workflow_disabled",
            f'no version of workflow "{workflow}" is enabled: enable it, or publish a new version',
        )

    def load(self, project: ProjectRef, workflow: WorkflowName, version: int) -> DeclaredProgram:
        """The program of the version that a run is pinned to.

        Problem `not_found`; NewerFormat; ValueError if what is stored is no definition.
        """
        return self._cached(project, workflow, version)

    def unreadable(
        self, project: ProjectRef, workflow: WorkflowName, version: int
    ) -> DeclaredProgram:
        """The program that stands for one which is no good: it has no steps."""
        return DeclaredProgram(Definition(project, workflow, version, ()))

    def _read(self, project: ProjectRef, workflow: WorkflowName, version: int) -> DeclaredProgram:
        published = self.version(project, workflow, version)
        try:
            document = jsonvalue.decode(published.document)
            return DeclaredProgram(build(document, project, workflow, version))
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(
                f'version {version} of workflow "{workflow}" cannot be read: {error!r}'
            ) from error


def _readable(published: Published) -> Published:
    if published.format > limits.FORMAT:
        what = f'version {published.version} of workflow "{published.workflow}"'
        raise NewerFormat(what, published.format, limits.FORMAT)
    return published


def _unknown(name: WorkflowName) -> Problem:
    return Problem("not_found", f"there is no workflow {excerpt(name)}")


def _invalid(violations: Sequence[Violation]) -> Problem:
    first = violations[0]
    where = "" if first.step is None else f'step "{first.step}": '
    more = len(violations) - 1
    rest = f" (and {more} more, see violations)" if more else ""
    return Problem(
        "invalid_definition",
        f"{where}{first.message}{rest}",
        violations=[violation.as_json() for violation in violations],
    )
