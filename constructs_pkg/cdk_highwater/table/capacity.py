"""A table's capacity: how it is declared, and the resources that manage it: targets, policies, scheduled actions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Required, TypedDict

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import Construct, Node

from cdk_highwater.support.arguments import list_of, require, require_or_none
from cdk_highwater.support.nag import annotate, annotate_at_end
from cdk_highwater.support.quotas import TRACKING_ALARMS, count_added, count_alarms
from cdk_highwater.table.deployment import ANSWER_SECONDS, DeploymentFunction
from cdk_highwater.table.first_target import register_after_the_first
from cdk_highwater.table.fitting import (
    changed_replicas,
    fitting_findings,
    place_findings,
    second_targets,
    unscaled_indexes,
)
from cdk_highwater.table.ownership import PLAN, claim
from cdk_highwater.table.prewarm import MARKS, mark_charges, raise_marks
from cdk_highwater.table.remarks import charge_findings, tell_drift
from cdk_highwater.table.subject import Subject, TableLike, at_end, subject_of
from highwater.core import (
    Capacity,
    Dimension,
    Finding,
    HighWaterMark,
    IndexCapacity,
    Mark,
    Plan,
    ScheduledAction,
    Target,
    Window,
    check,
    compile_actions,
    marks_of,
)
from highwater.core.errors import did_you_mean
from highwater.core.findings import conflict
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.names import TargetName, plan_parameter
from highwater.core.plan.capacity import DEFAULT_TARGET_PERCENT
from highwater.core.schedule.bounds import highest_ceiling


class WindowHolder:
    """A construct that opens and closes windows in place of scheduled actions: a `ThrottleAwareScaler`.

    A class rather than a protocol, because a `BoostCoordinator` has the same method but opens no windows.
    """

    def add_table(self, table: object) -> None:
        """Manage the table of the `TableCapacity` *table*, including its windows."""
        raise NotImplementedError


class CapacityOptions(TypedDict, total=False):
    """Declaration of a table's capacity: keyword arguments of `HighWaterTable`. Only `read` and `write` are required.

    Attributes:
        read: The table's read capacity.
        write: The table's write capacity.
        windows: Windows with a higher floor or ceiling. By default none.
        high_water_mark: The high-water marks. By default the highest floor declared, so that no window waits for
            partitions; with a scaler the highest ceiling, so that no surge does.
        table_quota_units: The account's quota for a table or index, in units per second of each dimension. By default
            40,000, the AWS default.
        windows_held_by: A scaler that manages the table and opens and closes its windows. By default scheduled actions
            do. Only a scaler can open windows of a `TableV2`, windows that need more than 200 actions on a target, and
            overlapping windows of zones whose clocks change on different days. A scaler supports plans of up to 8 KB,
            about 55 windows.

    Example:
        ```python
        options: CapacityOptions = {
            "read": Capacity.autoscaled(min_capacity=25, max_capacity=2_000),
            "write": Capacity.autoscaled(min_capacity=40, max_capacity=12_000),
        }
        orders = HighWaterTable(stack, "Orders", partition_key=key, **options)
        ```
    """

    read: Required[Capacity]
    write: Required[Capacity]
    windows: Sequence[Window]
    high_water_mark: HighWaterMark | None
    table_quota_units: int
    windows_held_by: WindowHolder | None


class IndexedCapacityOptions(CapacityOptions, total=False):
    """Declaration for a table that exists already, with its indexes: keyword arguments of `manage_capacity`.

    Attributes:
        indexes: Capacity and windows of indexes that differ from the table's. Indexes in the template that are not
            listed follow the table. For an imported table, list every index that should be scaled.

    Example:
        ```python
        options: IndexedCapacityOptions = {
            "read": Capacity.autoscaled(max_capacity=2_000),
            "write": Capacity.autoscaled(max_capacity=12_000),
            "indexes": [IndexCapacity(index_name="by-day", write=Capacity.autoscaled(max_capacity=4_000))],
        }
        manage_capacity(orders, **options)
        ```
    """

    indexes: Sequence[IndexCapacity]


def require_holder(windows_held_by: object) -> None:
    """Raise `TypeError` if *windows_held_by* is neither a scaler nor `None`."""
    fix = "give the construct of a scaler, or leave the argument out for scheduled actions"
    require_or_none("windows_held_by", windows_held_by, WindowHolder, "a ThrottleAwareScaler", fix)


def declared_plan(options: IndexedCapacityOptions, others: Iterable[str] = ()) -> Plan:
    """Return the plan that the keyword arguments declare, without checking it.

    *others* are the names of further arguments of the caller, for the message about an unknown one.

    Raises:
        TypeError: If there is an argument of another name, *read* or *write* is missing, or an argument is of another
            type than documented.
    """
    known = IndexedCapacityOptions.__annotations__.keys()
    if unknown := [name for name in options if name not in known]:
        allowed = list(dict.fromkeys((*known, *others)))
        message = f"unknown argument {unknown[0]!r}, allowed: {', '.join(allowed)}{did_you_mean(unknown[0], allowed)}"
        raise TypeError(message)
    if missing := [name for name in ("read", "write") if name not in options]:
        message = (
            f"argument {missing[0]!r} is missing; give Capacity.autoscaled(max_capacity=) or Capacity.fixed(units=)"
        )
        raise TypeError(message)
    windows = list_of("windows", options.get("windows", ()), Window)
    indexes = list_of("indexes", options.get("indexes", ()), IndexCapacity)
    for index in indexes:
        # a text such as "no" would count as true
        require(f"is_managed of index {index.index_name!r}", index.is_managed, bool, "a bool", "give True or False")
        if index.windows is not None:
            list_of(f"windows of index {index.index_name!r}", index.windows, Window)
    mark = options.get("high_water_mark")
    require_or_none(
        "high_water_mark", mark, HighWaterMark, "a HighWaterMark", "give HighWaterMark.units(read=, write=)"
    )
    require_holder(options.get("windows_held_by"))
    return Plan(
        read=options["read"],
        write=options["write"],
        windows=windows,
        indexes=indexes,
        mark=HighWaterMark.to_windows() if mark is None else mark,
        table_quota_units=options.get("table_quota_units", DEFAULT_TABLE_QUOTA_UNITS),
    )


_SETTINGS = {
    Dimension.READ: ("ReadProvisionedThroughputSettings", "ReadCapacityAutoScalingSettings", "ReadCapacityUnits"),
    Dimension.WRITE: ("WriteProvisionedThroughputSettings", "WriteCapacityAutoScalingSettings", "WriteCapacityUnits"),
}


def scale_global_table(subject: Subject, plan: Plan) -> None:
    """Write the plan's capacities into the template of a `TableV2`: writes for all replicas, reads for each replica."""
    template = subject.template
    assert template is not None  # noqa: S101 - a global table of this app
    template.billing_mode = "PROVISIONED"
    names = subject.index_names()
    replicas = range(subject.replica_count())
    for target in plan.targets():
        settings_name, autoscaled, units = _SETTINGS[target.dimension]
        settings: dict[str, Any] = {autoscaled: _settings(target.capacity)}
        other = units
        if not target.capacity.is_autoscaled and target.dimension is Dimension.READ:
            settings, other = {units: target.capacity.min_capacity}, autoscaled
        for path in _paths(target, names, replicas):
            template.add_property_override(f"{path}{settings_name}", settings)
            # the table may have been declared with the other property, and CloudFormation rejects both together
            template.add_property_deletion_override(f"{path}{settings_name}.{other}")


