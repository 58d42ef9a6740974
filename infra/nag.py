"""The rules of AWS Solutions, checked at every synthesis, and what was decided against one.

A finding that nobody acknowledged fails the synthesis. Acknowledge it on the construct it is
about, in a sentence that says why the rule does not help there.
"""

from collections.abc import Mapping

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks
from constructs import IConstruct


def check(app: cdk.App) -> None:
    """Check every stack of the app when it is synthesized."""
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app, verbose=True))


def acknowledge(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Accept findings, by their ids (`AwsSolutions-SQS3`), for a construct and all in it."""
    for finding, reason in reasons.items():
        rule = cdk.Acknowledgment(id=f"AwsSolutions::{finding}", reason=reason)
        cdk.Validations.of(construct).acknowledge(rule)
