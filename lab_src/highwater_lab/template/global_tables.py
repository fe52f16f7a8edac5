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
    replicas = resolver.resolve(properties.get("Replicas")) or []
    replica = replicas[0] if replicas and isinstance(replicas[0], dict) else {}
    if len(replicas) > 1:
        notes.append(
            f"{logical_id} has {len(replicas)} replicas: all traffic goes to the first, {replica.get('Region')}"
        )
    is_on_demand = resolver.resolve(properties.get("BillingMode")) == "PAY_PER_REQUEST"
    scaling: dict[Key, Scaling] = {}
    of_replica = {
        index.get("IndexName"): index
        for index in replica.get("GlobalSecondaryIndexes") or []
        if isinstance(index, dict)
    }

    def resource(index: str | None, shared: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
        told = {key: value for key, value in shared.items() if key in ("IndexName", "WarmThroughput", "BillingMode")}
        if is_on_demand:
            write, read = shared.get("WriteOnDemandThroughputSettings"), own.get("ReadOnDemandThroughputSettings")
            most = (resolver.resolve(write) or {}) | (resolver.resolve(read) or {})
            return told | ({"OnDemandThroughput": most} if most and index is None else {})
        where = logical_id if index is None else f"{logical_id} index {index}"
        throughput = {}
        for dimension, settings in (
            (Dimension.READ, own.get("ReadProvisionedThroughputSettings")),
            (Dimension.WRITE, shared.get("WriteProvisionedThroughputSettings")),
        ):
            member = f"{dimension.title()}Capacity"
            units, found = _settings(resolver, resolver.resolve(settings) or {}, member, where)
            throughput[f"{member}Units"] = units
            if found is not None:
                scaling[physical, index, dimension] = found
        return told | {"ProvisionedThroughput": throughput}

    table = resource(None, properties, replica) | {"TableClass": replica.get("TableClass")}
    indexes = resolver.resolve(properties.get("GlobalSecondaryIndexes")) or []
    table["GlobalSecondaryIndexes"] = [
        resource(index.get("IndexName"), index, of_replica.get(index.get("IndexName"), {})) for index in indexes
    ]
    return table, scaling


def _settings(resolver: Resolver, settings: dict[str, Any], member: str, where: str) -> tuple[int, Scaling | None]:
    """Units at the start, and the target where it is scaled."""
    fixed = settings.get(f"{member}Units")
    if fixed is not None:
        return resolver.units(fixed, f"{where} {member}Units") or 1, None
    scaled = settings.get(f"{member}AutoScalingSettings")
    if not isinstance(scaled, dict):
        raise resolver.error(f"{where}: is of provisioned billing and has no {member} settings")
    what = f"{where} {member}AutoScalingSettings"
    low = resolver.units(scaled.get("MinCapacity"), f"{what} MinCapacity") or 1
    high = resolver.units(scaled.get("MaxCapacity"), f"{what} MaxCapacity") or low
    notes: list[str] = []
    tracking = scaled.get("TargetTrackingScalingPolicyConfiguration") or {}
    found = Scaling(low, high, (), read_tracking(resolver, tracking, what, notes), notes)
    return max(low, resolver.units(scaled.get("SeedCapacity"), f"{what} SeedCapacity") or 0), found
