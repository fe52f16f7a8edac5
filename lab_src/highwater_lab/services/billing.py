"""Billing: the cost of a simulated run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from highwater.core import Dimension
from highwater.core.prices import HOURS_PER_MONTH
from highwater_lab.services.prices import Prices, UnitPrices

# The number of CloudWatch alarms that Application Auto Scaling creates for each target tracking policy on DynamoDB
ALARMS_PER_POLICY: Final = 4
# A scaler runs each minute, for a second or less, with this memory
_RUNS_PER_MONTH: Final = HOURS_PER_MONTH * 60
_RUN_SECONDS, _RUN_GB = 1.0, 0.5


def scaler_items(prices: Prices) -> dict[str, float]:
    """Return what a scaler costs a month in USD apart from its targets and its alarms, by description."""
    run = _RUN_GB * _RUN_SECONDS * prices.lambda_gb_second + prices.lambda_request
    return {
        f"{_RUNS_PER_MONTH:,} runs of a schedule": _RUNS_PER_MONTH * prices.schedule_run,
        f"{_RUNS_PER_MONTH:,} runs of {_RUN_SECONDS:.0f} s at {_RUN_GB} GB": _RUNS_PER_MONTH * run,
        # every floor that is set counts; the other metrics have a value only when something is wrong
        "a custom metric, FloorsSet": prices.custom_metric_month,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The cost of a run in USD, for the simulated time.

    Attributes:
        hours: The number of clock hours that the run touches.
        seconds: The simulated time in seconds.
        provisioned: The cost of provisioned capacity, of all replicas; each hour costs its highest provisioned value.
        on_demand: The cost of consumed request units, on demand, of all replicas.
        alarms: The cost of the alarms of target tracking and of a scaler.
        metrics: The cost of the metrics that a scaler requested from CloudWatch.
        config_items: The number of configuration items that AWS Config would record.
        config: What they cost, whether it records them or not.
        has_config_recorder: Whether it records them: only then are they part of the sums.
        warm_up: The one-time charge for raising the high-water mark.
        by_target: The part of *provisioned* or of *on_demand* that each target costs, in the order that they were
            given. What is reserved covers all targets of a dimension alike.
    """

    hours: int
    seconds: int
    provisioned: float
    on_demand: float
    alarms: float
    metrics: float
    config_items: int = 0
    config: float = 0.0
    has_config_recorder: bool = False
    warm_up: float = 0.0
    by_target: tuple[float, ...] = ()

    @property
    def running(self) -> float:
        """All costs except the one-time charge."""
        return self.provisioned + self.on_demand + self.scaler + self.config * self.has_config_recorder

    @property
    def scaler(self) -> float:
        """The cost of scaling itself: alarms and metrics."""
        return self.alarms + self.metrics

    @property
    def per_month(self) -> float:
        """The cost of a month of 730 hours at the same rate, without the one-time charge.

        Capacity and alarms are scaled by clock hours; requests, metrics and configuration items by seconds.
        """
        by_hour = self.provisioned / self.hours * HOURS_PER_MONTH
        config = self.config * self.has_config_recorder
        return by_hour + self.scaler_per_month + (self.on_demand + config) * self._months

    @property
    def targets_per_month(self) -> tuple[float, ...]:
        """The cost of each target in a month.

        They add up to `per_month` with `scaler_per_month`, and with `config_per_month` if AWS Config records.
        """
        factor = self._months if self.on_demand else HOURS_PER_MONTH / self.hours
        return tuple(usd * factor for usd in self.by_target)

    @property
    def scaler_per_month(self) -> float:
        """The cost of scaling itself in a month."""
        return self.alarms / self.hours * HOURS_PER_MONTH + self.metrics * self._months

    @property
    def config_items_per_month(self) -> float:
        """The number of configuration items in a month."""
        return self.config_items * self._months

    @property
    def config_per_month(self) -> float:
        """What they cost in a month, whether AWS Config records them or not."""
        return self.config * self._months

    @property
    def _months(self) -> float:
        """The factor from the simulated time to a month."""
        return HOURS_PER_MONTH * 3600 / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledReplica:
    """A further replica of a global table.

    Attributes:
        prices: The prices of its table class in its region.
        read_units: The read capacity assumed for it, of the table and all indexes.
    """

    prices: UnitPrices
    read_units: int


