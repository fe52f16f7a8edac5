"""Answers to rule packs for what is otherwise here than they ask; docs/security.md has the same table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import aws_cdk as cdk
from constructs import IConstruct

FUNCTION_RULES: Final = (
    "Serverless::Serverless-LambdaTracing",
    "NIST.800.53.R5::NIST.800.53.R5-LambdaConcurrency",
    "NIST.800.53.R5::NIST.800.53.R5-LambdaInsideVPC",
    "HIPAA.Security::HIPAA.Security-LambdaConcurrency",
    "HIPAA.Security::HIPAA.Security-LambdaInsideVPC",
    "PCI.DSS.321::PCI.DSS.321-LambdaInsideVPC",
)
QUEUE_LESS_RULES: Final = (
    "Serverless::Serverless-LambdaDLQ",
    "NIST.800.53.R5::NIST.800.53.R5-LambdaDLQ",
    "HIPAA.Security::HIPAA.Security-LambdaDLQ",
)
LOG_RULES: Final = dict.fromkeys(
    (
        "NIST.800.53.R5::NIST.800.53.R5-CloudWatchLogGroupEncrypted",
        "HIPAA.Security::HIPAA.Security-CloudWatchLogGroupEncrypted",
        "PCI.DSS.321::PCI.DSS.321-CloudWatchLogGroupEncrypted",
    ),
    "CloudWatch Logs encrypts every group with a key of its own; the lines hold names of tables and numbers of units.",
)
_ROLE_RULES: Final = {
    "AwsSolutions::AwsSolutions-IAM5[Resource::*]": (
        "application-autoscaling:DescribeScalableTargets, cloudwatch:GetMetricData and tag:GetResources know no "
        "resources."
    ),
} | dict.fromkeys(
    (
        "NIST.800.53.R5::NIST.800.53.R5-IAMNoInlinePolicy",
        "HIPAA.Security::HIPAA.Security-IAMNoInlinePolicy",
        "PCI.DSS.321::PCI.DSS.321-IAMNoInlinePolicy",
    ),
    "The policy is this one role's and goes with it; it names each table, so no other role could use it.",
)
_TARGETS = "Ids of scalable targets are made at registration; a condition limits the action to DynamoDB's."
_ALARMS = "Application Auto Scaling checks these permissions of whoever registers, by calls that name no alarm."
_PLANS = "The plans of all tables, which stacks add to, and no others."
_TAGGED = "Tables that carry the tag highwater:managed, by a condition."
SCALER_FUNCTION_RULES: Final = dict.fromkeys(
    FUNCTION_RULES,
    "It speaks to AWS APIs only; runs side by side do no harm, and one log line a decision tells what traces would.",
)
QUEUE_RULES: Final = {
    "Serverless::Serverless-SQSRedrivePolicy": "It is the dead-letter queue; an alarm watches what comes in."
}


def role_rules(stack: cdk.Stack, regions: Iterable[str | None] = (None,)) -> dict[str, str]:
    """The answers for a role that sets floors in *regions*, `None` for the stack's own."""
    rules = dict(_ROLE_RULES)
    for region in regions:
        rules[_all_of(stack, "application-autoscaling", "scalable-target/*", region)] = _TARGETS
        rules[_all_of(stack, "cloudwatch", "alarm:*", region)] = _ALARMS
    return rules


def scaler_role_rules(stack: cdk.Stack, regions: Iterable[str | None] = (None,)) -> dict[str, str]:
    """The answers for the scaler's role, which may see tags in *regions*."""
    rules = role_rules(stack, regions) | {_all_of(stack, "ssm", "parameter/highwater/plans/*", None): _PLANS}
    return rules | {_all_of(stack, "dynamodb", "table/*", region): _TAGGED for region in regions}


def _all_of(stack: cdk.Stack, service: str, resource: str, region: str | None) -> str:
    """How cdk-nag names a wildcard: with what the stack leaves open in angle brackets."""
    partition = "<AWS::Partition>" if cdk.Token.is_unresolved(stack.partition) else stack.partition
    account = "<AWS::AccountId>" if cdk.Token.is_unresolved(stack.account) else stack.account
    own = "<AWS::Region>" if cdk.Token.is_unresolved(stack.region) else stack.region
    arn = f"arn:{partition}:{service}:{region or own}:{account}:{resource}"
    return f"AwsSolutions::AwsSolutions-IAM5[Resource::{arn}]"


def acknowledge(scope: IConstruct, rules: Mapping[str, str]) -> None:
    """Answer *rules* for *scope*, each with its reason."""
    cdk.Validations.of(scope).acknowledge(
        *(cdk.Acknowledgment(id=rule, reason=reason) for rule, reason in rules.items())
    )
