"""What DynamoDB refuses of capacity and warm throughput, and in which words.

Source of the words for what is still in use, two spaces included: what DynamoDB answered to users of Terraform (its
issues 9559 and 13243) and to probes of AWS's controllers for Kubernetes (their catalogue DDB-TABLE-444, 2026-10).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from highwater.core import Dimension
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater_lab.services.update_table import CapacityControl, Refused
from highwater_local import ministack
from highwater_local.autoscaling.records import ServiceError
from highwater_local.capacity.call import meters_of
from highwater_local.resources import UNITS, WARM, Document, changes_of, indexes_of, is_on_demand, units_of


def refusal_of(table: Document, request: Document, second: int, *, may_wait: bool) -> ServiceError | None:
    """Why an UpdateTable is refused whole, `None` where it is not; one that *may_wait* is not for what is under way."""
    building = meters_of(table).building(second)
    updates = request.get("GlobalSecondaryIndexUpdates") or []
    if sum("Create" in update or "Delete" in update for update in updates) > 1:
        return _one_index_at_a_time()
    if building is not None and (refused := _building_refusal(table, request, building)) is not None:
        return refused
    if not may_wait and (in_use := _change_refusal(table, request, second)) is not None:
        return in_use
    has_capacity = request.get("BillingMode") == "PROVISIONED" or not is_on_demand(table)
    for index, wanted, warm in changes_of(table, request):
        control = meters_of(table).control(index, second)
        refusal: ServiceError | None
        if wanted is not None and has_capacity:
            refusal = _capacity_refusal(table, index, control, units_of(wanted), second)
            if refusal is not None:
                return refusal
        if warm is not None and (refusal := _warm_refusal(control.mark, index, warm)) is not None:
            return refusal
    return None


def deletion_refusal(table: Document, second: int) -> ServiceError | None:
    """Why a table cannot be deleted now, `None` where it can be."""
    busy = list(_busy_resources(table, second))
    if not busy:
        return None
    if busy[0] is None:
        return _in_use(f"Table: {table['TableName']} is in the process of being updated.")
    return _in_use("Cannot delete table while indexes are being created, updated, or deleted.")


def _busy_resources(table: Document, second: int) -> Iterator[str | None]:
    """The table (`None`) and those of its indexes that are being built, changed or warmed up, the table first."""
    meters = meters_of(table)
    for index in (None, *indexes_of(table)):
        is_built = index is None or index != meters.building(second)
        if not is_built or meters.is_changing(index, second) or meters.control(index, second).is_warming(second):
            yield index


def _building_refusal(table: Document, request: Document, building: str) -> ServiceError | None:
    """While an index is built, no capacity changes and no other index is added; that index may be deleted."""
    updates = request.get("GlobalSecondaryIndexUpdates") or []
    if any("Create" in update for update in updates):
        return _one_index_at_a_time()
    changed = [index for index, _, _ in changes_of(table, request)]
    if not changed:
        return None
    return _blocked_by_index(table, building) if None in changed else _busy_index(table, building, "created")


def _one_index_at_a_time() -> ServiceError:
    return ServiceError(
        "LimitExceededException",
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
    )


def _change_refusal(table: Document, request: Document, second: int) -> ServiceError | None:
    """A resource whose capacity is being changed takes no other change; one that is being warmed up does."""
    meters = meters_of(table)
    if request.get("BillingMode") is not None and (request["BillingMode"] == "PAY_PER_REQUEST") is not is_on_demand(
        table
    ):
        building = meters.building(second)
        if building is not None:
            return _blocked_by_index(table, building)
        return next((_busy(table, index) for index in _busy_resources(table, second)), None)
    for index, _, _ in changes_of(table, request):
        if meters.is_changing(index, second):
            return _busy(table, index)
    return None


def _busy(table: Document, index: str | None) -> ServiceError:
    if index is not None:
        return _busy_index(table, index, "updated")
    return _in_use(f"Table IOPS are currently being updated. Table: {table['TableName']}")


def _busy_index(table: Document, index: str, undergone: str) -> ServiceError:
    return _in_use(f"Index is being {undergone}.  Table: {table['TableName']} Index: {index}")


def _blocked_by_index(table: Document, building: str) -> ServiceError:
    where = f"Table: {table['TableName']} Indexes: [{building}]"
    return _in_use(f"Can't change table IOPS when an index is being created. {where}")


def _in_use(detail: str) -> ServiceError:
    return ServiceError("ResourceInUseException", f"Attempt to change a resource which is still in use: {detail}")


def _capacity_refusal(
    table: Document, index: str | None, control: CapacityControl, wanted: dict[Dimension, int], second: int
) -> ServiceError | None:
    kind, name = ("table", table["TableName"]) if index is None else ("index", index)
    match control.refusal(second, wanted, waits=True):
        case Refused.QUOTA:
            return above_quota(wanted, kind)
        # for a table MiniStack says it
        case Refused.TOO_SMALL if index is not None:
            return ServiceError(
                "ValidationException",
                "One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must be greater "
                f"than zero for index {index}",
            )
        case Refused.UNCHANGED:
            figures = " ".join(
                f"Current {member} provisioned for the {kind}: {control.granted[dimension]}. "
                f"Requested {member}: {wanted[dimension]}."
                for dimension, member in UNITS.items()
            )
            return ServiceError(
                "ValidationException",
                f"The provisioned throughput for the {kind} {'' if index is None else name + ' '}will not change. The "
                f"requested value equals the current value. {figures} Refer to the Amazon DynamoDB Developer Guide for "
                "current limits and how to request higher limits.",
            )
        case Refused.DECREASES:
            return ServiceError("LimitExceededException", _budget_text(control, second))
    return None


def _warm_refusal(mark: dict[Dimension, int], index: str | None, warm: Document) -> ServiceError | None:
    kind = "table" if index is None else "index"
    for dimension, member in WARM.items():
        units = int(warm.get(member, mark[dimension]))
        if units < mark[dimension]:
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


def projection_refusal(index: Document) -> ServiceError | None:
    """The refusal of a new index whose projection contradicts itself, `None` where it does not."""
    projection = index.get("Projection") or {}
    kind, attributes = projection.get("ProjectionType"), projection.get("NonKeyAttributes")
    if kind in ("ALL", "KEYS_ONLY") and attributes:
        told = "is specified"
    elif kind == "INCLUDE" and not attributes:
        told = "is not specified"
    else:
        return None
    return ServiceError(
        "ValidationException",
        f"One or more parameter values were invalid: ProjectionType is {kind}, but NonKeyAttributes {told}",
    )


def above_quota(units: dict[Dimension, int], kind: str) -> ServiceError | None:
    """The refusal of units above what the account may have for a table or index, `None` where there is none."""
    for dimension, member in UNITS.items():
        if units[dimension] > DEFAULT_TABLE_QUOTA_UNITS:
            return ServiceError(
                "LimitExceededException",
                f"The requested {member}, {units[dimension]}, is above the per {kind} maximum for the account in "
                f"{ministack.get_region()}. Per {kind} maximum: {DEFAULT_TABLE_QUOTA_UNITS}.",
            )
    return None


def _budget_text(control: CapacityControl, second: int) -> str:
    assert control.last_decrease is not None  # noqa: S101 - a budget that refuses was used
    return (
        "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given UTC day. After the "
        "first 4 decreases, each subsequent decrease in the same UTC day can be performed at most once every 3600 "
        f"seconds. Number of decreases today: {control.decreases_on_day(second)}. Last decrease at "
        f"{_long(control.last_decrease)}. Next decrease can be made at {_long(control.next_decrease(second))}."
    )


def _long(second: int) -> str:
    at = datetime.fromtimestamp(second, UTC)
    return f"{at:%A, %B} {at.day}, {at:%Y} at {at.hour % 12 or 12}:{at:%M:%S %p} Coordinated Universal Time"
