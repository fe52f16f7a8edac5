"""The scaler's Lambda function, with its role, log group and dead-letter queue."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk_highwater.function_asset import make_function, powertools_files, runtime_files
from cdk_highwater.permissions import (
    TABLE_ACTIONS,
    reading_plans,
    reading_targets_and_metrics,
    scaling_tagged_tables,
    setting_bounds,
)
from cdk_highwater.rule_packs import (
    LOG_RULES,
    QUEUE_RULES,
    SCALER_FUNCTION_RULES,
    acknowledge,
    role_rules,
    scaler_role_rules,
)
from cdk_highwater.tagged_tables import TaggedTables
from cdk_highwater.unique_names import unique_name
from highwater.core.names import LOG_GROUPS_PREFIX
from highwater.core.scaler.tagged_plans import FINDER_TAG

# a run for 2,500 tables takes less (benchmarks/scaler.py); another invocation continues with the remaining tables
_TIMEOUT = cdk.Duration.minutes(3)
_MEMORY_MIB = 512


class ScalerFunction(Construct):
    """The function of a `ThrottleAwareScaler`.

    The role may read plans, metrics, alarms and scalable targets, change the scaler's alarms, set floors of scalable
    targets, and describe and update only the tables given to `allow_table` or chosen by tags.
    """

    def __init__(
        self, scope: Construct, id: str, *, scaler_name: str, dry_run: bool, tagged: TaggedTables | None
    ) -> None:
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
        self.name = scaler_name
        # `highwater explain` finds the decisions by the prefix of this name
        self.log_group = logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"{LOG_GROUPS_PREFIX}{unique_name(self, most_characters=200)}",
            retention=logs.RetentionDays.THREE_MONTHS,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description="Highwater: sets floors of scalable targets by demand and plans",
        )
        self.log_group.grant_write(self.role)
        regions = () if tagged is None else tuple(tagged.regions)
        self._allow(reading_plans(self._stack, scaler_name), reading_targets_and_metrics())
        self._allow(*setting_bounds(self._stack))
        for region in regions:
            self._allow_region(region)
        if tagged is not None:
            self._allow(*scaling_tagged_tables(self._stack, (None, *regions)))
        self.function = self._make(dry_run, tagged)
        if tagged is not None and not dry_run:
            # other scalers of tagged tables find it, and tell of it in their log
            cdk.Tags.of(self.function).add(FINDER_TAG, scaler_name, include_resource_types=["AWS::Lambda::Function"])
        # a separate policy, because the function depends on the role's default policy
        iam.Policy(
            self,
            "HandOn",
            roles=[self.role],
            statements=[iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[self.function.function_arn])],
        )

        acknowledge(self.function, SCALER_FUNCTION_RULES)
        acknowledge(self.log_group, LOG_RULES)
        acknowledge(self.dead_letters, QUEUE_RULES)
        acknowledge(self, scaler_role_rules(self._stack, self.name, (None, *regions)))

    def allow_table(self, arn: str, region: str | None = None) -> None:
        """Allow the function to describe and update the table *arn*; *region* is the table's, if not the function's."""
        if region is not None:
            self._allow_region(region)
        self._allow(iam.PolicyStatement(actions=list(TABLE_ACTIONS), resources=[arn]))

    def _allow(self, *statements: iam.PolicyStatement) -> None:
        for statement in statements:
            self.role.add_to_policy(statement)

    def _allow_region(self, region: str) -> None:
        if region not in self._regions:
            self._regions.add(region)
            acknowledge(self, role_rules(self._stack, [region]))
            self._allow(*setting_bounds(self._stack, region))

    def _make(self, dry_run: bool, tagged: TaggedTables | None) -> lambda_.Function:
        return make_function(
            self,
            handler="scaler.handler",
            packs=[runtime_files, powertools_files],
            role=self.role,
            description="Highwater: floors that follow demand within minutes",
            timeout=_TIMEOUT,
            memory_size=_MEMORY_MIB,
            log_group=self.log_group,
            dead_letter_queue=self.dead_letters,
            environment={
                "HIGHWATER_SCALER": self.name,
                "HIGHWATER_DRY_RUN": "true" if dry_run else "false",
                "HIGHWATER_SEES_TAGS": "false" if tagged is None else "true",
                "HIGHWATER_REGIONS": "" if tagged is None else " ".join(tagged.regions),
                "POWERTOOLS_SERVICE_NAME": self.name,
            },
        )
