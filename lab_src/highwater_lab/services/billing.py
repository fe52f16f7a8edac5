"""Billing: what a run would cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from highwater.core import Dimension
from highwater_lab.services.prices import Prices

# AWS's own month
HOURS_PER_MONTH: Final = 730
ALARMS_PER_POLICY: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """USD for the time simulated.

    Attributes:
        hours: Hours of the clock that were begun.
        seconds: How long it was.
        provisioned: Capacity, each hour at its highest provisioned value.
        on_demand: Request units, for what was consumed.
        alarms: Of target tracking and of a scaler.
        metrics: That a scaler asked for.
        warm_up: Once, for raising the high-water mark ahead.
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
        """Everything but what is paid once."""
        return self.provisioned + self.on_demand + self.scaler

    @property
    def scaler(self) -> float:
        """What scaling costs beside the capacity."""
        return self.alarms + self.metrics

    @property
    def per_month(self) -> float:
        """What it costs in a month of 730 hours at the same rate, without what is paid once.

        Capacity and alarms are paid by hours begun, requests by the request.
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
    """The bill for hourly peaks of provisioned units, or for the units requested on demand.

    *policies* are target tracking policies, each with its alarms; *alarms* are beside those.
    """
    factor = prices.infrequent_access_factor if is_infrequent_access else 1.0
    provisioned = sum(prices.unit_hour(dimension) * sum(hourly) for dimension, hourly in peaks)
    on_demand = sum(prices.on_demand_million(dimension) * units / 1e6 for dimension, units in requested)
    watching = prices.alarm_month * (ALARMS_PER_POLICY * policies + alarms) * hours / HOURS_PER_MONTH
    metrics = prices.thousand_metrics_requested * metrics_requested / 1000
    return Bill(
        hours=hours,
        seconds=seconds,
        provisioned=provisioned * factor,
        on_demand=on_demand * factor,
        alarms=watching,
        metrics=metrics,
        warm_up=warm_up,
    )
