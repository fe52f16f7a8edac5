"""Capacity of a table and its indexes: scalable targets, policies, scheduled actions, floors and marks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import Construct, IConstruct, Node

from cdk_highwater.annotations import annotate
from cdk_highwater.deployment_function import DeploymentFunction
from cdk_highwater.global_table import scale_global_table
from cdk_highwater.pre_warm import PreWarmStrategy, raise_marks
from cdk_highwater.subject import Subject, TableLike, refuse_other_than_tables, subject_of
from cdk_highwater.table_findings import EveryIndexIsScaled, ScalerHoldsWindows, fitting_findings
from highwater.core import (
    Capacity,
    HighWaterMark,
    IndexPlan,
    Plan,
    ScheduledAction,
    Target,
    Window,
    check,
    compile_actions,
    marks_of,
)
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS

_ID = "Capacity"
_AS_OF_CONTEXT = "highwater:asOf"
_POLICY_NAME = "target-tracking"
_MARK_REMEDY = "HighWaterMark.none() leaves marks to DynamoDB"


class ManagedCapacity(Construct):
    """The capacity of one table and its indexes, as planned; made by `HighWaterTable` and `manage_capacity`.

    Makes a scalable target for each dimension of the table and of each index, a target tracking policy where the
    capacity is autoscaled, the scheduled actions of the windows, and the resources that assert open windows' floors
    and raise the marks after a deploy. What is wrong with the plan becomes an error annotation, all of it at once.

    Args:
        scope: Parent construct.
        id: Unique within *scope*.
        table: The table, of any kind.
        plan: What is declared for it. Indexes of the template that it does not list follow the table.
        pre_warm_strategy: How marks are raised. By default WARM_THROUGHPUT.
        scaler_holds_windows: Whether a scaler holds the windows, and no scheduled action. By default not.

    Raises:
        TypeError: If *table* is no table.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        table: TableLike,
        plan: Plan,
        pre_warm_strategy: PreWarmStrategy = PreWarmStrategy.WARM_THROUGHPUT,
        scaler_holds_windows: bool = False,
    ) -> None:
        super().__init__(scope, id)
        self._scaler_holds_windows = scaler_holds_windows
        self._is_scaled = False
        self._subject = subject_of(table)
        index_names = self._subject.index_names()
        self._plan = plan.with_indexes(index_names)
        node = self.node
        self._as_of = _as_of(node)
        findings = [
            *fitting_findings(self._plan, self._subject, index_names, scaler_holds_windows=self._scaler_holds_windows),
            *check(self._plan, self._as_of, has_actions=not self._scaler_holds_windows),
        ]
        if self._subject.template is not None:
            node.add_validation(EveryIndexIsScaled(self._subject, self._plan))
        if self.scaler_holds_windows:
            node.add_validation(ScalerHoldsWindows(self._subject, self._plan, lambda: self._is_scaled))
        if not annotate(self._subject.construct, findings):
            return
        done: IConstruct | None = None
        if self._subject.is_global:
            scale_global_table(self._subject, self._plan)
        else:
            # a raise that goes back down must find the floors to stop at
            done = self._assert_floors(self._add_targets())
        marks = marks_of(self._plan.without_past(self._as_of))
        raise_marks(self, self._subject, marks, pre_warm_strategy, after=done, remedy=_MARK_REMEDY)

    @property
    def plan(self) -> Plan:
        """The plan, with every index that the template showed."""
        return self._plan

    @property
    def subject(self) -> Subject:
        """The table, as other constructs of this library need it."""
        return self._subject

    @property
    def scaler_holds_windows(self) -> bool:
        """Whether there are windows that no scheduled action holds."""
        return self._scaler_holds_windows and bool(self._plan.all_windows())

    def note_scaler(self) -> None:
        """A scaler looks after the table."""
        self._is_scaled = True

    def _add_targets(self) -> Construct:
        targets = Construct(self, "Targets")
        scopes: dict[str | None, Construct] = {None: targets}
        for target in self._plan.targets():
            if target.index not in scopes:
                scopes[target.index] = Construct(targets, f"Index-{target.index}")
            self._add_target(scopes[target.index], target)
        return targets

    def _add_target(self, scope: Construct, target: Target) -> None:
        name = target.dimension.title()
        resource = autoscaling.CfnScalableTarget(
            scope,
            f"{name}Target",
            service_namespace="dynamodb",
            resource_id=f"table/{self._subject.name}" + (f"/index/{target.index}" if target.index else ""),
            scalable_dimension=f"dynamodb:{'index' if target.index else 'table'}:{name}CapacityUnits",
            min_capacity=target.capacity.min,
            max_capacity=target.capacity.max,
            scheduled_actions=self._actions(target) or None,
        )
        if target.capacity.is_autoscaled:
            autoscaling.CfnScalingPolicy(
                scope,
                f"{name}Policy",
                policy_name=_POLICY_NAME,
                policy_type="TargetTrackingScaling",
                scaling_target_id=resource.ref,
                target_tracking_scaling_policy_configuration=_tracking(target),
            )

    def _actions(self, target: Target) -> list[autoscaling.CfnScalableTarget.ScheduledActionProperty]:
        if self._scaler_holds_windows:
            return []
        return [_scheduled(action) for action in compile_actions(target, self._as_of)]

    def _assert_floors(self, targets: Construct) -> cdk.CfnResource:
        """After every change of the plan, floors of open windows: CloudFormation would leave the base ones.

        Also sees that capacity follows: of targets that are registered at once, some may be left behind.
        """
        function = DeploymentFunction.of(self._subject.stack)
        function.allow_floors(self._subject)
        floors = cdk.CfnResource(
            self,
            "Floors",
            type="Custom::HighwaterFloors",
            properties={
                "ServiceToken": function.service_token,
                "TableName": self._subject.name,
                "Plan": self.plan_text(),
            },
        )
        floors.node.add_dependency(targets, *function.permissions)
        return floors

    def plan_text(self) -> str:
        """The plan as JSON, with what only CloudFormation knows filled in by it."""
        if any(target.capacity.is_deploy_time for target in self._plan.targets()):
            return self._subject.stack.to_json_string(self._plan.to_document())
        return self._plan.to_json()


