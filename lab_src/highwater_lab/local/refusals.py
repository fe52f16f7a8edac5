"""What DynamoDB refuses of capacity and warm throughput, and in which words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from highwater.core.budget import DecreaseBudget
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater_lab.local import ministack
from highwater_lab.local.autoscaling.records import ServiceError
from highwater_lab.local.capacity.call import meters_of
from highwater_lab.local.resources import UNITS, Document, is_on_demand, pair_of, resource_of, state_of

WARM = {"read": "ReadUnitsPerSecond", "write": "WriteUnitsPerSecond"}
Change = tuple[str | None, Document, Document | None, Document | None]


def changes_of(table: Document, request: Document) -> Iterator[Change]:
    """Each resource that an UpdateTable changes: index or `None`, its record, wanted capacity, wanted warmth."""
    if "ProvisionedThroughput" in request or "WarmThroughput" in request:
        yield None, table, request.get("ProvisionedThroughput"), request.get("WarmThroughput")
    for update in request.get("GlobalSecondaryIndexUpdates") or []:
        change = update.get("Update")
        resource = resource_of(table, change["IndexName"]) if change else None
        if change and resource is not None:
            yield change["IndexName"], resource, change.get("ProvisionedThroughput"), change.get("WarmThroughput")


def refusal_of(table: Document, request: Document, now: datetime, *, may_wait: bool) -> ServiceError | None:
    """Why an UpdateTable is refused whole, `None` where it is not; one that *may_wait* is not for what is under way."""
    second = int(now.timestamp())
    if not may_wait and (in_use := _in_use(table, request, second)) is not None:
        return in_use
    for index, resource, wanted, warm in changes_of(table, request):
        refusal: ServiceError | None
        becomes_provisioned = request.get("BillingMode") == "PROVISIONED"
        if wanted is not None and (becomes_provisioned or not is_on_demand(table)):
            refusal = _capacity_refusal(table, index, now, pair_of(resource["ProvisionedThroughput"]), wanted)
            if refusal is not None:
                return refusal
        if warm is not None and (refusal := _warm_refusal(table, index, warm, now)) is not None:
            return refusal
    return None


def deletion_refusal(table: Document, second: int) -> ServiceError | None:
    """Why a table cannot be deleted now, `None` where it can be."""
    indexes = [index["IndexName"] for index in table.get("GlobalSecondaryIndexes") or []]
    meters = meters_of(table)
    for index in (None, *indexes):
        state = state_of(table, index)
        state.warm_at(second)
        if state.is_warming or meters.is_changing(index, second):
            return _busy(table, index)
    return None


def _in_use(table: Document, request: Document, second: int) -> ServiceError | None:
    """A resource whose capacity is being changed takes no other change; one that is being warmed up does."""
    meters = meters_of(table)
    if request.get("BillingMode") is not None and (request["BillingMode"] == "PAY_PER_REQUEST") is not is_on_demand(
        table
    ):
        return deletion_refusal(table, second)
    for index, _, _, _ in changes_of(table, request):
        if meters.is_changing(index, second):
            return _busy(table, index)
    return None


def _busy(table: Document, index: str | None) -> ServiceError:
    # measured for tables; how an index is named is not known
    subject = "Table IOPS are" if index is None else "Index IOPS are"
    where = f"Table: {table['TableName']}" + ("" if index is None else f" Index: {index}")
    return ServiceError(
        "ResourceInUseException",
        f"Attempt to change a resource which is still in use: {subject} currently being updated. {where}",
    )


def _capacity_refusal(
    table: Document, index: str | None, now: datetime, old: Document, wanted: Document
) -> ServiceError | None:
    new = pair_of(wanted)
    refusal = above_quota(new, "table" if index is None else "index")
    if refusal is not None:
        return refusal
    if index is not None and min(new.values()) < 1:
        return ServiceError(
            "ValidationException",
            "One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must be greater "
            f"than zero for index {index}",
        )
    if new == old:
        kind, name = ("table", table["TableName"]) if index is None else ("index", index)
        figures = " ".join(
            f"Current {member} provisioned for the {kind}: {old[member]}. Requested {member}: {new[member]}."
            for member in UNITS.values()
        )
        return ServiceError(
            "ValidationException",
            f"The provisioned throughput for the {kind} {'' if index is None else name + ' '}will not change. The "
            f"requested value equals the current value. {figures} Refer to the Amazon DynamoDB Developer Guide for "
            "current limits and how to request higher limits.",
        )
    budget = state_of(table, index).budget
    if any(new[member] < old[member] for member in UNITS.values()) and not budget.allows(now):
        return ServiceError("LimitExceededException", _budget_text(budget, now))
    return None


def _warm_refusal(table: Document, index: str | None, warm: Document, now: datetime) -> ServiceError | None:
    live = state_of(table, index).warm_at(int(now.timestamp()))
    for dimension, member in WARM.items():
        units = int(warm.get(member, live[dimension]))
        kind = "table" if index is None else "index"
        if units < live[dimension]:
            return ServiceError(
                "ValidationException",
                f"Requested {member} for WarmThroughput for {kind} is lower than current WarmThroughput, "
                "decreasing WarmThroughput is not supported",
            )
        if units > DEFAULT_TABLE_QUOTA_UNITS:
            return ServiceError(
                "LimitExceededException",
                f"Requested {member} for WarmThroughput exceeds TableMax{dimension.title()}CapacityUnits",
            )
    return None


def above_quota(units: Document, kind: str) -> ServiceError | None:
    """The refusal of units above what the account may have for a table or index, `None` where there is none."""
    for member in UNITS.values():
        if units[member] > DEFAULT_TABLE_QUOTA_UNITS:
            return ServiceError(
                "LimitExceededException",
                f"The requested {member}, {units[member]}, is above the per {kind} maximum for the account in "
                f"{ministack.get_region()}. Per {kind} maximum: {DEFAULT_TABLE_QUOTA_UNITS}.",
            )
    return None


def _budget_text(budget: DecreaseBudget, now: datetime) -> str:
    assert budget.last is not None  # noqa: S101 - a budget that refuses was used
    return (
        "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given UTC day. After the "
        "first 4 decreases, each subsequent decrease in the same UTC day can be performed at most once every 3600 "
        f"seconds. Number of decreases today: {budget.used_on(now)}. Last decrease at {_long(budget.last)}. Next "
        f"decrease can be made at {_long(budget.next_allowed(now))}."
    )


def _long(at: datetime) -> str:
    at = at.astimezone(UTC)
    if at.microsecond:  # the next second: the one shown must be allowed
        at = at.replace(microsecond=0) + timedelta(seconds=1)
    return f"{at:%A, %B} {at.day}, {at:%Y} at {at.hour % 12 or 12}:{at:%M:%S %p} Coordinated Universal Time"
