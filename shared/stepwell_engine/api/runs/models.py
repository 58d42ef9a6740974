"""The bodies and query strings of the routes of runs."""

from pydantic import Field

from stepwell_engine import limits
from stepwell_engine.api.models import Body, Flag, Json, Number, Page, Query
from stepwell_engine.core.run.status import Status


class StartRun(Body):
    """A run to start."""

    input: Json = Field(
        default_factory=dict,
        description=f"Any JSON value, at most {limits.MAX_INPUT:,} bytes as compact JSON.",
    )
    idempotency_key: str | None = Field(
        None,
        json_schema_extra={"minLength": 1, "maxLength": limits.MAX_IDEMPOTENCY_KEY},
        description="One key, one run: a start with a key that was used answers with its run.",
    )
    test: bool = Field(False, description="Marks the run as a test.")


class SendSignal(Body):
    """A signal for one run."""

    signal: str = Field(
        json_schema_extra={"pattern": "^[a-z0-9][a-z0-9_.-]{0,63}$"},
        description="Its name, for which a step of the run waits now or later.",
    )
    payload: Json = Field(
        None,
        description="The output of the step that takes it: any JSON value, at most "
        f"{limits.MAX_SIGNAL_PAYLOAD:,} bytes as compact JSON.",
    )
    idempotency_key: str | None = Field(
        None,
        json_schema_extra={"minLength": 1, "maxLength": limits.MAX_IDEMPOTENCY_KEY},
        description="One key of a run and a name, one signal: a repeat is answered like the first.",
    )


class RunPage(Page):
    """One page of a workflow's runs."""

    status: Status | None = Field(None, description="Only runs with this status.")
    from_: str | None = Field(
        None,
        alias="from",
        description="Only runs created at this time or later: ISO 8601, or ms since the epoch.",
    )
    to: str | None = Field(None, description="Only runs created before this time.")


class Cancel(Query):
    """What else to cancel."""

    cascade: Flag = Field(False, description="Cancel the child runs that the run waits for, too.")


class Wait(Query):
    """How long to wait for the end of a run."""

    wait: Number = Field(
        0, ge=0, le=limits.MAX_WAIT, description="Seconds to wait for the run to end."
    )
