"""DynamoDB's metrics in this cloud's CloudWatch: by the minute, and as late as AWS's.

They are worked out from the meters when somebody asks CloudWatch, not as time goes by: a clock that is moved ahead by
weeks costs nothing until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from highwater.core import Dimension
from highwater_lab.physics import QUANTA_PER_UNIT, Cause
from highwater_lab.services.timing import Timing
from highwater_local import ministack
from highwater_local.capacity.call import meters_of
from highwater_local.capacity.meter import MINUTES_KEPT, Meter
from highwater_local.capacity.table_meters import TableMeters

_NAMESPACE = "AWS/DynamoDB"
# What CloudWatch calls the causes; a write that an index holds back is told by the index
_CAUSES = {
    Cause.PROVISIONED: "ProvisionedThroughput",
    Cause.KEY_RANGE: "KeyRangeThroughput",
    Cause.ACCOUNT: "AccountLimit",
    Cause.MAX_ON_DEMAND: "MaxOnDemandThroughput",
}


class Metrics:
    """Puts what the meters measured into MiniStack's CloudWatch before it answers a question.

    *second* tells the cloud's time in seconds since 1970.
    """

    def __init__(self, second: Callable[[], int]) -> None:
        self._second = second
        for query in ministack.METRIC_QUERIES:
            query.replace(self._after_publishing(query.now))

    def publish(self) -> None:
        """Put every minute that is due and not there yet, for all tables of the account and region at hand."""
        newest = (self._second() - Timing().metric_delay) // 60 - 1
        for name, table in list(ministack.tables().items()):
            meters = meters_of(table)
            first = max(meters.published + 1, newest - MINUTES_KEPT + 1)
            if first > newest:
                continue
            for index, dimension, meter in meters.each(self._second()):
                dims = {"TableName": name} | ({"GlobalSecondaryIndexName": index} if index else {})
                for minute in range(first, newest + 1):
                    _publish_minute(dims, dimension, meter, minute)
            _publish_requests(name, meters, first, newest)
            meters.published = newest

    def _after_publishing(self, own: Callable[..., Any]) -> Callable[..., Any]:
        def handle(*arguments: Any, **options: Any) -> Any:
            self.publish()
            return own(*arguments, **options)

        return handle


def _publish_minute(dims: dict[str, str], dimension: Dimension, meter: Meter, minute: int) -> None:
    kind = dimension.title()
    units, requests = meter.consumed[minute] / QUANTA_PER_UNIT, max(1, meter.requests[minute])
    consumed = {"SampleCount": requests, "Sum": units, "Minimum": units / requests, "Maximum": units / requests}
    _put(f"Consumed{kind}CapacityUnits", dims, minute, consumed)
    if minute % 5 == 0 and (provisioned := meter.units_at(minute * 60)):
        one = {"SampleCount": 1, "Sum": provisioned, "Minimum": provisioned, "Maximum": provisioned}
        _put(f"Provisioned{kind}CapacityUnits", dims, minute, one)
    events = meter.events.get(minute)
    if not events:
        return
    told = {name: events[cause] for cause, name in _CAUSES.items() if events[cause]}
    for name, count in told.items():
        _put_count(f"{kind}{name}ThrottleEvents", dims, minute, count)
    if told:
        _put_count(f"{kind}ThrottleEvents", dims, minute, sum(told.values()))


def _publish_requests(table: str, meters: TableMeters, first: int, newest: int) -> None:
    for minute in range(first, newest + 1):
        for operation, count in meters.throttled_requests.get(minute, {}).items():
            _put_count("ThrottledRequests", {"TableName": table, "Operation": operation}, minute, count)


def _put_count(name: str, dims: dict[str, str], minute: int, count: int) -> None:
    _put(name, dims, minute, {"SampleCount": count, "Sum": count, "Minimum": 1, "Maximum": 1})


def _put(name: str, dims: dict[str, str], minute: int, statistics: Mapping[str, float]) -> None:
    ministack.put_datum(_NAMESPACE, name, dict(dims), minute * 60, "Count", None, None, None, dict(statistics))
