"""The least that declared capacity costs in a month: its floors, without what traffic, boosts or the scaler add."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from highwater.core.plan.plan import Target
from highwater.core.prices import HOURS_PER_MONTH, ThroughputPrices
from highwater.core.schedule.bounds import timeline
from highwater.core.units import Dimension

_HOUR = timedelta(hours=1)
# four weeks without a clock change in most zones: a fixed time, so that synth says the same every day
_START = datetime(2027, 1, 4, tzinfo=UTC)
_WEEKS = 4
# with monthly windows a year, so that each of them opens twelve times
_WEEKS_OF_YEAR = 52


@dataclass(frozen=True, slots=True)
class LeastCharge:
    """What the floors of a table and its indexes cost in a month of 730 hours, in one region.

    Attributes:
        base: US dollars of the base floors.
        windows: US dollars that recurring windows add to them. A clock hour is billed by its highest capacity.
        prices: The prices of the region.
    """

    base: Decimal
    windows: Decimal
    prices: ThroughputPrices

    @property
    def usd(self) -> Decimal:
        """US dollars of both, rounded to the cent."""
        return cents(self.base + self.windows)


def cents(usd: Decimal) -> Decimal:
    """Return US dollars, rounded to the cent."""
    return usd.quantize(Decimal("0.01"), ROUND_HALF_UP)


def least_charge(targets: Iterable[Target], prices: ThroughputPrices) -> LeastCharge:
    """Return what the floors of *targets* cost; bounds that only CloudFormation knows count as nothing."""
    base, windows = Decimal(0), Decimal(0)
    for target in targets:
        if target.capacity.is_deploy_time:
            continue
        floor = int(target.capacity.min_capacity)
        base += prices.provisioned(floor, target.dimension) * HOURS_PER_MONTH
        windows += _above(target, floor, prices)
    return LeastCharge(base, windows, prices)


def _above(target: Target, floor: int, prices: ThroughputPrices) -> Decimal:
    """Return what the recurring windows of a target add to its base *floor* in a month."""
    recurring = tuple(each for each in target.windows if each.window.is_recurring)
    if not recurring:
        return Decimal(0)
    has_months = any(each.window.weeks_differ for each in recurring)
    end = _START + timedelta(weeks=_WEEKS_OF_YEAR if has_months else _WEEKS)
    changes = timeline(replace(target, windows=recurring), _START, end)
    highest: dict[datetime, int] = {}
    for (at, bounds), until in zip(changes, [*(later for later, _ in changes[1:]), end], strict=True):
        hour = at.replace(minute=0, second=0, microsecond=0)
        while bounds.min > floor and hour < until:
            highest[hour] = max(highest.get(hour, floor), bounds.min)
            hour += _HOUR
    unit_hours = sum(units - floor for units in highest.values())
    return prices.provisioned(unit_hours, target.dimension) * HOURS_PER_MONTH / int((end - _START) / _HOUR)


def floors_text(targets: Iterable[Target]) -> str:
    """Return the base floors of all *targets* together: `205 RCU and 100 WCU`."""
    known = [each for each in targets if not each.capacity.is_deploy_time]
    read, write = (
        sum(int(each.capacity.min_capacity) for each in known if each.dimension is dimension) for dimension in Dimension
    )
    return f"{read:,} RCU and {write:,} WCU"
