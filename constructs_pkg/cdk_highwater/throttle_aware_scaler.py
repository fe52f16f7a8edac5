"""The optional Lambda that makes capacity follow demand within minutes, with its role, alarms and schedule."""

from __future__ import annotations

import json
from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_highwater.annotations import annotate
from cdk_highwater.deployment_function import DeploymentFunction
from cdk_highwater.high_water_table import HighWaterTable
from cdk_highwater.managed_capacity import ManagedCapacity, capacity_of
from cdk_highwater.rule_packs import acknowledge, role_rules
from cdk_highwater.scaler_alarms import ScalerAlarms, told_metric
from cdk_highwater.scaler_function import ScalerFunction
from cdk_highwater.subject import Subject, TableLike, refuse_other_than_tables, subject_of
from cdk_highwater.table_findings import fitting_findings
from highwater.core import Capacity, Finding, HighWaterMark, IndexPlan, Plan, Severity, Target, Window, check
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.names import ALARM_PREFIX, TargetName
from highwater.core.scaler import Mode
from highwater.core.scaler.attention import alarm_threshold
from highwater.core.scaler.scaled_plan import ScaledPlan

# An SSM parameter holds 4 KB, an advanced one 8 (AWS Systems Manager User Guide, "Managing parameter tiers", 2026-11)
_STANDARD_BYTES, _ADVANCED_BYTES = 4_096, 8_192
_TICK = {"highwater": "tick", "time": "<aws.scheduler.scheduled-time>"}


