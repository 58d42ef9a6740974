"""Where a run and its steps stand."""

from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """Where a run stands. `running` is never stored: it means that a lease is in force."""

    PENDING = "pending"
    RUNNING = "running"
    SLEEPING = "sleeping"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


LIVE = frozenset({Status.PENDING, Status.RUNNING, Status.SLEEPING, Status.WAITING})
STOPPED = frozenset({Status.CANCELLED, Status.TIMED_OUT})
"""Ended from outside, beside the lease: who holds it may record an outcome, and move nothing."""
REVIVABLE = frozenset({Status.FAILED, Status.TIMED_OUT})
"""Ended so that it may be retried."""


class StepStatus(StrEnum):
    """Where a step stands."""

    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"
    SLEEPING = "sleeping"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


STEP_CODES: Final = {
    StepStatus.SUCCEEDED: "s",
    StepStatus.FAILED: "f",
    StepStatus.CANCELLED: "c",
    StepStatus.PENDING: "p",
    StepStatus.RETRYING: "r",
    StepStatus.SLEEPING: "z",
    StepStatus.WAITING: "w",
}
"""The letters that stand for them in storage."""
STEP_STATUSES: Final = {code: status for status, code in STEP_CODES.items()}
