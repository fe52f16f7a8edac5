"""DynamoDB's control plane of capacity on top of MiniStack's tables: decrease budget, quotas, warm throughput."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

from highwater.core import Dimension
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater_lab.services.timing import Timing
from highwater_lab.services.update_table import CapacityControl, Refused
from highwater_local import ministack
from highwater_local.autoscaling.records import ServiceError, TargetKey, invalid
from highwater_local.dynamodb.call import forget_meters, meters_of
from highwater_local.dynamodb.modes import (
    clear_maxima,
    creation_worded,
    maximum_refusal,
    missing_capacity_refusal,
    set_maxima,
    summary_of,
    switch_refusal,
    update_maxima,
)
from highwater_local.dynamodb.resources import (
    UNITS,
    WARM,
    capacity_of,
    changes_of,
    index_name_refusal,
    indexes_of,
    is_on_demand,
    resource_of,
    units_of,
    warmth_of,
)
from highwater_local.dynamodb.sizes import sizes_of
from highwater_local.ministack import Answer, Document
from highwater_local.unmodelled import say_staying

# What UpdateTable changes of a table
_CHANGEABLE: Final = (
    "AttributeDefinitions",
    "BillingModeSummary",
    "DeletionProtectionEnabled",
    "GlobalSecondaryIndexes",
    "LatestStreamArn",
    "LatestStreamLabel",
    "OnDemandThroughput",
    "ProvisionedThroughput",
    "SSEDescription",
    "StreamSpecification",
    "TableClassSummary",
)


def refusal_of(table: Document, request: Document, second: int, *, may_wait: bool) -> ServiceError | None:
    """Return why an UpdateTable is rejected, `None` if it is not; *may_wait* allows it during other changes."""
    if not may_wait and second < meters_of(table).active_from:
        return being_created(table)
    building = meters_of(table).building(second)
    updates = request.get("GlobalSecondaryIndexUpdates") or []
    if sum("Create" in update or "Delete" in update for update in updates) > 1:
        return _one_index_at_a_time()
    if building is not None and (refused := _building_refusal(table, request, building)) is not None:
        return refused
    if not may_wait and (in_use := _change_refusal(table, request, second)) is not None:
        return in_use
    if (limited := switch_refusal(table, meters_of(table), request, second)) is not None:
        return limited
    unnamed = None if may_wait else _unnamed_capacity(table, request) or missing_capacity_refusal(request)
    if unnamed is not None:
        return unnamed
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
    """Return why a table cannot be deleted now, `None` if it can be."""
    if second < meters_of(table).active_from:
        return being_created(table)
    busy = list(_busy_resources(table, second))
    if not busy:
        return None
    if busy[0] is None:
        return _in_use(f"Table: {table['TableName']} is in the process of being updated.")
    return _in_use("Cannot delete table while indexes are being created, updated, or deleted.")


def _busy_resources(table: Document, second: int) -> Iterator[str | None]:
    """Yield the table (`None`) and those of its indexes that are being built, changed or warmed up, the table first."""
    meters = meters_of(table)
    for index in (None, *indexes_of(table)):
        is_built = index is None or index != meters.building(second)
        if not is_built or meters.is_changing(index, second) or meters.control(index, second).is_warming(second):
            yield index


def _building_refusal(table: Document, request: Document, building: str) -> ServiceError | None:
    """Reject changes of capacity and new indexes while an index is being built; that index may be deleted."""
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
    """Reject a change of a resource whose capacity is being changed; one that is being warmed up may be changed."""
    meters = meters_of(table)
    if request.get("BillingMode") is not None and (request["BillingMode"] == "PAY_PER_REQUEST") is not is_on_demand(
        table
    ):
        building = meters.building(second)
        if building is not None:
            return _blocked_by_index(table, building)
        return next((_busy(table, index) for index in _busy_resources(table, second)), None)
    updates = request.get("GlobalSecondaryIndexUpdates") or []
    if any("Create" in update or "Delete" in update for update in updates) and meters.is_changing(None, second):
        return _busy(table, None)
    for index, _, _ in changes_of(table, request):
        if meters.is_changing(index, second):
            return _busy(table, index)
    return None


def _unnamed_capacity(table: Document, request: Document) -> ServiceError | None:
    """Reject a switch to provisioned capacity without the units of a table with indexes, and of each of these."""
    if request.get("BillingMode") != "PROVISIONED" or not is_on_demand(table) or not indexes_of(table):
        return None
    named = {index for index, wanted, _ in changes_of(table, request) if wanted is not None}
    if named.issuperset({None, *indexes_of(table)}):
        return None
    return invalid(
        "One or more parameter values were invalid: ProvisionedThroughput must be specified for the table and all of "
        "its global secondary indexes when BillingMode is PROVISIONED"
    )


def _busy(table: Document, index: str | None) -> ServiceError:
    if index is not None:
        return _busy_index(table, index, "updated")
    return _in_use(f"Table IOPS are currently being updated. Table: {table['TableName']}")


def _busy_index(table: Document, index: str, undergone: str) -> ServiceError:
    return _in_use(f"Index is being {undergone}.  Table: {table['TableName']} Index: {index}")


def _blocked_by_index(table: Document, building: str) -> ServiceError:
    where = f"Table: {table['TableName']} Indexes: [{building}]"
    return _in_use(f"Can't change table IOPS when an index is being created. {where}")


def being_created(table: Document) -> ServiceError:
    """Return the rejection of a change of a table that is being created."""
    return _in_use(f"Table is being created: {table['TableName']}")


def _in_use(detail: str) -> ServiceError:
    return ServiceError("ResourceInUseException", f"Attempt to change a resource which is still in use: {detail}")


def _capacity_refusal(
    table: Document, index: str | None, control: CapacityControl, wanted: dict[Dimension, int], second: int
) -> ServiceError | None:
    kind, name = ("table", table["TableName"]) if index is None else ("index", index)
    match control.refusal(second, wanted, waits=True):
        case Refused.QUOTA:
            return above_quota(wanted, kind)
        # MiniStack itself raises this error for tables
        case Refused.TOO_SMALL if index is not None:
            return invalid(
                "One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must be greater "
                f"than zero for index {index}",
            )
        case Refused.UNCHANGED:
            figures = " ".join(
                f"Current {member} provisioned for the {kind}: {control.granted[dimension]}. "
                f"Requested {member}: {wanted[dimension]}."
                for dimension, member in UNITS.items()
            )
            return invalid(
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
            return invalid(
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
    """Return the rejection of a new index with a contradictory projection, `None` if it is valid."""
    projection = index.get("Projection") or {}
    kind, attributes = projection.get("ProjectionType"), projection.get("NonKeyAttributes")
    if kind in ("ALL", "KEYS_ONLY") and attributes:
        told = "is specified"
    elif kind == "INCLUDE" and not attributes:
        told = "is not specified"
    else:
        return None
    return invalid(f"One or more parameter values were invalid: ProjectionType is {kind}, but NonKeyAttributes {told}")


def above_quota(units: dict[Dimension, int], kind: str) -> ServiceError | None:
    """Return the rejection of units above the account's quota for a table or index, `None` if they are within it."""
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