def manage_capacity(
    table: TableLike,
    *,
    read: Capacity,
    write: Capacity,
    windows: Sequence[Window] = (),
    indexes: Sequence[IndexPlan] = (),
    high_water_mark: HighWaterMark | None = None,
    table_quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
    pre_warm_strategy: PreWarmStrategy = PreWarmStrategy.WARM_THROUGHPUT,
    scaler_holds_windows: bool = False,
    scope: Construct | None = None,
) -> ManagedCapacity:
    """Manage the capacity of a table that exists already, in this app or elsewhere.

    Args:
        table: `dynamodb.Table`, `TableV2`, `CfnTable`, or one imported by name or ARN.
        read: The table's read capacity.
        write: The table's write capacity.
        windows: Windows of higher capacity. By default none.
        indexes: What indexes have of their own. Those in the template that are not listed follow the table; of an
            imported table, list every index that shall be scaled.
        high_water_mark: By default the highest floor declared.
        table_quota_units: The account's quota for a table or index. By default 40,000, AWS's own.
        pre_warm_strategy: How marks are raised. By default WARM_THROUGHPUT.
        scaler_holds_windows: Have the `ThrottleAwareScaler` that looks after the table hold the windows, and no
            scheduled action: for a `TableV2`, more than 200 actions, or windows of zones with different clock rules.
            By default not.
        scope: Where to put the constructs. By default below the table.

    Raises:
        TypeError: If *table* is no table, or *windows* no list.
        ValueError: If the capacity of *table* is managed already.
    """
    if isinstance(windows, Window):
        message = f"windows must be a list of Window, got one Window, {windows.name!r}; put it in brackets"
        raise TypeError(message)
    plan = Plan(
        read=read,
        write=write,
        windows=tuple(windows),
        indexes=tuple(indexes),
        mark=high_water_mark or HighWaterMark.to_windows(),
        table_quota_units=table_quota_units,
    )
    refuse_other_than_tables(table)
    parent = scope if scope is not None else _as_scope(table)
    if parent.node.try_find_child(_ID) is not None:
        message = (
            f"{parent.node.path}: capacity is managed already; give everything in one call, and to a HighWaterTable in "
            "its constructor"
        )
        raise ValueError(message)
    return ManagedCapacity(
        parent,
        _ID,
        table=table,
        plan=plan,
        pre_warm_strategy=pre_warm_strategy,
        scaler_holds_windows=scaler_holds_windows,
    )


def capacity_of(table: object) -> ManagedCapacity:
    """The managed capacity of a `HighWaterTable`, or what `manage_capacity` returned; raises `TypeError` for others."""
    capacity = getattr(table, "capacity", table)
    if not isinstance(capacity, ManagedCapacity):
        message = f"table must be a HighWaterTable or what manage_capacity returned, got {type(table).__name__}"
        raise TypeError(message)
    return capacity


def _as_of(node: Node) -> datetime:
    """The minute of synth, before which one-off windows are over; context can pin it, for templates that compare."""
    pinned = node.try_get_context(_AS_OF_CONTEXT)
    at = datetime.fromisoformat(pinned).astimezone(UTC) if pinned else datetime.now(UTC)
    return at.replace(second=0, microsecond=0)


def _as_scope(table: TableLike) -> Construct:
    return table  # type: ignore[return-value] # every table of the CDK is a Construct


def _scheduled(action: ScheduledAction) -> autoscaling.CfnScalableTarget.ScheduledActionProperty:
    return autoscaling.CfnScalableTarget.ScheduledActionProperty(
        scheduled_action_name=action.name,
        schedule=action.schedule,
        timezone=action.timezone,
        start_time=action.start,
        end_time=action.end,
        scalable_target_action=autoscaling.CfnScalableTarget.ScalableTargetActionProperty(
            min_capacity=action.bounds.min, max_capacity=action.bounds.max
        ),
    )


def _tracking(target: Target) -> autoscaling.CfnScalingPolicy.TargetTrackingScalingPolicyConfigurationProperty:
    capacity = target.capacity
    metric = f"DynamoDB{target.dimension.title()}CapacityUtilization"
    assert capacity.target_utilization_percent is not None  # noqa: S101 - autoscaled
    cooldowns: dict[str, Any] = {}
    if capacity.scale_in_cooldown:
        cooldowns["scale_in_cooldown"] = int(capacity.scale_in_cooldown.total_seconds())
    if capacity.scale_out_cooldown:
        cooldowns["scale_out_cooldown"] = int(capacity.scale_out_cooldown.total_seconds())
    return autoscaling.CfnScalingPolicy.TargetTrackingScalingPolicyConfigurationProperty(
        target_value=capacity.target_utilization_percent,
        predefined_metric_specification=autoscaling.CfnScalingPolicy.PredefinedMetricSpecificationProperty(
            predefined_metric_type=metric
        ),
        disable_scale_in=True if capacity.disable_scale_in else None,
        **cooldowns,
    )
