"""`AWS::DynamoDB::GlobalTable`, what the CDK's TableV2 makes: told as a table with scalable targets."""

from __future__ import annotations

from typing import Any

from highwater.core import Dimension
from highwater_lab.template.intrinsics import Resolver
from highwater_lab.template.scaling import Key, Scaling, read_tracking


def as_table(
    resolver: Resolver, properties: dict[str, Any], logical_id: str, physical: str, notes: list[str]
) -> tuple[dict[str, Any], dict[Key, Scaling]]:
    """The properties that a Table of the same meaning has, and its targets; of replicas, the first."""
    replicas = resolver.mappings(properties.get("Replicas"), f"{logical_id} Replicas")
    replica = replicas[0] if replicas else {}
    if len(replicas) > 1:
        notes.append(
            f"{logical_id} has {len(replicas)} replicas: all traffic goes to the first, {replica.get('Region')}"
        )
    is_on_demand = resolver.resolve(properties.get("BillingMode")) == "PAY_PER_REQUEST"
    scaling: dict[Key, Scaling] = {}
    of_replica = {
        str(index.get("IndexName")): index
        for index in resolver.mappings(replica.get("GlobalSecondaryIndexes"), f"{logical_id} replica's indexes")
    }

    def resource(index: str | None, shared: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
        told = {key: value for key, value in shared.items() if key in ("IndexName", "WarmThroughput", "BillingMode")}
        if is_on_demand:
            write, read = shared.get("WriteOnDemandThroughputSettings"), own.get("ReadOnDemandThroughputSettings")
            most = resolver.mapping(write, f"{logical_id} WriteOnDemandThroughputSettings") | resolver.mapping(
                read, f"{logical_id} ReadOnDemandThroughputSettings"
            )
            return told | ({"OnDemandThroughput": most} if most and index is None else {})
        where = logical_id if index is None else f"{logical_id} index {index}"
        throughput = {}
        for dimension, settings in (
            (Dimension.READ, own.get("ReadProvisionedThroughputSettings")),
            (Dimension.WRITE, shared.get("WriteProvisionedThroughputSettings")),
        ):
            member = f"{dimension.title()}Capacity"
            given = resolver.mapping(settings, f"{where} {dimension} settings")
            units, found = _settings(resolver, given, member, where)
            throughput[f"{member}Units"] = units
            if found is not None:
                scaling[physical, index, dimension] = found
        return told | {"ProvisionedThroughput": throughput}

    table = resource(None, properties, replica) | {"TableClass": replica.get("TableClass")}
    indexes = resolver.mappings(properties.get("GlobalSecondaryIndexes"), f"{logical_id} indexes")
    table["GlobalSecondaryIndexes"] = [
        resource(index.get("IndexName"), index, of_replica.get(str(index.get("IndexName")), {})) for index in indexes
    ]
    return table, scaling


def _settings(resolver: Resolver, settings: dict[str, Any], member: str, where: str) -> tuple[int, Scaling | None]:
    """Units at the start, and the target where it is scaled."""
    fixed = settings.get(f"{member}Units")
    if fixed is not None:
        return resolver.units(fixed, f"{where} {member}Units") or 1, None
    what = f"{where} {member}AutoScalingSettings"
    scaled = resolver.mapping(settings.get(f"{member}AutoScalingSettings"), what)
    if not scaled:
        raise resolver.error(f"{where}: is of provisioned billing and has no {member} settings")
    low = resolver.units(scaled.get("MinCapacity"), f"{what} MinCapacity") or 1
    high = resolver.units(scaled.get("MaxCapacity"), f"{what} MaxCapacity") or low
    notes: list[str] = []
    tracking = resolver.mapping(
        scaled.get("TargetTrackingScalingPolicyConfiguration"), f"{what} TargetTrackingScalingPolicyConfiguration"
    )
    found = Scaling(low, high, (), read_tracking(resolver, tracking, what, notes), notes)
    return max(low, resolver.units(scaled.get("SeedCapacity"), f"{what} SeedCapacity") or 0), found