class Tables:
    """The tables of every account and region of this cloud, wrapping MiniStack's own control plane."""

    def __init__(self, now: Callable[[], datetime], timing: Timing | None = None) -> None:
        self._now = now
        self._timing = timing or Timing()
        self._waits: ContextVar[bool] = ContextVar("waits", default=False)
        self._update: Callable[[Document], Answer] = ministack.update_table.replace(self.update)
        self._describe: Callable[[str], Document] = ministack.describe_table.replace(self.describe)
        self._create: Callable[[Document], Answer] = ministack.create_table.replace(self.create)
        self._delete: Callable[[Document], Answer] = ministack.delete_table.replace(self.delete)
        ministack.update_time_to_live.wrap(self._update_time_to_live)

    def waiting(self) -> AbstractContextManager[None]:
        """Mark changes in a block as a service's: they are not rejected, but wait for changes in progress."""
        return ministack.setting(self._waits, True)

    def unbuilt_refusal(self, table: Document) -> ServiceError | None:
        """Return the rejection of a change of the index that is being built, `None` if none is."""
        building = meters_of(table).building(self._second())
        return None if building is None else _busy_index(table, building, "created")

    def is_changing(self, key: TargetKey) -> bool:
        """Whether the capacity of the target's resource is being changed."""
        return meters_of(ministack.tables()[key.table]).is_changing(key.index, self._second())

    def capacity(self, key: TargetKey) -> int | None:
        """Return the provisioned units of a target, `None` if there is no such provisioned table or index."""
        table = ministack.tables().get(key.table)
        if table is None or resource_of(table, key.index) is None or is_on_demand(table):
            return None
        return meters_of(table).control(key.index, self._second()).granted[key.dimension]

    def granted(self, name: str, index: str | None) -> dict[Dimension, int]:
        """Return the units of a table (`None`) or its index after all changes in progress."""
        return dict(meters_of(ministack.tables()[name]).control(index, self._second()).granted)

    def set_capacity(self, key: TargetKey, units: int) -> None:
        """Change one dimension by UpdateTable, which requires both; raises `ServiceError` if it is rejected."""
        table = ministack.tables().get(key.table)
        if table is None or resource_of(table, key.index) is None:
            raise ServiceError("ResourceNotFoundException", f"Requested resource not found: {key.resource_id}")
        if self._second() < meters_of(table).active_from:
            # it would be rejected, and Application Auto Scaling tries again only when it has another reason to
            raise being_created(table)
        control = meters_of(table).control(key.index, self._second())
        throughput = capacity_of({**control.granted, key.dimension: units})
        if key.index is None:
            request: Document = {"TableName": key.table, "ProvisionedThroughput": throughput}
        else:
            update = {"Update": {"IndexName": key.index, "ProvisionedThroughput": throughput}}
            request = {"TableName": key.table, "GlobalSecondaryIndexUpdates": [update]}
        refusal = refusal_of(table, request, self._second(), may_wait=True)
        if refusal is not None:
            raise refusal
        with self.waiting():
            status, _, body = self.update(request, by_autoscaling=True)
        if status >= 400:
            answer = json.loads(body)
            raise ServiceError(answer.get("__type", "InternalServerError").split("#")[-1], answer.get("message", ""))

    def consumed(self, key: TargetKey, newest: int, count: int) -> list[int]:
        """Return the quanta consumed in each of *count* minutes up to *newest* (since 1970); fewer for a new table."""
        table = ministack.tables().get(key.table)
        if table is None:
            return []
        meters = meters_of(table)
        meter = meters.of(key.index, self._second())[key.dimension]
        first = max(newest - count + 1, -(-meters.begun // 60))
        return [meter.consumed[minute] for minute in range(first, newest + 1)]

    def create(self, request: Document) -> Answer:
        """CreateTable, with quotas and the requested warm throughput."""
        if (misnamed := index_name_refusal(request)) is not None:
            return _refused(misnamed)
        wanted = [(request, "table"), *((index, "index") for index in request.get("GlobalSecondaryIndexes") or [])]
        for resource, kind in wanted:
            refusal = above_quota(units_of(resource.get("ProvisionedThroughput")), kind) or projection_refusal(resource)
            refusal = refusal or maximum_refusal(resource, resource.get("IndexName"))
            if refusal is not None:
                return _refused(refusal)
        answer = creation_worded(self._create(request))
        if answer[0] >= 400:
            return answer
        set_maxima(ministack.tables()[request["TableName"]], request.get("OnDemandThroughput"))
        self.raise_marks(request["TableName"], request)
        return _described(self.describe(request["TableName"]))

    def update(self, request: Document, *, by_autoscaling: bool = False) -> Answer:
        """UpdateTable: rejected, or accepted; an accepted change takes effect after AWS's usual time.

        Until a new index is built, the capacity of the table and its indexes cannot be changed. A change of a global
        table, except by auto scaling, is passed on to its other regions.
        """
        before = ministack.replica_regions(request.get("TableName"))
        answer = self._update_here(request, by_autoscaling=by_autoscaling)
        if answer[0] < 400 and not by_autoscaling:
            self._say_staying(request, before)
            for region in ministack.replica_regions(request.get("TableName")):
                with ministack.request_scope(ministack.get_account_id(), region):
                    table = ministack.find_table(request["TableName"])
                    if table is not None and region not in before:
                        # MiniStack has copied the meters of the table that it copied
                        forget_meters(table)
                    elif table is not None:
                        self._pass_on(table, request)
        return answer

    def _update_time_to_live(self, own: Callable[[Document], Answer], request: Document) -> Answer:
        answer = own(request)
        if answer[0] < 400:
            self._say_staying(request, ministack.replica_regions(request.get("TableName")))
        return answer

    def _say_staying(self, request: Document, regions: list[str]) -> None:
        # a service changes one region after another
        if not self._waits.get():
            say_staying(request, regions)

    def _pass_on(self, replica: Document, request: Document) -> None:
        """Change a replica as another region was changed.

        Units that are named are set in every region, also if they were so in the region that was called: reads of
        other regions that differed are lost (recorded: radkawar/stackd 9dc356f, dynamodb/global_tables_scaling). A
        service names the units of one region, and so changes that one alone.
        """
        second, meters = self._second(), meters_of(replica)
        is_switch = "BillingMode" in request and (request["BillingMode"] == "PAY_PER_REQUEST") is not is_on_demand(
            replica
        )
        passed: Document = {"BillingMode": request["BillingMode"]} if is_switch else {}
        updates = []
        for index, wanted, _ in changes_of(replica, request):
            is_same = wanted is None or units_of(wanted) == meters.control(index, second).granted
            if is_same or (self._waits.get() and not is_switch):
                continue
            if index is None:
                passed["ProvisionedThroughput"] = wanted
            else:
                updates.append({"Update": {"IndexName": index, "ProvisionedThroughput": wanted}})
        there = indexes_of(replica)
        for update in request.get("GlobalSecondaryIndexUpdates") or []:
            created, deleted = update.get("Create"), update.get("Delete")
            if created is not None and created["IndexName"] not in there:
                updates.append({"Create": created})
                passed["AttributeDefinitions"] = request.get("AttributeDefinitions") or []
            if deleted is not None and deleted["IndexName"] in there:
                updates.append({"Delete": deleted})
        if updates:
            passed["GlobalSecondaryIndexUpdates"] = updates
        if passed:
            with self.waiting():
                self._update_here({"TableName": replica["TableName"], **passed}, by_autoscaling=False)

    def _update_here(self, request: Document, *, by_autoscaling: bool) -> Answer:
        """Carry out an UpdateTable in the present region."""
        table = ministack.find_table(request.get("TableName"))
        if table is None:
            return self._update(request)
        updates = request.get("GlobalSecondaryIndexUpdates") or []
        added = [update["Create"] for update in updates if "Create" in update]
        wrong = (projection_refusal(index) or maximum_refusal(index, index.get("IndexName")) for index in added)
        refusal = index_name_refusal(request) or next((each for each in wrong if each is not None), None)
        refusal = refusal or refusal_of(table, request, self._second(), may_wait=self._waits.get())
        if refusal is not None:
            return _refused(refusal)
        changes = list(changes_of(table, request))
        # advance the meters with the old capacity before it changes
        second, meters = self._second(), meters_of(table)
        list(meters.each(second))
        was_on_demand = is_on_demand(table)
        before: Document = copy.deepcopy({name: table[name] for name in _CHANGEABLE if name in table})
        # meters must not be read between a change in MiniStack and passing it to the controls
        ministack.describe_table.replace(self._describe)
        try:
            answer = self._update(request)
        finally:
            ministack.describe_table.replace(self.describe)
        if answer[0] >= 400:
            # MiniStack may have changed a part of the table before it found what it rejects
            for name in _CHANGEABLE:
                table.pop(name, None)
            table.update(before)
            return answer
        update_maxima(table, before, request)
        if is_on_demand(table) is not was_on_demand:
            self._switch_mode(table, second)
        pace = self._timing.pace(by_autoscaling=by_autoscaling)
        for index, wanted, warm in changes:
            control = meters.control(index, second)
            # switching the billing mode already set the capacity
            if wanted is not None and not (was_on_demand or is_on_demand(table)):
                control.accept(second, units_of(wanted), pace)
            if warm is not None:
                control.warm_up(second, warmth_of(warm), self._timing.warming_pace)
        self._follow_indexes(table, request)
        return _described(self.describe(table["TableName"]))

    def delete(self, request: Document) -> Answer:
        """DeleteTable, rejected while capacity is being changed."""
        table = ministack.find_table(request.get("TableName"))
        refusal = None if table is None or self._waits.get() else deletion_refusal(table, self._second())
        if refusal is not None:
            return _refused(refusal)
        return self._delete(request)

    def describe(self, name: str) -> Document:
        """Return DescribeTable's description with decreases, times and warm throughput."""
        description = self._describe(name)
        table = ministack.tables()[name]
        summary = summary_of(table, meters_of(table), self._second())
        description.pop("BillingModeSummary", None)
        description |= {} if summary is None else {"BillingModeSummary": summary}
        sizes = sizes_of(table)
        description["TableSizeBytes"] = sizes[None].size_bytes
        self._adorn(description, table, None)
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
            for index in description.get(kind) or ():
                held = sizes[index["IndexName"]]
                index |= {"ItemCount": held.items, "IndexSizeBytes": held.size_bytes}
        if description.get("GlobalSecondaryIndexes"):
            description["GlobalSecondaryIndexes"] = [dict(index) for index in description["GlobalSecondaryIndexes"]]
            for index in description["GlobalSecondaryIndexes"]:
                index.setdefault("IndexStatus", "ACTIVE")
                index.setdefault("IndexArn", f"{description['TableArn']}/index/{index['IndexName']}")
                self._adorn(index, table, index["IndexName"])
                if index["IndexName"] == meters_of(table).building(self._second()):
                    index |= {"IndexStatus": "CREATING", "Backfilling": True}
                    description["TableStatus"] = "UPDATING"
        return description

    def raise_marks(self, name: str, created: Document) -> None:
        """Set the warm throughput with which a table and its indexes were created."""
        self.raise_warm(name, None, created.get("WarmThroughput") or {})
        for index in created.get("GlobalSecondaryIndexes") or []:
            self.raise_warm(name, index["IndexName"], index.get("WarmThroughput") or {})

    def raise_warm(self, name: str, index: str | None, warm: Document) -> None:
        """Set the warm throughput with which a table or index was created."""
        second = self._second()
        meters_of(ministack.tables()[name]).control(index, second).raise_mark(second, warmth_of(warm))

    def _follow_indexes(self, table: Document, request: Document) -> None:
        """Remove the meters of deleted indexes; give new indexes their requested warm throughput."""
        for update in request.get("GlobalSecondaryIndexUpdates") or []:
            if "Delete" in update:
                meters_of(table).forget(update["Delete"]["IndexName"])
            if "Create" in update:
                created = update["Create"]
                self.raise_warm(table["TableName"], created["IndexName"], created.get("WarmThroughput") or {})
                meters_of(table).built[created["IndexName"]] = self._second() + self._timing.index_build

    def _switch_mode(self, table: Document, second: int) -> None:
        """Switch the billing mode, which takes effect after AWS's usual time."""
        meters, timing = meters_of(table), self._timing
        if is_on_demand(table):
            takes = timing.to_on_demand_again if meters.was_on_demand else timing.to_on_demand
        else:
            takes = timing.to_provisioned_again if meters.has_returned else timing.to_provisioned
            meters.has_returned = True
            clear_maxima(table)
        meters.switch_mode(second, second + takes)

    def _adorn(self, description: Document, table: Document, index: str | None) -> None:
        second, meters = self._second(), meters_of(table)
        control, is_changing = meters.control(index, second), meters.is_changing(index, second)
        throughput: Document = capacity_of(meters.units(index, second))
        budget = control.budget_shown(second)
        throughput["NumberOfDecreasesToday"] = budget.used_on(self._now())
        if budget.last is not None:
            throughput["LastDecreaseDateTime"] = budget.last.timestamp()
        if control.last_increase is not None:
            throughput["LastIncreaseDateTime"] = control.last_increase
        description["ProvisionedThroughput"] = throughput
        status = "UPDATING" if control.is_warming(second) else "ACTIVE"
        description["WarmThroughput"] = {WARM[d]: units for d, units in control.mark.items()} | {"Status": status}
        if is_changing:
            description["TableStatus" if index is None else "IndexStatus"] = "UPDATING"
        if second < meters.active_from:
            description["TableStatus" if index is None else "IndexStatus"] = "CREATING"

    def _second(self) -> int:
        return int(self._now().timestamp())


def _described(description: Document) -> Answer:
    answer: Answer = ministack.json_answer({"TableDescription": description})
    return answer


def _refused(refusal: ServiceError) -> Answer:
    return ministack.error_answer(refusal.code, refusal.message)
