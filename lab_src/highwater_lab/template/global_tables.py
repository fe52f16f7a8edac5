"""Converts `AWS::DynamoDB::GlobalTable` (from the CDK's TableV2) to the properties of a table and its targets."""

from __future__ import annotations

from typing import Any

from highwater.core import Dimension
from highwater_lab.simulation.setup import ReplicaSetup
from highwater_lab.template.intrinsics import Resolver
from highwater_lab.template.scaling import Key, Scaling, read_tracking


def as_table(
    resolver: Resolver, properties: dict[str, Any], logical_id: str, physical: str, notes: list[str]
) -> tuple[dict[str, Any], dict[Key, Scaling]]:
    """Return the properties of an equivalent `AWS::DynamoDB::Table`, and its scalable targets.

    The replica is that of the stack's own region, as CloudFormation demands one there; the first where the template
    does not say which region that is.
    """
    replica, others = _own_and_others(resolver, properties, logical_id)
    if others:
        names = ", ".join(str(other.get("Region")) for other in others)
        notes.append(
            f"{logical_id} has {1 + len(others)} replicas: {replica.get('Region')} is rehearsed, and all are paid for; "
            f"{names} with the same writes, and with reads at their floors, as their own reads are not known"
        )
    is_on_demand = resolver.resolve(properties.get("BillingMode")) == "PAY_PER_REQUEST"
    scaling: dict[Key, Scaling] = {}
    replica_indexes = {
        str(index.get("IndexName")): index
        for index in resolver.mappings(replica.get("GlobalSecondaryIndexes"), f"{logical_id} replica's indexes")
    }

    def resource(index: str | None, shared: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
        copied = {key: value for key, value in shared.items() if key in ("IndexName", "WarmThroughput", "BillingMode")}
        if is_on_demand:
            write, read = (
                shared.get("WriteOnDemandThroughputSettings"),
                _own(own, shared, "ReadOnDemandThroughputSettings"),
            )
            maximums = resolver.mapping(write, f"{logical_id} WriteOnDemandThroughputSettings") | resolver.mapping(
                read, f"{logical_id} ReadOnDemandThroughputSettings"
            )
            return copied | ({"OnDemandThroughput": maximums} if maximums and index is None else {})
        where = logical_id if index is None else f"{logical_id} index {index}"
        throughput = {}
        for dimension, settings in (
            (Dimension.READ, _own(own, shared, "ReadProvisionedThroughputSettings")),
            (Dimension.WRITE, shared.get("WriteProvisionedThroughputSettings")),
        ):
            member = f"{dimension.title()}Capacity"
            resolved = resolver.mapping(settings, f"{where} {dimension} settings")
            units, target = _read_settings(resolver, resolved, member, where)
            throughput[f"{member}Units"] = units
            if target is not None:
                scaling[physical, index, dimension] = target
        return copied | {"ProvisionedThroughput": throughput}

    table = resource(None, properties, replica) | {"TableClass": replica.get("TableClass")}
    indexes = resolver.mappings(properties.get("GlobalSecondaryIndexes"), f"{logical_id} indexes")
    table["GlobalSecondaryIndexes"] = [
        resource(index.get("IndexName"), index, replica_indexes.get(str(index.get("IndexName")), {}))
        for index in indexes
    ]
    return table, scaling


def _own(replica: dict[str, Any], shared: dict[str, Any], member: str) -> Any:
    """Return a replica's own setting, or the one that the table has for all replicas."""
    return replica.get(member) or shared.get(member)


def other_replicas(resolver: Resolver, properties: dict[str, Any], logical_id: str) -> tuple[ReplicaSetup, ...]:
    """Return the replicas in other regions than the stack's; raises `TemplateError` if one cannot be read."""
    is_on_demand = resolver.resolve(properties.get("BillingMode")) == "PAY_PER_REQUEST"
    replicas = []
    for other in _own_and_others(resolver, properties, logical_id)[1]:
        region = resolver.text(other.get("Region"), f"{logical_id} replica's Region")
        indexes = resolver.mappings(other.get("GlobalSecondaryIndexes"), f"{logical_id} {region} indexes")
        shared = {
            str(index.get("IndexName")): index
            for index in resolver.mappings(properties.get("GlobalSecondaryIndexes"), f"{logical_id} indexes")
        }
        reads = 0
        for number, own in enumerate([] if is_on_demand else [other, *indexes]):
            where = f"{logical_id} {region}" if number == 0 else f"{logical_id} {region} index {own.get('IndexName')}"
            whole = properties if number == 0 else shared.get(str(own.get("IndexName")), {})
            settings = resolver.mapping(_own(own, whole, "ReadProvisionedThroughputSettings"), f"{where} read settings")
            units, target = _read_settings(resolver, settings, "ReadCapacity", where)
            reads += units if target is None else target.min
        is_infrequent_access = resolver.resolve(other.get("TableClass")) == "STANDARD_INFREQUENT_ACCESS"
        replicas.append(ReplicaSetup(region=region, read_units=reads, is_infrequent_access=is_infrequent_access))
    return tuple(replicas)


def own_region(resolver: Resolver, properties: dict[str, Any], logical_id: str) -> str:
    """Return the region of the replica that is rehearsed; raises `TemplateError` if the replicas cannot be read."""
    return str(_own_and_others(resolver, properties, logical_id)[0].get("Region", "${AWS::Region}"))


def _own_and_others(
    resolver: Resolver, properties: dict[str, Any], logical_id: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    replicas = resolver.mappings(properties.get("Replicas"), f"{logical_id} Replicas")
    region = resolver.resolve({"Ref": "AWS::Region"})
    own = next((replica for replica in replicas if replica.get("Region") == region), replicas[0] if replicas else {})
    return own, [replica for replica in replicas if replica is not own]


def _read_settings(resolver: Resolver, settings: dict[str, Any], member: str, where: str) -> tuple[int, Scaling | None]:
    """Return the units at the start, and the scalable target, `None` if the capacity is fixed."""
    fixed = settings.get(f"{member}Units")
    if fixed is not None:
        return resolver.units(fixed, f"{where} {member}Units") or 1, None
    path = f"{where} {member}AutoScalingSettings"
    autoscaling = resolver.mapping(settings.get(f"{member}AutoScalingSettings"), path)
    if not autoscaling:
        raise resolver.error(
            f"{where}: has provisioned billing but no {member} settings; add them, or set BillingMode to "
            "PAY_PER_REQUEST"
        )
    low = resolver.units(autoscaling.get("MinCapacity"), f"{path} MinCapacity") or 1
    high = resolver.units(autoscaling.get("MaxCapacity"), f"{path} MaxCapacity") or low
    notes: list[str] = []
    tracking = resolver.mapping(
        autoscaling.get("TargetTrackingScalingPolicyConfiguration"), f"{path} TargetTrackingScalingPolicyConfiguration"
    )
    target = Scaling(low, high, (), read_tracking(resolver, tracking, path, notes), notes)
    return max(low, resolver.units(autoscaling.get("SeedCapacity"), f"{path} SeedCapacity") or 0), target
