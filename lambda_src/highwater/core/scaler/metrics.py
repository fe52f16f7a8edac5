"""The metrics of a scaler in CloudWatch: what a run counts, and what it is published under."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

NAMESPACE: Final = "Highwater"


class ScalerMetric(StrEnum):
    """A metric of a scaler, and of the function of a coordinator; a run counts nothing else.

    Each has an alarm or a reader: a metric costs 0.30 USD in a month in which it is told of in each hour.
    """

    AT_CEILING = "AtCeiling"
    BOOSTS_REFUSED = "BoostsRefused"
    CAPACITIES_SET = "CapacitiesSet"
    CHEAPER_ON_DEMAND = "CheaperOnDemand"
    COSTS_MORE_THAN_TRACKING = "CostsMoreThanTracking"
    DECREASE_BUDGET_EXHAUSTED = "DecreaseBudgetExhausted"
    FLOORS_SET = "FloorsSet"
    HOT_KEYS = "HotKeys"
    LEASES_MISSING = "LeasesMissing"
    METRICS_MISSING = "MetricsMissing"
    PAUSED = "Paused"
    PULSES_DISAGREE = "PulsesDisagree"
    TABLES_FAILED = "TablesFailed"
    UNMANAGED_INDEXES = "UnmanagedIndexes"
    UNREADABLE_PLANS = "UnreadablePlans"
