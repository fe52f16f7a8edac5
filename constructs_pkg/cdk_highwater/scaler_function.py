"""The scaler's Lambda: its asset, its role to the letter, its log group and its dead-letter queue."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk_highwater.function_asset import make_function, pack_powertools, pack_runtime
from cdk_highwater.rule_packs import (
    LOG_RULES,
    QUEUE_RULES,
    SCALER_FUNCTION_RULES,
    acknowledge,
    role_rules,
    scaler_role_rules,
)
from highwater.core.names import LOG_GROUPS_PREFIX, PLANS_PATH
from highwater.core.scaler import Mode
from highwater.core.scaler.tagged_plans import MANAGED_TAG

# a run for 2,500 tables takes less (benchmarks/scaler.py); what does not fit is handed on
_TIMEOUT = cdk.Duration.minutes(3)
_MEMORY_MIB = 512


class ScalerFunction(Construct):
    """The function of a `ThrottleAwareScaler`.

    Its role reads plans, metrics, alarms and scalable targets, moves thresholds of its own alarms, and sets floors of
    just the tables that it was allowed.
    """

    def __init__(self, scope: Construct, id: str, *, dry_run: bool, sees_tags: bool, regions: Sequence[str]) -> None:
        super().__init__(scope, id)
        self._stack = cdk.Stack.of(self)
        self._regions: set[str] = set()
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=cdk.Duration.days(14),
        )
        # a name that `highwater explain` finds the decisions by
        own = cdk.Names.unique_resource_name(self, max_length=200, separator="-")
        self.log_group = logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"{LOG_GROUPS_PREFIX}{own}",
            retention=logs.RetentionDays.THREE_MONTHS,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description="Highwater: sets floors of scalable targets to what demand and plans ask for",
        )
        self.log_group.grant_write(self.role)
        for statement in (*self._statements(), *self._regional_statements(None)):
            self.role.add_to_policy(statement)
        for region in regions:
            self._allow_region(region)
        if sees_tags:
            self._allow_tagged_tables(regions)
        self.function = self._make(dry_run, sees_tags, regions)
        # not in the role's own policy, which the function depends on
        iam.Policy(
            self,
            "HandOn",
            roles=[self.role],
            statements=[iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[self.function.function_arn])],
        )

        acknowledge(self.function, SCALER_FUNCTION_RULES)
        acknowledge(self.log_group, LOG_RULES)
        acknowledge(self.dead_letters, QUEUE_RULES)
        acknowledge(self, scaler_role_rules(self._stack, (None, *regions)))

    def allow_table(self, arn: str, region: str | None = None) -> None:
        """Let it describe and update that table, which Application Auto Scaling checks of whoever registers.

        *region* is where the table is, if not with the function.
        """
        if region is not None:
            self._allow_region(region)
        self.role.add_to_policy(
            iam.PolicyStatement(actions=["dynamodb:DescribeTable", "dynamodb:UpdateTable"], resources=[arn])
        )

    def _allow_region(self, region: str) -> None:
        if region not in self._regions:
            self._regions.add(region)
            acknowledge(self, role_rules(self._stack, [region]))
            for statement in self._regional_statements(region):
                self.role.add_to_policy(statement)

    def _allow_tagged_tables(self, regions: Sequence[str]) -> None:
        """Tables that carry the tag, and no others, whoever puts it on."""
        self.role.add_to_policy(iam.PolicyStatement(actions=["tag:GetResources"], resources=["*"]))
        self.role.add_to_policy(
            iam.PolicyStatement(
                actions=["dynamodb:DescribeTable", "dynamodb:UpdateTable"],
                resources=[self._arn("dynamodb", "table/*", region) for region in (None, *regions)],
                conditions={"StringEquals": {f"aws:ResourceTag/{MANAGED_TAG}": [str(mode) for mode in Mode]}},
            )
        )

    def _statements(self) -> list[iam.PolicyStatement]:
        allow = iam.PolicyStatement
        plans = self._arn("ssm", f"parameter{PLANS_PATH}")
        return [
            allow(actions=["ssm:GetParametersByPath"], resources=[plans.removesuffix("/"), f"{plans}*"]),
            # these know no resources to be limited to
            allow(
                actions=["application-autoscaling:DescribeScalableTargets", "cloudwatch:GetMetricData"],
                resources=["*"],
            ),
        ]

    def _regional_statements(self, region: str | None) -> list[iam.PolicyStatement]:
        allow = iam.PolicyStatement
        return [
            allow(
                actions=["application-autoscaling:RegisterScalableTarget"],
                resources=[self._arn("application-autoscaling", "scalable-target/*", region)],
                conditions={"StringEquals": {"application-autoscaling:service-namespace": "dynamodb"}},
            ),
            # its own alarms; and Application Auto Scaling checks these of whoever registers, by calls that name none
            allow(
                actions=["cloudwatch:DeleteAlarms", "cloudwatch:DescribeAlarms", "cloudwatch:PutMetricAlarm"],
                resources=[self._arn("cloudwatch", "alarm:*", region)],
            ),
        ]

    def _arn(self, service: str, resource: str, region: str | None = None) -> str:
        stack = self._stack
        return f"arn:{stack.partition}:{service}:{region or stack.region}:{stack.account}:{resource}"

    def _make(self, dry_run: bool, sees_tags: bool, regions: Sequence[str]) -> lambda_.Function:
        return make_function(
            self,
            handler="scaler.handler",
            packs=[pack_runtime, pack_powertools],
            role=self.role,
            description="Highwater: floors that follow demand within minutes",
            timeout=_TIMEOUT,
            memory_size=_MEMORY_MIB,
            log_group=self.log_group,
            dead_letter_queue=self.dead_letters,
            environment={
                "HIGHWATER_DRY_RUN": "true" if dry_run else "false",
                "HIGHWATER_SEES_TAGS": "true" if sees_tags else "false",
                "HIGHWATER_REGIONS": " ".join(regions),
                "POWERTOOLS_SERVICE_NAME": "scaler",
            },
        )
