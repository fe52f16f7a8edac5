"""The optional Lambda function that adapts capacity to demand within minutes, with its schedule and alarms."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_highwater.scaler.alarms import ScalerAlarms
from cdk_highwater.scaler.metrics import ScalerMetrics
from cdk_highwater.scaler.scaler_function import (
    ScaledTable,
    ScalerFunction,
    scaled_name_findings,
    scaler_findings,
)
from cdk_highwater.support.arguments import require, require_or_none
from cdk_highwater.support.asset import id_within, unique_name
from cdk_highwater.support.iam import scaler_alarms_arn
from cdk_highwater.support.nag import annotate, annotate_at_end
from cdk_highwater.support.quotas import count_added
from cdk_highwater.table.capacity import IndexedCapacityOptions, WindowHolder, declared_plan
from cdk_highwater.table.fitting import account_findings, fitting_findings, place_findings
from cdk_highwater.table.manage import capacity_of
from cdk_highwater.table.ownership import (
    TaggedTables,
    plan_beside_direct,
    second_scaler,
    second_tagged_scaler,
    tagged_tables_of_others,
    twice_direct,
)
from cdk_highwater.table.remarks import tell_drift
from cdk_highwater.table.subject import Subject, TableLike, refuse_other_than_tables, subject_of
from highwater.core import Capacity, HighWaterMark, IndexCapacity, Plan, Window, check
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.scaler import Mode, ScalerSettings
from highwater.core.scaler.settings import THROTTLE_PRICE_REQUESTS

# the name is part of the names of parameters and the value of a metric dimension
_LONGEST_NAME = 80


class ThrottleAwareScaler(Construct, ScalerMetrics, WindowHolder):
    """Raise floors within minutes of a surge and lower them again; correct floors changed by a deploy or by hand.

    One function serves all tables passed to `add_table`. The function runs every minute, and at once when a target's
    alarm goes off because consumption is near capacity. The function sets the floors of scalable targets; target
    tracking continues to scale above them. Give these tables a target utilization of 90 %; docs/scaler.md explains why.

    When this construct is deleted, each floor is reset to the value that its plan alone asks for.

    Args:
        scope: Parent construct.
        id: Unique within *scope*.
        topic: The SNS topic for the scaler's own alarms. By default the alarms only show in CloudWatch.
        tagged: Also manage the tables of the account that have the tag `highwater:managed`. By default, the scaler
            manages only tables passed to `add_table` and `add_direct_table`.
        dry_run: Make and log decisions without changing anything. By default false.
        reserved_concurrency: Concurrent runs that Lambda keeps free for the function, 5 to 1,000, and does not exceed.
            Give 10 to 20 if functions of the account may use up its concurrency in the surge that the scaler is to
            meet. By default none.
        throttle_price_requests: What it is worth to you that a unit is not throttled, in request units on demand, 0 to
            1,000,000. The scaler spends no more on a table than its throttles are worth, and leaves a table that jumps
            the more headroom the more they are worth. By default 100: 62.50 USD for a million write units.

    Raises:
        TypeError: If an argument is of another type than documented.
        ValueError: If *reserved_concurrency* or *throttle_price_requests* is out of range.

    Example:
        ```python
        scaler = ThrottleAwareScaler(stack, "Scaler", topic=on_call)
        scaler.add_table(orders)
        ```
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        topic: sns.ITopic | None = None,
        tagged: TaggedTables | None = None,
        dry_run: bool = False,
        reserved_concurrency: int | None = None,
        throttle_price_requests: int = THROTTLE_PRICE_REQUESTS,
    ) -> None:
        fix = "give TaggedTables(), or leave the argument out"
        require_or_none("tagged", tagged, TaggedTables, "a TaggedTables", fix)
        # a text such as "false" would count as true
        require("dry_run", dry_run, bool, "a bool", "give True or False")
        fix = "give request units on demand, such as 100"
        require("throttle_price_requests", throttle_price_requests, int, "a whole number", fix)
        self._price = ScalerSettings(throttle_price_requests=throttle_price_requests).throttle_price_requests
        super().__init__(scope, id)
        self._stack = cdk.Stack.of(self)
        self._scaler_name = unique_name(self, most_characters=_LONGEST_NAME)
        self._function = ScalerFunction(
            self,
            "Function",
            scaler_name=self._scaler_name,
            dry_run=dry_run,
            tagged=tagged,
            reserved_concurrency=reserved_concurrency,
        )
        self._tick = self._function.run_every_minute(self)
        self._let_alarms_start_it()
        self._alarms = ScalerAlarms(self, "Alarms", function=self._function, topic=topic)
        count_added(self._stack, self)
        self._managed: set[str] = set()
        self._coordinator: Construct | None = None
        self._watches_pulses = False
        if tagged is not None:
            annotate(self, second_tagged_scaler(self, tagged))
            annotate_at_end(self, self, lambda: tagged_tables_of_others(self, tagged))

    @property
    def scaler_name(self) -> str:
        """The scaler's name, unique in its account and region: in parameter names, metrics and `highwater status`."""
        return self._scaler_name

    @property
    def function(self) -> lambda_.IFunction:
        """The scaler's Lambda function."""
        return self._function.function

    @property
    def log_group(self) -> logs.ILogGroup:
        """The function's log group, with a line for each decision."""
        return self._function.log_group

    def add_table(self, table: object) -> None:
        """Manage a table and its indexes, in the dimensions with autoscaled capacity.

        A `TableV2` is managed in all regions of its replicas, and any other table in its own region. Only alarms in the
        scaler's region can start the function. In other regions, the function reads the alarms every minute. Where the
        app has no stack for alarms, the function reviews the targets every five minutes.

        Args:
            table: A `HighWaterTable`, or the result of `manage_capacity`. Do not pass a table declared with
                `windows_held_by=`: that option calls this method.

        Raises:
            TypeError: If *table* has no managed capacity.
            ValueError: If the scaler already manages the table.
        """
        capacity = capacity_of(table)
        path = capacity.node.path
        if path in self._managed:
            message = (
                f"{path}: the scaler already manages this table; call add_table once per table, and not for a table "
                "with windows_held_by="
            )
            raise ValueError(message)
        self._managed.add(path)
        subject = capacity.subject
        findings = [
            *account_findings(subject, self._stack),
            *second_scaler(self, subject),
            *scaled_name_findings(subject),
            *scaler_findings(capacity.plan),
        ]
        if annotate(capacity, findings):
            capacity.warm_to_ceiling()
            scaled = self._add_scaled_table(subject, capacity.plan, Mode.FLOOR)
            # on deletion, remove the schedule before the floors are reset, so that no run raises them afterwards
            self._tick.node.add_dependency(*scaled.serve_deploys(capacity))

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
        """Manage a table without scalable targets in DIRECT mode: the scaler sets its capacity with UpdateTable.

        The scaler skips a target for which a scalable target is registered. The scaler opens and closes windows within
        a minute. When this construct is deleted, the capacity does not change.

        Args:
            table: A provisioned `dynamodb.Table` or `CfnTable`, or a table imported by name or ARN.
            read: The table's read capacity, autoscaled. Its target utilization is ignored.
            write: The table's write capacity, autoscaled. Its target utilization is ignored.
            windows: Windows with a higher floor or ceiling. By default none.
            indexes: Capacity and windows of indexes that differ from the table's. Indexes in the template that are not
                listed follow the table. For an imported table, list every index that should be scaled.
            table_quota_units: The account's quota for a table or index, in units per second of each dimension. By
                default 40,000, the AWS default.

        Raises:
            TypeError: If *table* is not a table.
            ValueError: If a scaler or scalable targets of this app already manage the table.
        """
        refuse_other_than_tables(table)
        subject = subject_of(table)
        path = subject.construct.node.path
        if path in self._managed or subject.construct.node.try_find_child("Capacity") is not None:
            message = f"{path}: the table is already scaled; DIRECT mode is for tables that nothing else scales"
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
        declared = declared_plan(options).with_indexes(subject.index_names())
        plan = declared.managed()
        findings = [
            *fitting_findings(declared, subject, subject.index_names()),
            # the scaler's plan names the region
            *place_findings(subject, self._stack, may_be_in_any_region=True),
            *check(plan, has_actions=False),
        ]
        owners = second_scaler(self, subject) or twice_direct(self, subject)
        if annotate(self, findings) and annotate(
            self, [*owners, *scaled_name_findings(subject), *scaler_findings(plan)]
        ):
            annotate_at_end(self, self, lambda: plan_beside_direct(self, subject))
            tell_drift(self, subject)
            self._add_scaled_table(subject, plan, Mode.DIRECT)

    def share_function(self, coordinator: Construct) -> ScalerFunction:
        """Return the function for a coordinator of boosts to share; called by `BoostCoordinator`.

        Raises `ValueError` if the scaler has a coordinator already.
        """
        if self._coordinator is not None:
            message = f"{self.node.path}: has a coordinator already, {self._coordinator.node.path}; use that one"
            raise ValueError(message)
        self._coordinator = coordinator
        self._alarms.watch_boosts()
        return self._function

    def watch_pulses(self) -> None:
        """Add an alarm on pulses far above CloudWatch's counts; called by `BoostCoordinator.grant_pulse`."""
        if not self._watches_pulses:
            self._watches_pulses = True
            self._alarms.watch_pulses()

    def _add_scaled_table(self, subject: Subject, plan: Plan, mode: Mode) -> ScaledTable:
        # the id depends on the table's path only, so that adding other tables does not change it
        id = f"Table-{id_within(self._stack, subject.construct)}"
        settings = ScalerSettings(mode=mode, throttle_price_requests=self._price)
        return ScaledTable(self, id, subject=subject, plan=plan, settings=settings, function=self._function)

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
