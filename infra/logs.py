"""Log groups: kept for as long as the installation wants, gone with their stack."""

from collections.abc import Mapping
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.installation import Installation

_DAYS: Final[Mapping[int, logs.RetentionDays]] = {
    1: logs.RetentionDays.ONE_DAY,
    3: logs.RetentionDays.THREE_DAYS,
    5: logs.RetentionDays.FIVE_DAYS,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
    731: logs.RetentionDays.TWO_YEARS,
    1827: logs.RetentionDays.FIVE_YEARS,
    3653: logs.RetentionDays.TEN_YEARS,
}


def log_group(scope: Construct, construct_id: str, installation: Installation) -> logs.LogGroup:
    """A log group of this installation."""
    return logs.LogGroup(
        scope,
        construct_id,
        retention=_DAYS[installation.log_retention],
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )
