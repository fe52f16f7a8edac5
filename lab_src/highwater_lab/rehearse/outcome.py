"""What one declaration of a table's capacity costs and throttles under its traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from highwater.core import Dimension
from highwater_lab.services.billing import hourly_units
from highwater_lab.simulation import QueueRun, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one declaration of a table's capacity costs and throttles.

    Attributes:
        cost_per_month: USD a month, without one-time charges.
        warm_up: The one-time charge for raising high-water marks, in USD; of a table that was there before, above
            the marks that it had.
        config_items_per_month: The number of items that AWS Config records of tables and alarms, at most.
        config_per_month: Their cost, USD a month.
        has_config_recorder: Whether AWS Config records: only then is this a part of *cost_per_month*.
        demanded_units: Units that were requested in the rehearsed time.
        throttled_units: Units of them that were throttled.
        throttled_minutes: The number of minutes with throttling.
        worst_at: The minute that throttles most, UTC; `None` if none does.
        hourly: By dimension the provisioned units of each clock hour that reserved capacity may cover.
        unit_hour: By dimension the price of one of these unit-hours in USD.
        queue: How long writes waited in the table's queue, `None` without one.
    """

    cost_per_month: float
    warm_up: float
    demanded_units: float
    throttled_units: float
    throttled_minutes: int
    worst_at: datetime | None
    config_items_per_month: float = 0.0
    config_per_month: float = 0.0
    has_config_recorder: bool = False
    hourly: Mapping[Dimension, tuple[int, ...]] = field(default_factory=dict)
    unit_hour: Mapping[Dimension, float] = field(default_factory=dict)
    queue: QueueRun | None = None

    @classmethod
    def of_run(cls, run: Run, reservable: Mapping[Dimension, float] | None = None) -> Outcome:
        """Return the outcome of a simulated run.

        *reservable* has the price of a unit-hour for each dimension that reserved capacity may cover, by default none.
        """
        unit_hour = reservable or {}
        peaks = ((target.dimension, target.hour_peaks) for target in run.targets)
        worst = run.worst_minute()
        return cls(
            cost_per_month=run.bill.per_month,
            warm_up=run.bill.warm_up,
            demanded_units=run.demanded_units,
            throttled_units=run.throttled_units,
            throttled_minutes=len(run.throttled_minutes()),
            worst_at=None if worst is None else run.start + timedelta(minutes=worst[0]),
            config_items_per_month=run.bill.config_items_per_month,
            config_per_month=run.bill.config_per_month,
            has_config_recorder=run.bill.has_config_recorder,
            hourly={each: hours for each, hours in hourly_units(peaks).items() if each in unit_hour},
            unit_hour=unit_hour,
            queue=run.queue,
        )

    @property
    def throttled_percent(self) -> float:
        """The percentage of requested units that are throttled; 0 where nothing is requested."""
        return 100 * self.throttled_units / self.demanded_units if self.demanded_units else 0.0


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The cheapest plan that `recommend` finds within a limit, or the one that throttles least if none is.

    Attributes:
        summary: The plan in a few words.
        cost_per_month: USD a month.
        throttled_percent: The percentage of requested units that it throttles.
        limit_percent: The limit of that percentage.
    """

    summary: str
    cost_per_month: float
    throttled_percent: float
    limit_percent: float

    @property
    def is_within_limit(self) -> bool:
        """Whether it keeps the limit; if not, no plan does."""
        return self.throttled_percent <= self.limit_percent
