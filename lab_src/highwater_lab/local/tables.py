"""DynamoDB's control plane of capacity, laid over MiniStack's tables: decrease budget, quotas, warm throughput.

MiniStack keeps a table as a dictionary and changes it in `_update_table`. This module stands in front of that
function and of `_table_description`, keeps what they lack beside the table, and refuses what DynamoDB refuses.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from ministack.core.responses import error_response_json, get_region
from ministack.services import dynamodb

from highwater.core import Dimension
from highwater.core.budget import DecreaseBudget
from highwater.core.limits import (
    DEFAULT_TABLE_QUOTA_UNITS,
    ON_DEMAND_WARM_READ_UNITS,
    ON_DEMAND_WARM_WRITE_UNITS,
)
from highwater_lab.local.autoscaling.records import ServiceError, TargetKey
from highwater_lab.local.capacity.call import meters_of
from highwater_lab.local.resources import UNITS, Document, forget, is_on_demand, pair_of, resource_of, state_of
from highwater_lab.services.timing import Timing

Answer = tuple[int, Document, bytes | str]
_TIMING = Timing()
_WARM = {"read": "ReadUnitsPerSecond", "write": "WriteUnitsPerSecond"}


class Tables:
    """The tables of every account and region of this cloud; what they are asked is told by MiniStack's scope."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._update: Callable[[Document], Answer] = dynamodb._update_table
        self._describe: Callable[[str], Document] = dynamodb._table_description
        self._create: Callable[[Document], Answer] = dynamodb._create_table

    def install(self) -> None:
        """Stand in front of MiniStack's own functions; its handlers look them up at each call."""
        dynamodb._update_table = self.update
        dynamodb._table_description = self.describe
        dynamodb._create_table = self.create

    def capacity(self, key: TargetKey) -> int | None:
        """Provisioned units of a target, `None` where no such provisioned table or index is."""
        resource = resource_of(dynamodb._tables.get(key.table), key.index)
        if resource is None or is_on_demand(dynamodb._tables[key.table]):
            return None
        return int(resource["ProvisionedThroughput"][UNITS[key.dimension]])

    def set_capacity(self, key: TargetKey, units: int) -> None:
        """Change one dimension by UpdateTable, which wants both; raises `ServiceError` with its refusal."""
        resource = resource_of(dynamodb._tables.get(key.table), key.index)
        if resource is None:
            raise ServiceError("ResourceNotFoundException", f"Requested resource not found: {key.resource_id}")
        throughput = pair_of(resource["ProvisionedThroughput"]) | {UNITS[key.dimension]: units}
        if key.index is None:
            request: Document = {"TableName": key.table, "ProvisionedThroughput": throughput}
        else:
            update = {"Update": {"IndexName": key.index, "ProvisionedThroughput": throughput}}
            request = {"TableName": key.table, "GlobalSecondaryIndexUpdates": [update]}
        refusal = self._refusal(dynamodb._tables[key.table], request)
        if refusal is not None:
            raise refusal
        status, _, body = self.update(request, by_autoscaling=True)
        if status >= 400:
            answer = json.loads(body)
            raise ServiceError(answer.get("__type", "InternalServerError").split("#")[-1], answer.get("message", ""))

    def consumed(self, key: TargetKey, newest: int, count: int) -> list[int]:
        """Quanta consumed in the *count* minutes since 1970 up to *newest*, fewer where the table is younger."""
        table = dynamodb._tables.get(key.table)
        if table is None:
            return []
        meters = meters_of(table)
        meter = meters.of(key.index, int(self._now().timestamp()))[Dimension(key.dimension)]
        first = max(newest - count + 1, -(-meters.begun // 60))
        return [meter.consumed[minute] for minute in range(first, newest + 1)]

    def create(self, request: Document) -> Answer:
        """CreateTable, with quotas and the warm throughput asked for."""
        wanted = [(request, "table"), *((index, "index") for index in request.get("GlobalSecondaryIndexes") or [])]
        for resource, kind in wanted:
            refusal = _above_quota(pair_of(resource.get("ProvisionedThroughput") or {}), kind)
            if refusal is not None:
                refused: Answer = error_response_json(refusal.code, refusal.message, 400)
                return refused
        answer = self._create(request)
        if answer[0] < 400:
            name = request["TableName"]
            self.raise_warm(name, None, request.get("WarmThroughput") or {})
            for index in request.get("GlobalSecondaryIndexes") or []:
                self.raise_warm(name, index["IndexName"], index.get("WarmThroughput") or {})
        return answer

    def update(self, request: Document, *, by_autoscaling: bool = False) -> Answer:
        """UpdateTable: refused whole, or carried out and remembered; what it provisions comes into force in its time.

        A new billing mode and new indexes are there at once.
        """
        table = dynamodb._tables.get(dynamodb._normalize_table_name(request.get("TableName")))
        if table is None:
            return self._update(request)
        refusal = self._refusal(table, request)
        if refusal is not None:
            answer: Answer = error_response_json(refusal.code, refusal.message, 400)
            return answer
        changes = list(self._changes(table, request))
        # meters know the capacity until now before it changes
        second = int(self._now().timestamp())
        list(meters_of(table).each(second))
        before = [pair_of(resource["ProvisionedThroughput"]) for _, resource, _, _ in changes]
        answer = self._update(request)
        if answer[0] < 400:
            for (index, _, wanted, warm), old in zip(changes, before, strict=True):
                self._remember(table, index, old, wanted, warm)
                if wanted is not None:
                    meters_of(table).announce(index, second, _TIMING.pace(by_autoscaling=by_autoscaling))
            self._follow_indexes(table, request)
            if request.get("BillingMode") == "PAY_PER_REQUEST":
                self._lift_to_on_demand(table)
        return answer

    def describe(self, name: str) -> Document:
        """DescribeTable's description with decreases, times and warm throughput."""
        description = self._describe(name)
        table = dynamodb._tables[name]
        self._adorn(description, table, None)
        if description.get("GlobalSecondaryIndexes"):
            description["GlobalSecondaryIndexes"] = [dict(index) for index in description["GlobalSecondaryIndexes"]]
            for index in description["GlobalSecondaryIndexes"]:
                index.setdefault("IndexStatus", "ACTIVE")
                index.setdefault("IndexArn", f"{description['TableArn']}/index/{index['IndexName']}")
                self._adorn(index, table, index["IndexName"])
        return description

    def raise_warm(self, name: str, index: str | None, warm: Document) -> None:
        """Give a new table or index the warm throughput that it was created with."""
        state = state_of(dynamodb._tables[name], index)
        for dimension, member in _WARM.items():
            state.warm[dimension] = max(state.warm[dimension], int(warm.get(member) or 0))

    def _follow_indexes(self, table: Document, request: Document) -> None:
        """Indexes that are gone are forgotten; new ones start with the warmth that they were given."""
        for update in request.get("GlobalSecondaryIndexUpdates") or []:
            if "Delete" in update:
                forget(table, update["Delete"]["IndexName"])
            if "Create" in update:
                created = update["Create"]
                self.raise_warm(table["TableName"], created["IndexName"], created.get("WarmThroughput") or {})

    def _lift_to_on_demand(self, table: Document) -> None:
        """On-demand takes at least so much at once, and the mark stays when the table goes back."""
        indexes = [index["IndexName"] for index in table.get("GlobalSecondaryIndexes") or []]
        for index in (None, *indexes):
            warm = state_of(table, index).warm
            warm["read"] = max(warm["read"], ON_DEMAND_WARM_READ_UNITS)
            warm["write"] = max(warm["write"], ON_DEMAND_WARM_WRITE_UNITS)

    def _adorn(self, description: Document, table: Document, index: str | None) -> None:
        state, now = state_of(table, index), self._now()
        throughput = pair_of(description.get("ProvisionedThroughput") or {})
        throughput["NumberOfDecreasesToday"] = state.budget.used_on(now)
        if state.budget.last is not None:
            throughput["LastDecreaseDateTime"] = state.budget.last.timestamp()
        if state.last_increase is not None:
            throughput["LastIncreaseDateTime"] = state.last_increase.timestamp()
        description["ProvisionedThroughput"] = throughput
        description["WarmThroughput"] = {_WARM[d]: units for d, units in state.warm.items()} | {"Status": "ACTIVE"}

    def _changes(self, table: Document, request: Document) -> Any:
        """Each resource that the request changes: index or `None`, its record, wanted capacity, wanted warmth."""
        if "ProvisionedThroughput" in request or "WarmThroughput" in request:
            yield None, table, request.get("ProvisionedThroughput"), request.get("WarmThroughput")
        for update in request.get("GlobalSecondaryIndexUpdates") or []:
            change = update.get("Update")
            resource = resource_of(table, change["IndexName"]) if change else None
            if change and resource is not None:
                yield change["IndexName"], resource, change.get("ProvisionedThroughput"), change.get("WarmThroughput")

    def _refusal(self, table: Document, request: Document) -> ServiceError | None:
        for index, resource, wanted, warm in self._changes(table, request):
            refusal: ServiceError | None
            becomes_provisioned = request.get("BillingMode") == "PROVISIONED"
            if wanted is not None and (becomes_provisioned or not is_on_demand(table)):
                refusal = self._capacity_refusal(table, index, pair_of(resource["ProvisionedThroughput"]), wanted)
                if refusal is not None:
                    return refusal
            if warm is not None and (refusal := self._warm_refusal(table, index, warm)) is not None:
                return refusal
        return None

    def _capacity_refusal(
        self, table: Document, index: str | None, old: Document, wanted: Document
    ) -> ServiceError | None:
        new = pair_of(wanted)
        refusal = _above_quota(new, "table" if index is None else "index")
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
        budget, now = state_of(table, index).budget, self._now()
        if any(new[member] < old[member] for member in UNITS.values()) and not budget.allows(now):
            return ServiceError("LimitExceededException", _budget_text(budget, now))
        return None

    def _warm_refusal(self, table: Document, index: str | None, warm: Document) -> ServiceError | None:
        live = state_of(table, index).warm
        for dimension, member in _WARM.items():
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

    def _remember(
        self, table: Document, index: str | None, old: Document, wanted: Document | None, warm: Document | None
    ) -> None:
        state, now = state_of(table, index), self._now()
        new = pair_of(wanted) if wanted else old
        if any(new[member] < old[member] for member in UNITS.values()):
            state.budget = state.budget.after(now)
        if any(new[member] > old[member] for member in UNITS.values()):
            state.last_increase = now
        for dimension, member in UNITS.items():
            asked = int((warm or {}).get(_WARM[dimension], 0))
            state.warm[dimension] = max(state.warm[dimension], new[member], asked)


def _above_quota(units: Document, kind: str) -> ServiceError | None:
    for member in UNITS.values():
        if units[member] > DEFAULT_TABLE_QUOTA_UNITS:
            return ServiceError(
                "LimitExceededException",
                f"The requested {member}, {units[member]}, is above the per {kind} maximum for the account in "
                f"{get_region()}. Per {kind} maximum: {DEFAULT_TABLE_QUOTA_UNITS}.",
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
