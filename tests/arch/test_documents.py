"""The documents agree with the code: limits, defaults, links, and every call that they show."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from string import Formatter
from typing import Any
from urllib.parse import parse_qsl

import pytest
from pydantic import BaseModel

from stepwell_engine import limits
from stepwell_engine.api.routes import ROUTES
from stepwell_engine.api.routing import Route
from stepwell_engine.api.validation import checked
from stepwell_engine.core.declared import fields
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.declared.fields import Field
from stepwell_engine.core.declared.kinds import ACTION_KINDS, FIELDS, KINDS, KindDescription
from stepwell_engine.core.declared.validate import check
from tests.api.definition_schema import fits
from tests.arch.sources import ROOT, tracked

DOCUMENTS = [ROOT / path for path in tracked() if path.suffix == ".md"]
PROJECT = "/v1/projects/demo/"


class Limit(int):
    """A limit as a template names it; `s`, `h` and `days` of one that is a time in ms."""

    @property
    def s(self) -> "Limit":
        return self._in(limits.SECOND)

    @property
    def h(self) -> "Limit":
        return self._in(limits.HOUR)

    @property
    def days(self) -> "Limit":
        return self._in(limits.DAY)

    def _in(self, unit: int) -> "Limit":
        assert self % unit == 0
        return Limit(self // unit)


VALUES: Mapping[str, Limit | str] = {
    **{name: Limit(value) for name, value in vars(limits).items() if name.isupper()},
    "KEY": f"^{fields.KEY.pattern.pattern}$",
    "QUEUE_NAME": f"^{fields.QUEUE_NAME.pattern.pattern}$",
    "SIGNAL_NAME": f"^{fields.SIGNAL_NAME.pattern.pattern}$",
}

# The tables under "Limits" in docs/settings.md.
LIMITS = {
    "`steps`; `children` of a fan-out": "1 to {MAX_STEPS:,}; 1 to {MAX_CHILDREN:,}",
    "all of it": "{MAX_DEFINITION:,} bytes",
    "violations named at once": "{MAX_VIOLATIONS:,}",
    "name of a workflow or a function, `key` of a step": "`{KEY}`",
    "name of a queue": "`{QUEUE_NAME}`",
    "name of a signal": "`{SIGNAL_NAME}`",
    "`target`": "{MAX_TARGET:,} bytes",
    "`payload`": "{MAX_STEP_PAYLOAD:,} bytes, nested {MAX_PAYLOAD_DEPTH:,} deep",
    "`secret`": "{MAX_SECRET:,} bytes",
    "`max_attempts`": "1 to {MAX_ATTEMPTS:,}",
    "`timeout_seconds` of `webhook`, `function`, `sql`, `enqueue`": (
        "{MIN_TIMEOUT.s:,} to {MAX_ACTION_TIMEOUT.s:,}"
    ),
    "`timeout_seconds` of `subworkflow`": (
        "{MIN_TIMEOUT.s:,} to {MAX_SUBWORKFLOW_TIMEOUT.s:,} ({MAX_SUBWORKFLOW_TIMEOUT.days} days)"
    ),
    "`timeout_seconds` of `wait_for_signal`": (
        "{MIN_TIMEOUT.s:,} to {MAX_SIGNAL_TIMEOUT.s:,} ({MAX_SIGNAL_TIMEOUT.days} days)"
    ),
    "`sleep_for`": "1 ms to {MAX_SLEEP.days} days",
    "`input`": "{MAX_INPUT:,} bytes",
    "idempotency key, of a start or a signal": "1 to {MAX_IDEMPOTENCY_KEY:,} characters",
    "output of a step": "{MAX_OUTPUT:,} bytes, nested {MAX_NESTING:,} deep",
    "the same as a function sends it, with spaces and escapes": "{MAX_RAW_OUTPUT:,} bytes",
    "rows of a statement that are kept": "{MAX_ROWS:,}, {MAX_ROWS_BYTES:,} bytes",
    "text of an error": "{MAX_ERROR_TEXT:,} characters, the rest is cut",
    "pause after a failed attempt": (
        "{BACKOFF_INITIAL.s} s, then {BACKOFF_FACTOR} times the one before, "
        "up to {BACKOFF_CAP.s:,} s"
    ),
    "children of a fan-out, or compensations, in flight at once": "{CHILDREN_AT_ONCE}",
    "attempts executed, in all": "{MAX_RUN_ATTEMPTS:,}",
    "workers lost in a row that were alone with a step, by which it fails": "{MAX_ALONE_LOSSES}",
    "depth of a child run": "{MAX_DEPTH}",
    "payload of a signal": "{MAX_SIGNAL_PAYLOAD:,} bytes",
    "signals that no step has taken yet": "{MAX_PENDING_SIGNALS:,}",
    "body": "{MAX_BODY:,} bytes, nested {MAX_NESTING:,} deep",
    "name, id or number in the path": "{MAX_PATH_PART:,} characters",
    "`wait`": "0 to {MAX_WAIT} s",
    "`limit`, items of a page": "1 to {MAX_PAGE:,}; {MAX_PAGE:,} if left out",
    "steps in a run's detail": "{MAX_STEPS_IN_DETAIL:,}",
    "outputs of the steps, or bodies of the messages, of a page": (
        "{MAX_PAGE_BYTES:,} bytes, but one item at least"
    ),
    "`visibility_timeout`": "1 to {MAX_VISIBILITY:,} s",
    "`max_receives`": "1 to {MAX_RECEIVES:,}",
    "message": "{MAX_MESSAGE:,} bytes",
    "messages received at once": "1 to {MAX_RECEIVED}",
    "words of a command": "1 to {MAX_COMMAND}",
}

# In docs/steps.md.
DEFAULTS = (
    "`visibility_timeout` (seconds; {DEFAULT_VISIBILITY} if left out)",
    "`max_receives` ({DEFAULT_RECEIVES})",
)

# In the tables of docs/steps.md, which are held to the descriptions of the kinds.
OF_KINDS = {
    *("DEFAULT_ATTEMPTS", "DEFAULT_ACTION_TIMEOUT"),
    *("DEFAULT_SIGNAL_TIMEOUT", "DEFAULT_SUBWORKFLOW_TIMEOUT"),
}

# What no user meets as a number: units, what is no duration at all, the engine's own affairs.
INTERNAL = {
    *("KIB", "MIB", "SECOND", "MINUTE", "HOUR", "DAY", "MAX_DURATION", "MAX_DURATION_TEXT"),
    *("SUSPECT_LOST_LEASES", "MAX_SKEW"),
    *("HOSTS_LOST", "HOSTS_LOST_PAUSE", "HOSTS_LOST_CAP"),
    *("LEASE", "CLOCK_MARGIN", "MAX_HINT_DELAY", "CHILD_START", "CLAIM_WAIT", "TICK"),
    *("FORMAT", "RUN_FORMAT", "BASE_RUN_FORMAT"),
    *("DUE_SHARDS", "MAX_DUE_SHARDS"),  # of the functions on AWS, with their variables
    *("COMPRESS_ABOVE", "PAGE_ABOVE", "PAGES_OF_INDEX", "OPEN_ERRORS"),
    *("HISTORY_ATTEMPTS", "HISTORY_ERRORS"),
    *("INLINE_OUTPUT", "INLINE_INPUT", "INLINE_MESSAGE", "INLINE_MESSAGES", "MAX_WAL"),
}


def filled(template: str) -> str:
    return template.format(**VALUES)


def named(templates: Iterable[str]) -> set[str]:
    """The values that templates show."""
    found = (name for text in templates for _, name, _, _ in Formatter().parse(text))
    return {name.split(".")[0] for name in found if name is not None}


def test_the_limits_in_the_docs_are_those_of_the_code() -> None:
    text = (ROOT / "docs" / "settings.md").read_text("utf-8")
    _, _, rest = text.partition("\n## Limits\n")
    section, _, _ = rest.partition("\n## ")
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", section, re.M)
    limits_shown = [row for row in rows if row[1] != "limit"]
    assert limits_shown == [(label, filled(template)) for label, template in LIMITS.items()]


def test_the_defaults_in_the_docs_are_those_of_the_code() -> None:
    text = (ROOT / "docs" / "steps.md").read_text("utf-8")
    assert [one for one in map(filled, DEFAULTS) if one not in text] == []


def test_every_limit_is_in_the_docs_or_the_engines_own_affair() -> None:
    documented = named([*LIMITS.values(), *DEFAULTS]) | OF_KINDS
    assert documented & INTERNAL == set()
    assert documented | INTERNAL == set(VALUES)


def kind_rows(kinds: Mapping[Kind, KindDescription]) -> list[str]:
    """The first table of docs/steps.md: each kind with what it needs and what it puts out."""
    rows = []
    for kind, one in kinds.items():
        needs = "; ".join(
            f"`{name}`: {field.right}" for name, field in one.fields.items() if field.required
        )
        rows.append(f"| `{kind}` | {one.does} | {needs or 'nothing'} | {one.output or 'none'} |")
    return rows


def field_rows(kinds: Mapping[Kind, KindDescription]) -> list[str]:
    """The second: each field that may be left out, with the kinds that take it alike."""
    rows = []
    for name in FIELDS:
        alike: dict[tuple[str, str], list[str]] = {}
        for kind, one in kinds.items():
            field = one.fields.get(name)
            if field is not None and not field.required:
                alike.setdefault((field.right, shown_default(field)), []).append(f"`{kind}`")
        rows += [
            f"| `{name}` | {', '.join(of)} | {default} | {right} |"
            for (right, default), of in alike.items()
        ]
    return rows


def shown_default(field: Field) -> str:
    if field.default is None:
        return "none"
    return f"{field.default:,}" if isinstance(field.default, int) else f"`{field.default}`"


def test_the_kinds_and_fields_in_the_docs_are_those_of_the_code() -> None:
    text = (ROOT / "docs" / "steps.md").read_text("utf-8")
    section, _, _ = text.partition("\n## ")
    without_links = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", section)
    rows = re.findall(r"^\| `.*$", without_links, re.M)
    assert rows == [*kind_rows(KINDS), *field_rows(KINDS)]
    assert set(list(KINDS)[:4]) == ACTION_KINDS  # "the first four kinds"


def test_a_change_to_a_description_shows_in_the_tables() -> None:
    sleep = KINDS[Kind.SLEEP]
    changed = {**KINDS, Kind.SLEEP: replace(sleep, does="dozes")}
    assert kind_rows(changed) != kind_rows(KINDS)
    attempts = replace(KINDS[Kind.SQL].fields["max_attempts"], default=4)
    fields = {**KINDS[Kind.SQL].fields, "max_attempts": attempts}
    changed = {**KINDS, Kind.SQL: replace(KINDS[Kind.SQL], fields=fields)}
    assert field_rows(changed) != field_rows(KINDS)


def anchors(document: Path) -> set[str]:
    """What a link may name behind #: a heading in lower case, its spaces as hyphens."""
    headings = re.findall(r"^#+ (.+)$", document.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    found = re.findall(r"\]\(([^)\s]+)\)", document.read_text("utf-8"))
    for link in (one for one in found if "://" not in one):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


# `call METHOD PATH [BODY]`, as the README defines it.
CALL = re.compile(r"""^call ([A-Z]+) +("[^"]*"|\S+)(?: +'([^']*)')?(?: +\#.*)?$""", re.M)


def calls() -> Iterator[Any]:
    for document in DOCUMENTS:
        text = document.read_text("utf-8")
        found = CALL.findall(text)
        assert len(found) == len(re.findall(r"^call ", text, re.M)), document.name
        for method, path, body in found:
            yield pytest.param(method, path.strip('"'), body, id=f"{document.name} {method} {path}")


def route_of(method: str, path: str) -> Route:
    """The route that takes it. A fixed word goes before a name that it could be, too."""
    fitting: list[Route] = [
        one for one in ROUTES if one.method == method and one.pattern.match(PROJECT + path)
    ]
    assert fitting != [], f"no route takes {method} {path}"
    return min(fitting, key=lambda one: one.pattern.groups)


@pytest.mark.parametrize(("method", "target", "body"), list(calls()))
def test_every_call_in_the_docs_is_one_that_the_api_takes(
    method: str, target: str, body: str
) -> None:
    path, _, query = target.partition("?")
    route = route_of(method, path)
    given = dict(parse_qsl(query, strict_parsing=bool(query)))
    assert not given or route.query is not None
    if given:
        checked(route.query, given)
    if not body:
        assert route.body is None or not route.body_required
        return
    value = json.loads(body)
    if issubclass(route.body, BaseModel):
        checked(route.body, value)
    else:
        assert check(value, path.rpartition("/")[2]) == []
        assert fits(value)
