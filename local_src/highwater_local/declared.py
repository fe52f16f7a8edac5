"""What a template declares for a table: replicas, auto scaling settings, fixed capacity, and maxima on demand.

A global table declares writes for all of its regions, and reads in each of its replicas or, for all of them, itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from highwater.core import Dimension
from highwater_local import ministack
from highwater_local.autoscaling.records import TargetKey
from highwater_local.dynamodb.resources import UNITS, indexes_of, resource_of
from highwater_local.ministack import Document

# auto scaling settings by target
Scaled = dict[TargetKey, Document]
# MiniStack's capacity of a table or index that declares none
_DEFAULT_UNITS: Final = 5


def replicas(properties: Document) -> dict[str, Document]:
    """Return the replicas of a global table, the one in the stack's own region included, by region."""
    return {replica["Region"]: replica for replica in properties.get("Replicas") or []}


def scaled(name: str, properties: Document, region: str) -> Scaled:
    """Return the auto scaling settings of a global table, writes, and of its replica in a region, reads, by target."""
    if region not in replicas(properties):
        return {}
    found = {}
    for index, dimension, declared in _settings(properties, region, "ProvisionedThroughputSettings"):
        setting = declared.get(f"{dimension.title()}CapacityAutoScalingSettings")
        if setting:
            kind, place = ("table", f"table/{name}") if index is None else ("index", f"table/{name}/index/{index}")
            found[TargetKey(place, f"dynamodb:{kind}:{dimension.title()}CapacityUnits")] = setting
    return found


def fixed(properties: Document, region: str) -> dict[str | None, dict[Dimension, int]]:
    """Return the units of a global table in a region that are fixed, by index and `None`."""
    found: dict[str | None, dict[Dimension, int]] = {}
    if properties.get("BillingMode") == "PAY_PER_REQUEST":
        return found
    for index, dimension, declared in _settings(properties, region, "ProvisionedThroughputSettings"):
        units = declared.get(UNITS[dimension])
        if units is not None:
            found.setdefault(index, {})[dimension] = int(units)
    return found


def with_capacity(properties: Document, region: str, *, is_switch: bool = False) -> Document:
    """Return a global table's properties with the capacity with which it begins, as a table declares it.

    That is the fixed capacity or auto scaling's minimum; at a switch from on-demand, its seed.
    """
    if properties.get("BillingMode") == "PAY_PER_REQUEST":
        return properties
    indexes = {index["IndexName"]: dict(index) for index in properties.get("GlobalSecondaryIndexes") or []}
    found = properties | ({"GlobalSecondaryIndexes": list(indexes.values())} if indexes else {})
    found.pop("WriteProvisionedThroughputSettings", None)
    found.pop("ReadProvisionedThroughputSettings", None)
    for index, dimension, declared in _settings(properties, region, "ProvisionedThroughputSettings"):
        setting = declared.get(f"{dimension.title()}CapacityAutoScalingSettings") or {}
        begins = (is_switch and setting.get("SeedCapacity")) or setting.get("MinCapacity")
        units = int(declared.get(UNITS[dimension]) or begins or _DEFAULT_UNITS)
        resource = found if index is None else indexes[index]
        resource["ProvisionedThroughput"] = (resource.get("ProvisionedThroughput") or {}) | {UNITS[dimension]: units}
    return found


def begin(table: Document, properties: Document, region: str) -> None:
    """Give a new replica, which is a copy of another and not measured yet, the capacity with which it begins."""
    begun = with_capacity(properties, region)
    for index in (None, *indexes_of(table)):
        declared, resource = resource_of(begun, index), resource_of(table, index)
        if resource is not None and declared is not None and declared.get("ProvisionedThroughput"):
            resource["ProvisionedThroughput"] = declared["ProvisionedThroughput"]


def maxima(kind: str, properties: Document, region: str) -> dict[str | None, Document]:
    """Return the maxima on demand that a table declares, by index and `None`; only those that it declares."""
    if kind == ministack.TABLE:
        resources = [(None, properties)]
        resources += [(index["IndexName"], index) for index in properties.get("GlobalSecondaryIndexes") or []]
        return {index: each["OnDemandThroughput"] for index, each in resources if each.get("OnDemandThroughput")}
    found: dict[str | None, Document] = {}
    for index, dimension, declared in _settings(properties, region, "OnDemandThroughputSettings"):
        member = f"Max{dimension.title()}RequestUnits"
        if declared.get(member) is not None:
            found.setdefault(index, {})[member] = declared[member]
    return found


def _settings(properties: Document, region: str, kind: str) -> Iterator[tuple[str | None, Dimension, Document]]:
    """Yield the settings of one kind that a global table declares, with index and dimension; empty if it has none."""
    replica = replicas(properties).get(region, {})
    of_replica = {index["IndexName"]: index for index in replica.get("GlobalSecondaryIndexes") or []}
    yield from _of_resource(None, properties, replica, kind)
    for index in properties.get("GlobalSecondaryIndexes") or []:
        yield from _of_resource(index["IndexName"], index, of_replica.get(index["IndexName"], {}), kind)


def _of_resource(
    index: str | None, declared: Document, replica: Document, kind: str
) -> Iterator[tuple[str | None, Dimension, Document]]:
    yield index, Dimension.WRITE, declared.get(f"Write{kind}") or {}
    yield index, Dimension.READ, replica.get(f"Read{kind}") or declared.get(f"Read{kind}") or {}
