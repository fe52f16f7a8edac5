"""The optional Lambda that makes capacity follow demand within minutes, with its role, alarms and schedule."""

from __future__ import annotations

import json
from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_highwater.annotations import annotate
from cdk_highwater.capacity_options import IndexedCapacityOptions, declared_plan
from cdk_highwater.manage_capacity import capacity_of
from cdk_highwater.permissions import scaler_alarms_arn
from cdk_highwater.rule_packs import acknowledge, role_rules
from cdk_highwater.scaled_table import LONGEST_PLAN_BYTES, ScaledTable
from cdk_highwater.scaler_alarms import ScalerAlarms
from cdk_highwater.scaler_function import ScalerFunction
from cdk_highwater.scaler_metrics import ScalerMetrics
from cdk_highwater.subject import Subject, TableLike, refuse_other_than_tables, subject_of
from cdk_highwater.table_findings import fitting_findings
from cdk_highwater.tagged_tables import TaggedTables
from highwater.core import Capacity, Finding, HighWaterMark, IndexCapacity, Plan, Window, check
from highwater.core.findings import conflict, error
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.scaler import Mode

_TICK = {"highwater": "tick", "time": "<aws.scheduler.scheduled-time>"}


class ThrottleAwareScaler(Construct, ScalerMetrics):
    """Raise floors within minutes of a surge, heal those that a deploy or a hand edit reset, let them fall again.

    One function for all tables that `add_table` is called with. It runs every minute, and at once when a target's
    alarm goes off because consumption came near to capacity. It sets scalable targets' floors; target tracking goes on
    and scales in. Give these tables a target utilization of 90 %: docs/scaler.md says why.

    Deleting it leaves each floor as its plan alone asks for.

    Args:
        scope: Parent construct.
        id: Unique within *scope*.
        topic: Where its own alarms go. By default they only show in CloudWatch.
        tagged: Also look after tables of the account that carry the tag `highwater:managed`. By default only those
            that `add_table` and `add_direct_table` name.
        dry_run: Decide and log, and change nothing. By default it changes.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        topic: sns.ITopic | None = None,
        tagged: TaggedTables | None = None,
        dry_run: bool = False,
    ) -> None:
        super().__init__(scope, id)
        self._stack = cdk.Stack.of(self)
        self._function = ScalerFunction(self, "Function", dry_run=dry_run, tagged=tagged)
        self._schedule = self._run_every_minute()
        self._let_alarms_start_it()
        self._alarms = ScalerAlarms(self, "Alarms", function=self._function, topic=topic)
        self._managed: set[str] = set()

    @property
    def function(self) -> lambda_.IFunction:
        """The function."""
        return self._function.function

    @property
    def log_group(self) -> logs.ILogGroup:
        """The log group, with a line for each decision."""
        return self._function.log_group

    def add_table(self, table: object) -> None:
        """Look after a table and its indexes: those dimensions that are autoscaled.

        A `TableV2` is looked after in each region that it has a replica in, and a table of another region where it is.
        Only alarms of the scaler's own region can start it. Elsewhere it looks every minute whether one has gone off,
        and where the app has no stack to make alarms in, it looks at the targets every five minutes.

        Args:
            table: A `HighWaterTable`, or what `manage_capacity` returned. One that was declared with
                `windows_held_by=` this scaler is looked after already.

        Raises:
            TypeError: If *table* has no managed capacity.
            ValueError: If the table is looked after already.
        """
        capacity = capacity_of(table)
        path = capacity.node.path
        if path in self._managed:
            message = (
                f"{path}: looked after already; call add_table once a table, and not for one with windows_held_by="
            )
            raise ValueError(message)
        self._managed.add(path)
        if annotate(capacity, _findings(capacity.plan)):
            scaled = self._look_after(capacity.subject, capacity.plan, Mode.FLOOR)
            # on deletion, remove the schedule before floors are put back: nothing must raise them afterwards
            self._schedule.node.add_dependency(*scaled.serve_deploys(capacity))

    def add_direct_table(
        self,
        table: TableLike,
        *,
        read: Capacity,
        write: Capacity,
        windows: Sequence[Window] = (),
        indexes: Sequence[IndexCapacity] = (),
        table_quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
    ) -> None:
        """Size a table that Application Auto Scaling does not manage, by UpdateTable alone.

        It is left alone as soon as it has a scalable target. The scaler itself opens and closes its windows, within a
        minute. Removing the construct leaves capacity as it is.

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
        options: IndexedCapacityOptions = {
            "read": read,
            "write": write,
            "windows": windows,
            "indexes": indexes,
            "high_water_mark": HighWaterMark.none(),
            "table_quota_units": table_quota_units,
        }
        plan = declared_plan(options).with_indexes(subject.index_names())
        findings = [*fitting_findings(plan, subject, subject.index_names()), *check(plan, has_actions=False)]
        if annotate(self, findings) and annotate(self, _findings(plan)):
            self._look_after(subject, plan, Mode.DIRECT)

    def _look_after(self, subject: Subject, plan: Plan, mode: Mode) -> ScaledTable:
        """Make what the function needs for the table."""
        # the table's path names it, whatever other tables there are
        path = subject.construct.node.path.removeprefix(f"{self._stack.node.path}/")
        id = f"Table-{path.replace('/', '.')}"
        return ScaledTable(self, id, subject=subject, plan=plan, mode=mode, function=self._function)

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
            source_arn=scaler_alarms_arn(self._stack),
        )


def _findings(plan: Plan) -> list[Finding]:
    targets = plan.targets()
    if not any(target.capacity.is_autoscaled for target in targets):
        problem = "its capacity is fixed, so that there is nothing for a scaler to move"
        return [conflict("scalerNothingAutoscaled", "the table", problem, "give Capacity.autoscaled(max_capacity=)")]
    if any(target.capacity.is_deploy_time for target in targets):
        problem = "its bounds are known only at deploy time, and the scaler's plan needs numbers"
        return [conflict("scalerDeployTimeBounds", "the table", problem, "write the numbers into the plan")]
    size = len(plan.to_json().encode())
    if size > LONGEST_PLAN_BYTES:
        allowed = f"{LONGEST_PLAN_BYTES:,} bytes, as an SSM parameter holds no more"
        fix = "use fewer windows or shorter names"
        return [error("scalerPlanTooLong", "the table", f"a plan of {size:,} bytes", allowed, fix)]
    return []
