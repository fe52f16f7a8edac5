"""The resources that manage a table's capacity: scalable targets, policies, scheduled actions and custom resources."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import Construct, Node

from cdk_highwater.alarm_room import TRACKING_ALARMS, count_alarms
from cdk_highwater.annotations import annotate
from cdk_highwater.argument_types import require
from cdk_highwater.capacity_options import WindowHolder, require_holder
from cdk_highwater.deployment_function import DeploymentFunction
from cdk_highwater.global_table import scale_global_table
from cdk_highwater.owners import PLAN, claim
from cdk_highwater.pre_warm import PreWarmStrategy, raise_marks, require_strategy
from cdk_highwater.subject import Subject, TableLike, subject_of
from cdk_highwater.table_findings import (
    EveryIndexIsScaled,
    EveryReplicaIsScaled,
    NothingElseScales,
    fitting_findings,
    place_findings,
)
from highwater.core import Finding, Plan, ScheduledAction, Target, check, compile_actions, marks_of
from highwater.core.findings import conflict
from highwater.core.names import TargetName, plan_parameter
from highwater.core.schedule.bounds import highest_ceiling

_AS_OF_CONTEXT = "highwater:asOf"
_POLICY_NAME = "target-tracking"
_MARK_REMEDY = "HighWaterMark.none() does not raise marks"


class TableCapacity(Construct):
    """The managed capacity of one table and its indexes; created by `HighWaterTable` and `manage_capacity`.

    Creates a scalable target for each dimension of the table and of each index, a target tracking policy for autoscaled
    capacity, the scheduled actions of the windows, and the custom resources that set floors of open windows and raise
    marks after a deploy. All errors of the plan are reported together as annotations.

    Args:
        scope: Parent construct.
        id: Unique within *scope*.
        table: The table, of any kind.
        plan: The plan for the table. Indexes in the template that the plan does not list follow the table.
        pre_warm_strategy: How marks are raised. By default WARM_THROUGHPUT.
        windows_held_by: The scaler that opens and closes the windows. By default scheduled actions do.

    Raises:
        TypeError: If *table* is not a table, or another argument is of another type than documented.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        table: TableLike,
        plan: Plan,
        pre_warm_strategy: PreWarmStrategy = PreWarmStrategy.WARM_THROUGHPUT,
        windows_held_by: WindowHolder | None = None,
    ) -> None:
        require("plan", plan, Plan, "a Plan", "give highwater.core.Plan(read=, write=)")
        require_strategy(pre_warm_strategy)
        require_holder(windows_held_by)
        super().__init__(scope, id)
        # each question to Node takes time, for every table
        self._stack = cdk.Stack.of(self)
        self._subject = subject_of(table).seen_from(self._stack)
        index_names = self._subject.index_names()
        self._plan = plan.with_indexes(index_names)
        self._are_windows_held = windows_held_by is not None and bool(self._plan.all_windows())
        self._as_of = _as_of(self.node)
        self._floors: cdk.CustomResource | None = None
        self._aftermath: cdk.CfnResource | None = None
        findings = [
            *fitting_findings(self._plan, self._subject, index_names, are_windows_held=windows_held_by is not None),
            *place_findings(self._subject, self._stack),
            *self._owner_findings(),
            *check(self._plan, self._as_of, has_actions=windows_held_by is None),
        ]
        if self._subject.template is not None:
            self.node.add_validation(EveryIndexIsScaled(self._subject, self._plan))
            if not getattr(table, "refuses_second_targets", False):
                self.node.add_validation(NothingElseScales(self._subject))
        if not annotate(self._subject.construct, findings):
            return
        for region in (self._stack.region, *self._subject.replica_regions()):
            count_alarms(self, (self._stack.account, region), self._plan.targets(), of_each=TRACKING_ALARMS)
        self._actions = {target.key: self._compiled(target) for target in self._plan.targets()}
        if self._subject.is_global:
            scale_global_table(self._subject, self._plan)
            self.node.add_validation(EveryReplicaIsScaled(self._subject))
        else:
            # floors before marks: when a raise restores the capacity, it must not go below the new floors
            self._aftermath = self._add_aftermath()
            targets = self._add_targets(self._aftermath)
            self._floors = self._assert_floors(targets)
        marks = marks_of(self._plan.without_past(self._as_of))
        raise_marks(self, self._stack, self._subject, marks, pre_warm_strategy, after=self._floors, remedy=_MARK_REMEDY)
        if windows_held_by is not None:
            windows_held_by.add_table(self)

    @property
    def plan(self) -> Plan:
        """The plan, including the indexes of the template at the time of construction."""
        return self._plan

    @property
    def subject(self) -> Subject:
        """The table, for other constructs of this library."""
        return self._subject

    @property
    def are_windows_held(self) -> bool:
        """Whether the plan has windows and a scaler, not scheduled actions, opens and closes them."""
        return self._are_windows_held

    def hand_over_to(self, scaler: str) -> cdk.CfnResource | None:
        """Have deploys note which scaler sets the table's floors; called by the scaler with its name.

        Returns:
            What the scaler's plan must be deployed after: the scaler may act on it at once, and if the deploy fails
            later, the rollback sets the floors only if it has something to take back there. `None` for a global table.
        """
        if self._floors is None or self._aftermath is None:
            return None
        permissions = DeploymentFunction.of(self._stack).allow_handing_over(scaler)
        template = self._floors.node.default_child
        assert isinstance(template, cdk.CfnResource)  # noqa: S101 - the default child of a custom resource
        for resource in (template, self._aftermath):
            resource.add_property_override("ScalerPlan", plan_parameter(scaler, self._subject.name))
        self._aftermath.node.add_dependency(permissions)
        return self._aftermath

    def _owner_findings(self) -> list[Finding]:
        other = claim(PLAN, self, self._subject)
        if other is None:
            return []
        problem = f"{other} manages the capacity of the same table, and AWS allows one scalable target per dimension"
        return [conflict("secondPlan", "the table", problem, "remove one of the two calls of manage_capacity")]

    def _add_targets(self, aftermath: cdk.CfnResource) -> Construct:
        targets = Construct(self, "Targets")
        scopes: dict[str | None, Construct] = {None: targets}
        for target in self._plan.targets():
            if target.index not in scopes:
                scopes[target.index] = Construct(targets, f"Index-{target.index}")
            self._add_target(scopes[target.index], target)
        targets.node.add_dependency(aftermath)
        return targets

    def _add_target(self, scope: Construct, target: Target) -> None:
        name = TargetName(self._subject.name, *target.key)
        kind = target.dimension.title()
        resource = autoscaling.CfnScalableTarget(
            scope,
            f"{kind}Target",
            service_namespace="dynamodb",
            resource_id=name.resource_id,
            scalable_dimension=name.scalable_dimension,
            min_capacity=target.capacity.min_capacity,
            max_capacity=_registered_ceiling(target),
            scheduled_actions=[_scheduled(action) for action in self._actions[target.key]] or None,
        )
        if target.capacity.is_autoscaled:
            autoscaling.CfnScalingPolicy(
                scope,
                f"{kind}Policy",
                policy_name=_POLICY_NAME,
                policy_type="TargetTrackingScaling",
                scaling_target_id=resource.ref,
                target_tracking_scaling_policy_configuration=_tracking(target),
            )

    def _compiled(self, target: Target) -> tuple[ScheduledAction, ...]:
        # CloudFormation creates the targets of a global table, without actions
        is_scheduled = not self._are_windows_held and not self._subject.is_global
        return tuple(compile_actions(target, self._as_of)) if is_scheduled else ()

    def _assert_floors(self, targets: Construct) -> cdk.CustomResource:
        """Create the custom resource that sets floors of open windows after each change of the plan.

        CloudFormation registers targets with their base floors. The function also waits until the capacity has reached
        the floors, because Application Auto Scaling may miss some of several targets registered at once.
        """
        function = DeploymentFunction.of(self._stack)
        floors = cdk.CustomResource(
            self,
            "Floors",
            resource_type="Custom::HighwaterFloors",
            service_token=function.service_token,
            properties=self._floors_properties(),
        )
        # its permissions are those of `Aftermath`, on which the targets depend
        floors.node.add_dependency(targets)
        return floors

    def _add_aftermath(self) -> cdk.CfnResource:
        """Create the custom resource that sets floors after a rollback, and lowers capacity after the targets are gone.

        CloudFormation must update it before any target, so that it takes part in every rollback that resets one. It is
        there without windows too: the plan to which a deploy is rolled back may have some. In a deletion it comes after
        the targets, when no scheduled action can raise capacity any more.
        """
        function = DeploymentFunction.of(self._stack)
        permissions = function.allow_floors(self._subject, has_notes=True)
        # a plain resource takes fewer calls to Node than `cdk.CustomResource`, for each table
        aftermath = cdk.CfnResource(
            self,
            "Aftermath",
            type="Custom::HighwaterAftermath",
            properties={"ServiceToken": function.service_token} | self._floors_properties(),
        )
        aftermath.node.add_dependency(*permissions)
        return aftermath

    def _floors_properties(self) -> dict[str, str]:
        return {"TableName": self._subject.name, "Plan": self.plan_text(), "Actions": self._actions_digest()}

    def _actions_digest(self) -> str:
        """A digest of the scheduled actions, which leave out windows that are over at the time of synth.

        CloudFormation registers a target with its base floor whenever its actions change, also where the plan does not.
        The floors must then be set again.
        """
        actions = [(target.label, action) for target in self._plan.targets() for action in self._actions[target.key]]
        return hashlib.sha256(repr(actions).encode()).hexdigest()[:16]

    def plan_text(self) -> str:
        """Return the plan as JSON. CloudFormation fills in the values that are known only at deploy time."""
        if any(target.capacity.is_deploy_time for target in self._plan.targets()):
            return self._subject.stack.to_json_string(self._plan.to_document())
        return self._plan.to_json()


def _as_of(node: Node) -> datetime:
    """The minute of synth, which separates past from future one-off windows.

    The context value `highwater:asOf` replaces it, so that templates of different days can be compared.
    """
    pinned = node.try_get_context(_AS_OF_CONTEXT)
    at = datetime.fromisoformat(pinned).astimezone(UTC) if pinned else datetime.now(UTC)
    return at.replace(second=0, microsecond=0)


def _registered_ceiling(target: Target) -> int | float:
    """The ceiling with which CloudFormation registers a target: the highest of its base and all its windows.

    Application Auto Scaling at once moves capacity outside the bounds into them (API Reference, RegisterScalableTarget,
    read 2026-11). With the base ceiling, each deploy inside a window that raises it would lower the capacity for the
    time until the floors' resource sets the bounds that apply then.
    """
    return highest_ceiling(target) if target.windows else target.capacity.max_capacity


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
