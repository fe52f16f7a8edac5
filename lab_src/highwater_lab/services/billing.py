"""Billing: the cost of a simulated run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from highwater.core import Dimension
from highwater_lab.services.prices import Prices

# AWS's price pages and calculator count a month as 730 hours
HOURS_PER_MONTH: Final = 730
# Application Auto Scaling creates so many CloudWatch alarms for each target tracking policy on DynamoDB
ALARMS_PER_POLICY: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The cost of a run in USD, for the simulated time.

    Attributes:
        hours: The number of clock hours that the run touches.
        seconds: The simulated time in seconds.
        provisioned: The cost of provisioned capacity; each hour costs its highest provisioned value.
        on_demand: The cost of consumed request units, on demand.
        alarms: The cost of the alarms of target tracking and of a scaler.
        metrics: The cost of the metrics that a scaler requested from CloudWatch.
        warm_up: The one-time charge for raising the high-water mark.
    """

    hours: int
    seconds: int
    provisioned: float
    on_demand: float
    alarms: float
    metrics: float
    warm_up: float = 0.0

    @property
    def running(self) -> float:
        """All costs except the one-time charge."""
        return self.provisioned + self.on_demand + self.scaler

    @property
    def scaler(self) -> float:
        """The cost of scaling itself: alarms and metrics."""
        return self.alarms + self.metrics

    @property
    def per_month(self) -> float:
        """The cost of a month of 730 hours at the same rate, without the one-time charge.

        Capacity and alarms are scaled by clock hours, requests and metrics by seconds.
        """
        by_hour = (self.provisioned + self.alarms) / self.hours
        by_request = (self.on_demand + self.metrics) * 3600 / self.seconds
        return (by_hour + by_request) * HOURS_PER_MONTH


def bill(
    prices: Prices,
    peaks: Iterable[tuple[Dimension, tuple[int, ...]]],
    requested: Iterable[tuple[Dimension, float]],
    *,
    hours: int,
    seconds: int,
    policies: int,
    alarms: int = 0,
    metrics_requested: int,
    is_infrequent_access: bool,
    warm_up: float,
) -> Bill:
    """Return the bill for provisioned capacity, on-demand requests, or both.

    Args:
        prices: The prices of the region.
        peaks: For each provisioned target its dimension, and its highest units of each clock hour.
        requested: For each on-demand target its dimension, and the request units.
        hours: The number of clock hours that the run touches.
        seconds: The simulated time in seconds.
        policies: The number of target tracking policies; the bill includes their alarms.
        alarms: The number of further alarms, such as a scaler's.
        metrics_requested: The number of metrics requested from CloudWatch.
        is_infrequent_access: Whether the table class is Standard-IA.
        warm_up: The one-time charge for raising the high-water mark, in USD.
    """
    factor = prices.infrequent_access_factor if is_infrequent_access else 1.0
    provisioned = sum(prices.unit_hour(dimension) * sum(hourly) for dimension, hourly in peaks)
    on_demand = sum(prices.on_demand_million(dimension) * units / 1e6 for dimension, units in requested)
    alarm_cost = prices.alarm_month * (ALARMS_PER_POLICY * policies + alarms) * hours / HOURS_PER_MONTH
    metrics = prices.thousand_metrics_requested * metrics_requested / 1000
    return Bill(
        hours=hours,
        seconds=seconds,
        provisioned=provisioned * factor,
        on_demand=on_demand * factor,
        alarms=alarm_cost,
        metrics=metrics,
        warm_up=warm_up,
    )
