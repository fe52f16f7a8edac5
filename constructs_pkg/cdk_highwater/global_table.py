"""Capacity of a global table: auto scaling settings in the table's own template resource, without windows."""

from __future__ import annotations

from typing import Any

from cdk_highwater.subject import Subject
from highwater.core import Capacity, Dimension, Plan, Target

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
            # the table may have been declared with the other property, and CloudFormation refuses both together
            template.add_property_deletion_override(f"{path}{settings_name}.{other}")


def _paths(target: Target, index_names: tuple[str, ...], replicas: range) -> list[str]:
    path = "" if target.index is None else f"GlobalSecondaryIndexes.{index_names.index(target.index)}."
    # CloudFormation has write settings once for the global table, and read settings for each replica
    return [path] if target.dimension is Dimension.WRITE else [f"Replicas.{number}.{path}" for number in replicas]


def _settings(capacity: Capacity) -> dict[str, Any]:
    tracking: dict[str, Any] = {"TargetValue": capacity.target_utilization_percent or 70}
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
