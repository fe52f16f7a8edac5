"""IAM permissions of Highwater's functions, the ARNs in these permissions, and roles of services that run them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from highwater.core.names import ALARM_PREFIX, plans_path
from highwater.core.scaler.plan import MANAGED_TAG, TAG_MODES

# UpdateTable for an index is authorized by the table's ARN. Application Auto Scaling asks for these permissions of the
# caller that registers a target (its User Guide, "Permissions validation for API calls on target resources", read
# 2026-11).
TABLE_ACTIONS: Final = ("dynamodb:DescribeTable", "dynamodb:UpdateTable")


def table_arn(stack: cdk.Stack, table: str, region: str | None = None) -> str:
    """Return the ARN of a table in the stack's account; *region* is by default the stack's."""
    return stack.format_arn(service="dynamodb", resource="table", resource_name=table, region=region)


def alarms_arn(stack: cdk.Stack, prefix: str = "", region: str | None = None) -> str:
    """Return a pattern for the ARNs of alarms whose names begin with *prefix*."""
    return stack.format_arn(
        service="cloudwatch",
        resource="alarm",
        resource_name=f"{prefix}*",
        region=region,
        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
    )


def scaler_alarms_arn(stack: cdk.Stack) -> str:
    """Return a pattern for the ARNs of the alarms that start a scaler."""
    return alarms_arn(stack, ALARM_PREFIX)


def targets_arn(stack: cdk.Stack, region: str | None = None) -> str:
    """Return a pattern for the ARNs of scalable targets, because their ids are only known after registration."""
    return stack.format_arn(
        service="application-autoscaling", resource="scalable-target", resource_name="*", region=region
    )


def parameter_arn(stack: cdk.Stack, name: str) -> str:
    """Return the ARN of an SSM parameter, or of a path of parameters."""
    return stack.format_arn(service="ssm", resource="parameter", resource_name=name.strip("/"))


def path_arns(stack: cdk.Stack, path: str) -> list[str]:
    """Return the ARN of a path of SSM parameters, and a pattern for the parameters below it."""
    folder = parameter_arn(stack, path)
    return [folder, f"{folder}/*"]


def reading_targets(*others: str) -> iam.PolicyStatement:
    """Allow reading scalable targets, and *others* of the actions that do not support resource-level permissions."""
    return iam.PolicyStatement(actions=["application-autoscaling:DescribeScalableTargets", *others], resources=["*"])


def invoking(function_arn: str) -> iam.PolicyStatement:
    """Allow running a function."""
    return iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function_arn])


def role_for(
    scope: Construct, id: str, service: str, description: str, statements: Sequence[iam.PolicyStatement] = ()
) -> iam.Role:
    """Create the role that a service of AWS takes on, for the account of the stack only.

    The *statements* are part of the role, and no resource of their own.
    """
    only_here = {"StringEquals": {"aws:SourceAccount": cdk.Stack.of(scope).account}}
    principal = iam.ServicePrincipal(service, conditions=only_here)
    return iam.Role(
        scope,
        id,
        assumed_by=principal,
        description=f"Highwater: {description}",
        inline_policies={"Policy": iam.PolicyDocument(statements=statements)} if statements else None,
    )


def reading_stack(stack: cdk.Stack) -> iam.PolicyStatement:
    """Allow reading the status of *stack* and the names of its resources, and of no other."""
    actions = ["cloudformation:DescribeStacks", "cloudformation:ListStackResources"]
    return iam.PolicyStatement(actions=actions, resources=[stack.stack_id])


def reading_plans(stack: cdk.Stack, scaler: str) -> iam.PolicyStatement:
    """Allow reading the plans of *scaler*, and no others."""
    actions = ["ssm:GetParameters", "ssm:GetParametersByPath"]
    return iam.PolicyStatement(actions=actions, resources=path_arns(stack, plans_path(scaler)))


def setting_bounds(stack: cdk.Stack, region: str | None = None) -> list[iam.PolicyStatement]:
    """Allow setting floors and ceilings of DynamoDB's scalable targets in a region, and changing alarms.

    Application Auto Scaling's guide asks for the alarm permissions of the caller that registers a target, for all alarm
    names. On ECS the service's own role replaced denied calls (recorded: radkawar/stackd 9dc356f,
    applicationautoscaling/alarm_authorization, 2026-09); DynamoDB was not recorded, so they are granted.
    """
    return [
        iam.PolicyStatement(
            actions=["application-autoscaling:RegisterScalableTarget"],
            resources=[targets_arn(stack, region)],
            conditions={"StringEquals": {"application-autoscaling:service-namespace": "dynamodb"}},
        ),
        iam.PolicyStatement(
            actions=["cloudwatch:DeleteAlarms", "cloudwatch:DescribeAlarms", "cloudwatch:PutMetricAlarm"],
            resources=[alarms_arn(stack, region=region)],
        ),
    ]


def scaling_tagged_tables(stack: cdk.Stack, regions: Iterable[str | None]) -> list[iam.PolicyStatement]:
    """Allow finding and updating the tables with the tag `highwater:managed`, and no others."""
    return [
        iam.PolicyStatement(actions=["tag:GetResources"], resources=["*"]),
        iam.PolicyStatement(
            actions=list(TABLE_ACTIONS),
            resources=[table_arn(stack, "*", region) for region in regions],
            conditions={"StringEquals": {f"aws:ResourceTag/{MANAGED_TAG}": [str(mode) for mode in TAG_MODES]}},
        ),
    ]