def _paths(target: Target, index_names: tuple[str, ...], replicas: range) -> list[str]:
    path = "" if target.index is None else f"GlobalSecondaryIndexes.{index_names.index(target.index)}."
    # in CloudFormation, write settings are properties of the global table, and read settings of each replica
    return [path] if target.dimension is Dimension.WRITE else [f"Replicas.{number}.{path}" for number in replicas]


def _settings(capacity: Capacity) -> dict[str, Any]:
    tracking: dict[str, Any] = {"TargetValue": capacity.target_utilization_percent or DEFAULT_TARGET_PERCENT}
    if capacity.scale_in_cooldown:
        tracking["ScaleInCooldown"] = int(capacity.scale_in_cooldown.total_seconds())
    if capacity.scale_out_cooldown:
        tracking["ScaleOutCooldown"] = int(capacity.scale_out_cooldown.total_seconds())
    if capacity.disable_scale_in:
        tracking["DisableScaleIn"] = True
    return {
        "MinCapacity": capacity.min_capacity,
        "MaxCapacity": capacity.max_capacity,
        "TargetTrackingScalingPolicyConfiguration": tracking,
    }


_AS_OF_CONTEXT = "highwater:asOf"
_SET_FLOORS_CONTEXT = "highwater:setFloors"
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
        windows_held_by: The scaler that opens and closes the windows. By default scheduled actions do.
        has_default_mark: Whether nobody declared the plan's mark, so that it becomes the highest ceiling with a scaler.
            By default it stays.

    Raises:
        TypeError: If *table* is not a table, or another argument is of another type than documented.

    Example:
        ```python
        capacity = manage_capacity(
            orders, read=Capacity.fixed(units=25), write=Capacity.autoscaled(max_capacity=12_000)
        )
        print(capacity.plan.targets())
        ```
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        table: TableLike,
        plan: Plan,
        windows_held_by: WindowHolder | None = None,
        has_default_mark: bool = False,
    ) -> None:
        require("plan", plan, Plan, "a Plan", "give highwater.core.Plan(read=, write=)")
        require_holder(windows_held_by)
        super().__init__(scope, id)
        # each call to Node takes time, and is made for every table
        self._stack = cdk.Stack.of(self)
        self._subject = subject_of(table).seen_from(self._stack)
        index_names = self._subject.index_names()
        declared = plan.with_indexes(index_names)
        self._plan = declared.managed()
        self._are_windows_held = windows_held_by is not None and bool(self._plan.all_windows())
        self._as_of = _as_of(self.node)
        self._floors: cdk.CustomResource | None = None
        self._aftermath: cdk.CfnResource | None = None
        self._has_default_mark = has_default_mark
        findings = [
            *fitting_findings(declared, self._subject, index_names, are_windows_held=windows_held_by is not None),
            *place_findings(self._subject, self._stack),
            *self._owner_findings(),
            *check(self._plan, self._as_of, has_actions=windows_held_by is None),
        ]
        subject = self._subject
        if subject.template is not None:
            annotate_at_end(self, subject.construct, lambda: unscaled_indexes(subject, declared))
            if not getattr(table, "refuses_second_targets", False):
                annotate_at_end(self, subject.construct, lambda: second_targets(subject))
        if not annotate(subject.construct, findings):
            return
        annotate(self, charge_findings(self._subject, self._plan))
        tell_drift(self, self._subject)
        for region in (self._stack.region, *self._subject.replica_regions()):
            count_alarms(self, (self._stack.account, region), self._plan.targets(), of_each=TRACKING_ALARMS)
        self._actions = {target.key: self._compiled(target) for target in self._plan.targets()}
        if self._subject.is_global:
            scale_global_table(self._subject, self._plan)
            replicas = subject.replica_count()
            annotate_at_end(self, subject.construct, lambda: changed_replicas(subject, replicas))
        else:
            if (template := subject.template_in(self._stack)) is not None:
                DeploymentFunction.of(self._stack).come_before(template, self._units)
            self._aftermath = self._add_aftermath()
            targets = self._add_targets(self._aftermath)
            self._floors = self._assert_floors(targets)
            count_added(self._stack, DeploymentFunction.of(self._stack))
        count_added(self._stack, self)
        self._raise_marks()
        annotate_at_end(self, self, lambda: mark_charges(self._marks(), _MARK_REMEDY, subject))
        if windows_held_by is not None:
            windows_held_by.add_table(self)

    def warm_to_ceiling(self) -> None:
        """Raise the marks to the highest ceilings, unless somebody declared them; called by the table's scaler.

        A scaler raises capacity as far as the plan allows, and above the mark DynamoDB takes minutes (docs/worlds.md).
        """
        if self._has_default_mark:
            self._plan = replace(self._plan, mark=HighWaterMark.to_ceiling())
            self.node.try_remove_child(MARKS)
            self._raise_marks()

    def _marks(self) -> tuple[Mark, ...]:
        return marks_of(self._plan.without_past(self._as_of))

    def _raise_marks(self) -> None:
        raise_marks(self, self._stack, self._subject, self._marks(), after=self._floors)

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
        """Record in the custom resources which scaler sets the table's floors; called by the scaler with its name.

        Returns:
            The resource after which the scaler's plan must be deployed. The scaler may act on its plan at once; if the
            deploy then fails, the rollback sets the floors only if this resource was changed before. `None` for a
            global table.
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
        register_after_the_first(self, resource, self._subject.template_in(self._stack))
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
            service_timeout=cdk.Duration.seconds(ANSWER_SECONDS),
        )
        # its permissions are those of `Aftermath`, on which the targets depend
        floors.node.add_dependency(targets)
        return floors

    def _add_aftermath(self) -> cdk.CfnResource:
        """Create the custom resource that sets floors after a rollback, and reports the capacity that stays on removal.

        After an update in express mode, which is not rolled back, it sets the floors too.

        CloudFormation must update it before any target, so that it takes part in every rollback that resets a target.
        It exists for plans without windows too, because the plan to which a deploy is rolled back may have windows. A
        deletion deletes it after the targets, when no scheduled action can change capacity any more.
        """
        function = DeploymentFunction.of(self._stack)
        permissions = function.allow_floors(self._subject)
        # a plain resource takes fewer calls to Node than `cdk.CustomResource`, for each table
        aftermath = cdk.CfnResource(
            self,
            "Aftermath",
            type="Custom::HighwaterAftermath",
            properties={"ServiceToken": function.service_token, "ServiceTimeout": str(ANSWER_SECONDS)}
            | self._floors_properties(),
        )
        aftermath.node.add_dependency(*permissions)
        return aftermath

    def _floors_properties(self) -> dict[str, Any]:
        """Return the properties whose change has CloudFormation call the function, which sets the floors.

        Among them are the units in the template: where they change, CloudFormation sets live capacity to them. A new
        value of the context `highwater:setFloors` is a change, too: for bounds that were changed behind the stack's
        back, which CloudFormation does not see, or has just reverted.
        """
        asked = self.node.try_get_context(_SET_FLOORS_CONTEXT)
        again = {} if asked is None else {"SetFloors": str(asked)}
        units = {} if self._subject.template is None else {"Units": at_end(self._units)}
        return {
            "TableName": self._subject.name,
            "Plan": self.plan_text(),
            "Actions": self._actions_digest(),
            **units,
            **again,
        }

    def _units(self) -> Any:
        units = self._subject.template_units([index.index_name for index in self._plan.indexes])
        # references to what is in the template of another stack would be none in this one
        return units if self._subject.stack == self._stack else json.dumps(units)

    def _actions_digest(self) -> str:
        """Return a digest of the scheduled actions. They leave out windows that are over at the time of synth.

        CloudFormation registers a target with its base floor whenever its actions change, even if the plan is the same.
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
    """Return the minute of synth, which separates past from future one-off windows.

    The context value `highwater:asOf` replaces it, so that templates of different days can be compared.
    """
    pinned = node.try_get_context(_AS_OF_CONTEXT)
    at = datetime.fromisoformat(pinned).astimezone(UTC) if pinned else datetime.now(UTC)
    return at.replace(second=0, microsecond=0)


def _registered_ceiling(target: Target) -> int | float:
    """Return the ceiling with which CloudFormation registers a target: the highest of its base and all its windows.

    Application Auto Scaling at once moves capacity outside the bounds into them (API Reference, RegisterScalableTarget,
    read 2026-11). With the base ceiling, a deploy inside a window that raises the ceiling would lower the capacity
    until the floors' resource sets the window's bounds.
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
