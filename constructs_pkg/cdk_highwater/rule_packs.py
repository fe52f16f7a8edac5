"""Answers to rule packs for what is otherwise here than they ask; docs/security.md has the same table."""

from __future__ import annotations

from collections.abc import Mapping
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
_ALL_OF = "AwsSolutions::AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:{}:<AWS::Region>:<AWS::AccountId>:{}]"
ROLE_RULES: Final = {
    "AwsSolutions::AwsSolutions-IAM5[Resource::*]": (
        "application-autoscaling:DescribeScalableTargets, cloudwatch:GetMetricData and tag:GetResources know no "
        "resources."
    ),
    _ALL_OF.format("application-autoscaling", "scalable-target/*"): (
        "Ids of scalable targets are made at registration; a condition limits the action to DynamoDB's."
    ),
    _ALL_OF.format("cloudwatch", "alarm:*"): (
        "Application Auto Scaling checks these permissions of whoever registers, by calls that name no alarm."
    ),
} | dict.fromkeys(
    (
        "NIST.800.53.R5::NIST.800.53.R5-IAMNoInlinePolicy",
        "HIPAA.Security::HIPAA.Security-IAMNoInlinePolicy",
        "PCI.DSS.321::PCI.DSS.321-IAMNoInlinePolicy",
    ),
    "The policy is this one role's and goes with it; it names each table, so no other role could use it.",
)
SCALER_ROLE_RULES: Final = ROLE_RULES | {
    _ALL_OF.format(
        "ssm", "parameter/highwater/plans/*"
    ): "The plans of all tables, which stacks add to, and no others.",
    _ALL_OF.format("dynamodb", "table/*"): "Tables that carry the tag highwater:managed, by a condition.",
}
SCALER_FUNCTION_RULES: Final = dict.fromkeys(
    FUNCTION_RULES,
    "It speaks to AWS APIs only; runs side by side do no harm, and one log line a decision tells what traces would.",
)
QUEUE_RULES: Final = {
    "Serverless::Serverless-SQSRedrivePolicy": "It is the dead-letter queue; an alarm watches what comes in."
}


def acknowledge(scope: IConstruct, rules: Mapping[str, str]) -> None:
    """Answer *rules* for *scope*, each with its reason."""
    cdk.Validations.of(scope).acknowledge(
        *(cdk.Acknowledgment(id=rule, reason=reason) for rule, reason in rules.items())
    )
