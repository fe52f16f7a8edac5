"""DynamoDB's control plane of capacity, laid over MiniStack's tables: decrease budget, quotas, warm throughput.

MiniStack keeps a table as a dictionary and changes it in its own UpdateTable. This module stands in front of that and
of a table's description, keeps what they lack beside the table, and refuses what DynamoDB refuses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from highwater_lab.services.timing import Timing
from highwater_local import ministack
from highwater_local.autoscaling.records import ServiceError, TargetKey
from highwater_local.capacity.call import meters_of
from highwater_local.capacity.sizes import sizes_of
from highwater_local.index_names import index_name_refusal
from highwater_local.refusals import above_quota, deletion_refusal, projection_refusal, refusal_of
from highwater_local.resources import (
    WARM,
    Document,
    capacity_of,
    changes_of,
    indexes_of,
    is_on_demand,
    resource_of,
    units_of,
    warmth_of,
)

Answer = tuple[int, Document, bytes | str]


class Tables:
    """The tables of every account and region of this cloud, in front of MiniStack's own control plane."""

    def __init__(self, now: Callable[[], datetime], timing: Timing | None = None) -> None:
        self._now = now
        self._timing = timing or Timing()
        self._waits: ContextVar[bool] = ContextVar("waits", default=False)
        self._update: Callable[[Document], Answer] = ministack.update_table.replace(self.update)
        self._describe: Callable[[str], Document] = ministack.describe_table.replace(self.describe)
        self._create: Callable[[Document], Answer] = ministack.create_table.replace(self.create)
        self._delete: Callable[[Document], Answer] = ministack.delete_table.replace(self.delete)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Changes in here are a service's, which waits for what is under way: they are taken up after it."""
        before = self._waits.set(True)
        try:
            yield
        finally:
            self._waits.reset(before)

    def is_changing(self, key: TargetKey) -> bool:
        """Whether a change of the capacity of the target's resource is under way."""
        return meters_of(ministack.tables()[key.table]).is_changing(key.index, self._second())

    def capacity(self, key: TargetKey) -> int | None:
        """Provisioned units of a target, `None` where no such provisioned table or index is."""
        table = ministack.tables().get(key.table)
        if table is None or resource_of(table, key.index) is None or is_on_demand(table):
            return None
        return meters_of(table).control(key.index, self._second()).granted[key.dimension]

    def set_capacity(self, key: TargetKey, units: int) -> None:
        """Change one dimension by UpdateTable, which wants both; raises `ServiceError` with its refusal."""
        table = ministack.tables().get(key.table)
        if table is None or resource_of(table, key.index) is None:
            raise ServiceError("ResourceNotFoundException", f"Requested resource not found: {key.resource_id}")
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
        """Quanta consumed in the *count* minutes since 1970 up to *newest*, fewer where the table is younger."""
        table = ministack.tables().get(key.table)
        if table is None:
            return []
        meters = meters_of(table)
        meter = meters.of(key.index, self._second())[key.dimension]
        first = max(newest - count + 1, -(-meters.begun // 60))
        return [meter.consumed[minute] for minute in range(first, newest + 1)]

    def create(self, request: Document) -> Answer:
        """CreateTable, with quotas and the warm throughput asked for."""
        if (misnamed := index_name_refusal(request)) is not None:
            return _refused(misnamed)
        wanted = [(request, "table"), *((index, "index") for index in request.get("GlobalSecondaryIndexes") or [])]
        for resource, kind in wanted:
            refusal = above_quota(units_of(resource.get("ProvisionedThroughput")), kind) or projection_refusal(resource)
            if refusal is not None:
                return _refused(refusal)
        answer = self._create(request)
        if answer[0] < 400:
            name = request["TableName"]
            self.raise_warm(name, None, request.get("WarmThroughput") or {})
            for index in request.get("GlobalSecondaryIndexes") or []:
                self.raise_warm(name, index["IndexName"], index.get("WarmThroughput") or {})
        return answer

    def update(self, request: Document, *, by_autoscaling: bool = False) -> Answer:
        """UpdateTable: refused whole, or carried out and remembered; what it asks for comes into force in its time.

        Until a new index is built, the capacity of the table and its indexes cannot be changed.
        """
        table = ministack.find_table(request.get("TableName"))
        if table is None:
            return self._update(request)
        updates = request.get("GlobalSecondaryIndexUpdates") or []
        wrong = (projection_refusal(update["Create"]) for update in updates if "Create" in update)
        refusal = index_name_refusal(request) or next((each for each in wrong if each is not None), None)
        refusal = refusal or refusal_of(table, request, self._second(), may_wait=self._waits.get())
        if refusal is not None:
            return _refused(refusal)
        changes = list(changes_of(table, request))
        # meters know the capacity until now before it changes
        second, meters = self._second(), meters_of(table)
        list(meters.each(second))
        was_on_demand, summary = is_on_demand(table), dict(table.get("BillingModeSummary") or {})
        # meters must not be asked between a change and its announcement
        ministack.describe_table.replace(self._describe)
        try:
            answer = self._update(request)
        finally:
            ministack.describe_table.replace(self.describe)
        if answer[0] >= 400:
            return answer
        if is_on_demand(table) is not was_on_demand:
            self._switch_mode(table, summary, second)
        pace = self._timing.pace(by_autoscaling=by_autoscaling)
        for index, wanted, warm in changes:
            control = meters.control(index, second)
            # a new billing mode has brought its capacity along
            if wanted is not None and not (was_on_demand or is_on_demand(table)):
                control.accept(second, units_of(wanted), pace)
            if warm is not None:
                control.warm_up(second, warmth_of(warm), self._timing.warming_pace)
        self._follow_indexes(table, request)
        described: Answer = ministack.json_answer({"TableDescription": self.describe(table["TableName"])})
        return described

    def delete(self, request: Document) -> Answer:
        """DeleteTable, refused while capacity changes."""
        table = ministack.find_table(request.get("TableName"))
        refusal = None if table is None or self._waits.get() else deletion_refusal(table, self._second())
        if refusal is not None:
            return _refused(refusal)
        return self._delete(request)

    def describe(self, name: str) -> Document:
        """DescribeTable's description with decreases, times and warm throughput."""
        description = self._describe(name)
        table = ministack.tables()[name]
        switch = meters_of(table).switch if meters_of(table).is_changing(None, self._second()) else None
        if switch is not None:
            description["BillingModeSummary"] = switch.summary or {"BillingMode": "PROVISIONED"}
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

    def raise_warm(self, name: str, index: str | None, warm: Document) -> None:
        """Give a new table or index the warm throughput that it was created with."""
        second = self._second()
        meters_of(ministack.tables()[name]).control(index, second).raise_mark(second, warmth_of(warm))

    def _follow_indexes(self, table: Document, request: Document) -> None:
        """Indexes that are gone are forgotten; new ones start with the warmth that they were given."""
        for update in request.get("GlobalSecondaryIndexUpdates") or []:
            if "Delete" in update:
                meters_of(table).forget(update["Delete"]["IndexName"])
            if "Create" in update:
                created = update["Create"]
                self.raise_warm(table["TableName"], created["IndexName"], created.get("WarmThroughput") or {})
                meters_of(table).built[created["IndexName"]] = self._second() + self._timing.index_build

    def _switch_mode(self, table: Document, summary: Document, second: int) -> None:
        """Another billing mode, in its time."""
        meters, timing = meters_of(table), self._timing
        if is_on_demand(table):
            takes = timing.to_on_demand_again if meters.was_on_demand else timing.to_on_demand
        else:
            takes = timing.to_provisioned_with_indexes if indexes_of(table) else timing.to_provisioned
        meters.switch_mode(second, second + takes, summary)

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

    def _second(self) -> int:
        return int(self._now().timestamp())


def _refused(refusal: ServiceError) -> Answer:
    answer: Answer = ministack.error_answer(refusal.code, refusal.message, 400)
    return answer