def hourly_units(peaks: Iterable[tuple[Dimension, tuple[int, ...]]]) -> dict[Dimension, tuple[int, ...]]:
    """Return the provisioned units of each clock hour by dimension, of all targets together."""
    found: dict[Dimension, list[tuple[int, ...]]] = {}
    for dimension, hourly in peaks:
        found.setdefault(dimension, []).append(hourly)
    return {dimension: tuple(map(sum, zip_longest(*each, fillvalue=0))) for dimension, each in found.items()}


def reserved_unit_hours(hourly: Iterable[int], reserved_units: int) -> int:
    """Return how many unit-hours of provisioned capacity reserved units cover."""
    return sum(min(units, reserved_units) for units in hourly)


def bill(
    prices: Prices,
    peaks: Iterable[tuple[Dimension, tuple[int, ...]]],
    requested: Iterable[tuple[Dimension, float]],
    *,
    hours: int,
    seconds: int,
    policies: int = 0,
    alarms: int = 0,
    metrics_requested: int = 0,
    config_items: int = 0,
    is_infrequent_access: bool = False,
    warm_up: float = 0.0,
    replicas: Sequence[BilledReplica] = (),
) -> Bill:
    """Return the bill for provisioned capacity, on-demand requests, or both, with all replicas of a global table.

    Every write is replicated, so each replica is billed for as many writes as the table itself.

    Args:
        prices: The prices of the region.
        peaks: For each provisioned target its dimension, and its highest units of each clock hour.
        requested: For each on-demand target its dimension, and the request units.
        hours: The number of clock hours that the run touches.
        seconds: The simulated time in seconds.
        policies: The number of target tracking policies; the bill includes their alarms.
        alarms: The number of further alarms, such as a scaler's.
        metrics_requested: The number of metrics requested from CloudWatch.
        config_items: The number of configuration items that AWS Config would record.
        is_infrequent_access: Whether the table class is Standard-IA.
        warm_up: The one-time charge for raising the high-water mark, in USD.
        replicas: The further replicas of a global table; each has the same policies.
    """
    own = prices.throughput(is_infrequent_access=is_infrequent_access)
    peaks, requested, committed = list(peaks), list(requested), prices.commitments
    totals = hourly_units(peaks)
    by_dimension = {}
    for dimension, hourly in totals.items():
        # the writes of a global table are replicated ones in each of its regions
        is_covered = not is_infrequent_access and not (replicas and dimension is Dimension.WRITE)
        reserved = committed.reserved_units(dimension) if is_covered else 0
        by_dimension[dimension] = own.unit_hour(dimension) * (sum(hourly) - reserved_unit_hours(hourly, reserved))
    on_demand = [own.on_demand_million(dimension) * units / 1e6 for dimension, units in requested]
    for replica in replicas:
        if Dimension.WRITE in totals:
            by_dimension[Dimension.WRITE] += replica.prices.write_unit_hour * sum(totals[Dimension.WRITE])
        if Dimension.READ in totals:
            by_dimension[Dimension.READ] += replica.prices.read_unit_hour * replica.read_units * hours
        for number, (dimension, units) in enumerate(requested):
            if dimension is Dimension.WRITE:
                on_demand[number] += replica.prices.on_demand_write_million * units / 1e6
    provisioned = sum(by_dimension.values()) * committed.provisioned_factor
    by_target = [
        by_dimension[dimension] * sum(hourly) / (sum(totals[dimension]) or 1) * committed.provisioned_factor
        for dimension, hourly in peaks
    ] + [usd * committed.on_demand_factor for usd in on_demand]
    all_alarms = ALARMS_PER_POLICY * policies * (1 + len(replicas)) + alarms
    alarm_cost = prices.alarm_month * all_alarms * hours / HOURS_PER_MONTH
    metrics = prices.thousand_metrics_requested * metrics_requested / 1000
    return Bill(
        hours=hours,
        seconds=seconds,
        provisioned=provisioned,
        on_demand=sum(on_demand) * committed.on_demand_factor,
        alarms=alarm_cost,
        metrics=metrics,
        config_items=config_items,
        config=prices.config_item * config_items,
        has_config_recorder=prices.has_config_recorder,
        warm_up=warm_up,
        by_target=tuple(by_target),
    )