class ThrottleAwareScaler(Construct):
    """Raise floors within minutes of a surge, heal those that a deploy or a hand edit reset, let them fall again.

    One function for all tables that `manage` is called with. It runs every minute, and at once when a target's alarm
    goes off because consumption came near to capacity. It sets scalable targets' floors; target tracking goes on and
    scales in. With it a target utilization of 90 % is meant: docs/scaler.md.

    Deleting it leaves each floor as its plan alone asks for.

    Args:
        scope: Parent construct.
        id: Unique within *scope*.
        alarm_topic: Where its own alarms go. By default they only show in CloudWatch.
        sees_tags: Also look after tables of the account that carry the tag `highwater:managed`. By default only those
            that `manage` and `manage_direct` name.
        regions: Where tables are looked for by tags, beside its own region. By default nowhere.
        dry_run: Decide and log, and change nothing. By default it changes.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        alarm_topic: sns.ITopic | None = None,
        sees_tags: bool = False,
        regions: Sequence[str] = (),
        dry_run: bool = False,
    ) -> None:
        super().__init__(scope, id)
        self._stack = cdk.Stack.of(self)
        self._function = ScalerFunction(self, "Function", dry_run=dry_run, sees_tags=sees_tags, regions=regions)
        self._schedule = self._run_every_minute()
        self._let_alarms_start_it()
        self._alarms = ScalerAlarms(self, "Alarms", function=self._function, topic=alarm_topic)
        self._managed: set[str] = set()

    @property
    def function(self) -> lambda_.IFunction:
        """The function."""
        return self._function.function

    @property
    def log_group(self) -> logs.ILogGroup:
        """The log group, with a line for each decision."""
        return self._function.log_group

    def metric(self, name: str) -> cloudwatch.Metric:
        """A metric that the function tells CloudWatch, summed over five minutes; docs/operations.md lists them."""
        return told_metric(name)

    def manage(self, table: HighWaterTable | ManagedCapacity) -> None:
        """Look after a table and its indexes: those dimensions that are autoscaled.

        A `TableV2` is looked after in each region that it has a replica in, and a table of another region where it is.
        Only alarms of the scaler's own region can start it; elsewhere it looks every minute whether one has gone off,
        and where the app has no stack to make alarms in, every five minutes.

        Raises:
            TypeError: If *table* has no managed capacity.
            ValueError: If the table is looked after already.
        """
        capacity = capacity_of(table)
        if capacity.node.path in self._managed:
            message = f"{capacity.node.path}: looked after already; call manage once a table"
            raise ValueError(message)
        self._managed.add(capacity.node.path)
        if not annotate(capacity, _findings(capacity.plan)):
            return
        capacity.note_scaler()
        here, regions = self._look_after(capacity.subject, capacity.plan, Mode.FLOOR)
        for region in regions:
            self._serve_deploys(here, capacity, region)

    def manage_direct(
        self,
        table: TableLike,
        *,
        read: Capacity,
        write: Capacity,
        windows: Sequence[Window] = (),
        indexes: Sequence[IndexPlan] = (),
        table_quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
    ) -> None:
        """Size a table that Application Auto Scaling does not manage, by UpdateTable alone.

        It is left alone as soon as it has a scalable target. Windows are held by the scaler itself, within a minute.
        Removing the construct leaves capacity as it is.

        Args:
            table: A provisioned `dynamodb.Table`, `CfnTable`, or one imported by name or ARN.
            read: The table's read capacity, autoscaled; its target utilization is not looked at.
            write: The table's write capacity, likewise.
            windows: Windows of higher capacity. By default none.
            indexes: What indexes have of their own; those of the template follow the table. Of an imported table, list
                every index that shall be scaled.
            table_quota_units: The account's quota for a table or index. By default 40,000, AWS's own.

        Raises:
            TypeError: If *table* is no table.
            ValueError: If the table is looked after already.
        """
        refuse_other_than_tables(table)
        subject = subject_of(table)
        path = subject.construct.node.path
        if path in self._managed or subject.construct.node.try_find_child("Capacity") is not None:
            message = f"{path}: looked after or scaled already; DIRECT mode is for tables that nothing else scales"
            raise ValueError(message)
        self._managed.add(path)
        plan = Plan(
            read=read,
            write=write,
            windows=tuple(windows),
            indexes=tuple(indexes),
            mark=HighWaterMark.none(),
            table_quota_units=table_quota_units,
        )
        plan = plan.with_indexes(subject.index_names())
        findings = [*fitting_findings(plan, subject, subject.index_names()), *check(plan, has_actions=False)]
        if annotate(self, findings) and annotate(self, _findings(plan)):
            self._look_after(subject, plan, Mode.DIRECT)

    def _look_after(self, subject: Subject, plan: Plan, mode: Mode) -> tuple[Construct, list[str | None]]:
        """Make what the function needs for the table; the construct below which it is, and the table's regions."""
        here = Construct(self, f"Table{len(self._managed)}")
        own = self._elsewhere(subject.region)
        regions = [own, *(self._elsewhere(region) for region in subject.replica_regions())]
        for region in regions:
            self._store_plan(here, subject, plan, mode, region)
            self._function.allow_table(subject.arn if region == own else subject.arn_in(region), region)
        # an alarm can only be where its metric is
        if self._is_here(subject.region, subject.stack.region):
            scope = here if own is None else Construct(subject.stack, f"ScalerAlarms-{subject.construct.node.addr}")
            for target in plan.targets():
                if target.capacity.is_autoscaled:
                    self._watch(scope, subject.name, target, starts_function=own is None)
        return here, regions

    def _elsewhere(self, region: str) -> str | None:
        """The region, `None` for the scaler's own."""
        return None if self._is_here(region, self._stack.region) else region

    def _is_here(self, region: str, other: str) -> bool:
        # the CDK lets a stack that leaves its region open refer to none of another
        return cdk.Token.is_unresolved(region) or cdk.Token.is_unresolved(other) or region == other

    def _store_plan(self, scope: Construct, subject: Subject, plan: Plan, mode: Mode, region: str | None) -> None:
        scaled = ScaledPlan(table=subject.name, mode=mode, plan=plan, region=region)
        value = scaled.to_json()
        size = len(value.encode())
        cdk.CfnResource(
            scope,
            f"Plan{region or ''}",
            type="AWS::SSM::Parameter",
            properties={
                "Name": scaled.parameter,
                "Type": "String",
                "Tier": "Standard" if size <= _STANDARD_BYTES else "Advanced",
                "Description": "Highwater: what is planned for this table, read by its scaler",
                "Value": value,
            },
        )

    def _watch(self, scope: Construct, table: str, target: Target, *, starts_function: bool) -> None:
        """The target's alarm, which the scaler moves with the capacity; a deploy sets it low, which costs a run."""
        kind = target.dimension.title()
        where = kind if target.index is None else f"{target.index}-{kind}"
        dimensions = [cloudwatch.CfnAlarm.DimensionProperty(name="TableName", value=table)]
        if target.index is not None:
            dimensions.append(
                cloudwatch.CfnAlarm.DimensionProperty(name="GlobalSecondaryIndexName", value=target.index)
            )
        cloudwatch.CfnAlarm(
            scope,
            f"{where}Alarm",
            alarm_name=TargetName(table, target.index, target.dimension).alarm,
            alarm_description="Consumption near to capacity: Highwater's scaler looks at it at once",
            namespace="AWS/DynamoDB",
            metric_name=f"Consumed{kind}CapacityUnits",
            dimensions=dimensions,
            statistic="Sum",
            period=60,
            evaluation_periods=1,
            threshold=alarm_threshold(int(target.capacity.min)),
            comparison_operator="GreaterThanThreshold",
            treat_missing_data="ignore",
            alarm_actions=[self.function.function_arn] if starts_function else None,
        )

    def _serve_deploys(self, scope: Construct, capacity: ManagedCapacity, region: str | None) -> None:
        """Have the scaler look at the table after each deploy that changed it, and put floors back where it leaves."""
        deployment = DeploymentFunction.of(self._stack)
        deployment.allow_floors(capacity.subject, region)
        deployment.allow_invoking(self.function.function_arn)
        # what nothing holds when the scaler has gone must not stay
        left = capacity.plan.without_windows() if capacity.scaler_holds_windows else capacity.plan
        scaled = cdk.CfnResource(
            scope,
            f"Scaled{region or ''}",
            type="Custom::HighwaterScaled",
            properties={
                "ServiceToken": deployment.service_token,
                "TableName": capacity.subject.name,
                "Plan": left.to_json(),
                "Scaler": self.function.function_arn,
            }
            | ({} if region is None else {"Region": region})
            | ({} if left is capacity.plan else {"Held": capacity.plan.to_json()}),
        )
        plans = [child for child in scope.node.children if child.node.id.startswith("Plan")]
        scaled.node.add_dependency(capacity, *plans, *deployment.permissions)
        # what goes first when all goes: nothing must raise a floor after it was put back
        self._schedule.node.add_dependency(scaled)

    def _run_every_minute(self) -> scheduler.CfnSchedule:
        role = iam.Role(
            self,
            "ScheduleRole",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": self._stack.account}}
            ),
            description="Highwater: lets the schedule run the scaler",
        )
        role.add_to_policy(
            iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[self.function.function_arn])
        )
        acknowledge(role, role_rules(self._stack))
        return scheduler.CfnSchedule(
            self,
            "Tick",
            description="Highwater: runs the scaler",
            schedule_expression="rate(1 minute)",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=self.function.function_arn,
                role_arn=role.role_arn,
                input=json.dumps(_TICK),
                # the next tick does what this one missed
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=60, maximum_retry_attempts=0
                ),
            ),
        )

    def _let_alarms_start_it(self) -> None:
        lambda_.CfnPermission(
            self,
            "FromAlarms",
            action="lambda:InvokeFunction",
            function_name=self.function.function_arn,
            principal="lambda.alarms.cloudwatch.amazonaws.com",
            source_account=self._stack.account,
            source_arn=self._stack.format_arn(
                service="cloudwatch",
                resource="alarm",
                resource_name=f"{ALARM_PREFIX}*",
                arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
            ),
        )


def _findings(plan: Plan) -> list[Finding]:
    label = "the table"
    targets = plan.targets()
    if not any(target.capacity.is_autoscaled for target in targets):
        fix = "give Capacity.autoscaled(min=, max=)"
        return [_error("scalerNothingAutoscaled", label, "fixed capacity alone", "an autoscaled dimension", fix)]
    if any(target.capacity.is_deploy_time for target in targets):
        got = "bounds known only at deploy time"
        return [_error("scalerDeployTimeBounds", label, got, "numbers", "write the numbers into the plan")]
    size = len(plan.to_json().encode())
    if size > _ADVANCED_BYTES - 200:
        got, allowed = f"a plan of {size:,} bytes", f"{_ADVANCED_BYTES - 200:,}, as SSM parameters hold"
        return [_error("scalerPlanTooLong", label, got, allowed, "use fewer windows or shorter names")]
    return []


def _error(id: str, subject: str, got: str, allowed: str, fix: str) -> Finding:
    return Finding(id=f"highwater:{id}", severity=Severity.ERROR, subject=subject, got=got, allowed=allowed, fix=fix)
