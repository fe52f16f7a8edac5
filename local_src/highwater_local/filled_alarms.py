"""Alarms on the expression `FILL(m, 0)` of one metric, which MiniStack's CloudFormation refuses like all metric math.

They are kept as alarms on the metric itself, with a note that minutes without a datapoint count as 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from highwater_local import ministack

Properties = dict[str, Any]
Created = tuple[str, dict[str, Any]]
FILLED: Final = "HighwaterFilledWithZeros"
_FILL: Final = re.compile(r"FILL\((\w+), ?0\)")


def accept_filled_alarms() -> None:
    """Teach the CloudFormation engine these alarms. Other expressions stay refused, with MiniStack's message."""
    ministack.wrap_resource_handler(ministack.ALARM, "create", _creating)
    ministack.wrap_resource_handler(ministack.ALARM, "update", _updating)


def _creating(own: Callable[..., Created]) -> Callable[..., Created]:
    def create(logical_id: str, properties: Properties, stack: str) -> Created:
        return _noted(own(logical_id, _plain(properties), stack), properties)

    return create


def _updating(own: Callable[..., Created]) -> Callable[..., Created]:
    def update(physical_id: str, old: Properties, new: Properties, stack: str, *rest: Any) -> Created:
        return _noted(own(physical_id, _plain(old), _plain(new), stack, *rest), new)

    return update


def _noted(created: Created, properties: Properties) -> Created:
    for alarm in list(ministack.alarms_by_name().values()):
        if alarm["AlarmName"] == created[0]:
            alarm[FILLED] = _filled_metric(properties) is not None
    return created


def _plain(properties: Properties) -> Properties:
    """The properties of an alarm on the metric alone."""
    filled = _filled_metric(properties)
    if filled is None:
        return properties
    metric = filled["Metric"]
    plain = {name: value for name, value in properties.items() if name != "Metrics"}
    return plain | {
        "MetricName": metric["MetricName"],
        "Namespace": metric["Namespace"],
        "Dimensions": metric.get("Dimensions") or [],
        "Period": filled["Period"],
        "Statistic": filled["Stat"],
    }


def _filled_metric(properties: Properties) -> dict[str, Any] | None:
    """The metric whose missing datapoints the alarm counts as 0."""
    queries = {query["Id"]: query for query in properties.get("Metrics") or []}
    shown = [query for query in queries.values() if query.get("Expression")]
    match = _FILL.fullmatch(shown[0]["Expression"]) if len(queries) == 2 and len(shown) == 1 else None
    statistic: dict[str, Any] | None = queries[match[1]].get("MetricStat") if match and match[1] in queries else None
    return statistic
