"""Which commitments to AWS are worth it for capacity as it was used: reserved capacity, and a Database Savings Plan.

AWS applies reserved capacity first, and the savings plan to the rest (Savings Plans User Guide, "Understanding how
Savings Plans apply to your AWS usage", read 2026-11), so the plan is sized for what the reserved capacity leaves. Units
are integers, and dollars are decimals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from highwater.core import Dimension
from highwater.core.prices import HOURS_PER_MONTH
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.services.billing import BilledReplica, hourly_units
from highwater_lab.services.prices import (
    NO_COMMITMENTS,
    PLAN_ON_DEMAND,
    PLAN_PROVISIONED,
    RESERVED_YEARS,
    Commitments,
    Prices,
    ReservedPrices,
    exact,
)

# Reserved capacity is sold in hundreds (Amazon DynamoDB Developer Guide, "DynamoDB reserved capacity", read 2026-11)
BLOCK_UNITS: Final = 100
# The step in which a savings plan is committed to, in USD an hour
_PLAN_STEP: Final = Decimal("0.001")
_HOURS_PER_YEAR: Final = 8_760
# A year is not committed to for the traffic of a few hours
LEAST_HOURS: Final = 24
# What is left of the usage if it falls by a third
_FALLEN: Final = (2, 3)
# of a curve that ends at twice what is worth it, or where nothing is left to commit to
_CURVE_POINTS: Final = 6
_ZERO: Final = Decimal(0)


@dataclass(frozen=True, slots=True)
class CapacityHours:
    """The capacity of one table in each whole clock hour: what was provisioned, or consumed on demand.

    Attributes:
        start: The first hour.
        provisioned: By dimension the highest provisioned units of each hour, of the table and its indexes together.
        consumed: By dimension the quanta consumed in each hour, on demand.
    """

    start: datetime
    provisioned: Mapping[Dimension, tuple[int, ...]]
    consumed: Mapping[Dimension, tuple[int, ...]]

    @classmethod
    def of_targets(
        cls, start: datetime, targets: Sequence[tuple[Dimension, Sequence[int], Sequence[int]]], minutes: int
    ) -> CapacityHours:
        """Return the whole clock hours of *minutes* from *start*.

        *targets* has for each its dimension, its highest provisioned units of each clock hour, zeros on demand, and the
        quanta that it consumed in each minute.
        """
        skipped = -start.minute % 60
        hours = max(0, (minutes - skipped) // 60)
        first = 1 if skipped else 0
        provisioned = hourly_units(
            (dimension, tuple(peaks[first : first + hours])) for dimension, peaks, _ in targets if any(peaks)
        )
        consumed = hourly_units(
            (dimension, tuple(sum(quanta[at : at + 60]) for at in range(skipped, skipped + 60 * hours, 60)))
            for dimension, peaks, quanta in targets
            if not any(peaks)
        )
        return cls(start + timedelta(minutes=skipped), provisioned, consumed)

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> CapacityHours:
        """Return what `document` returned."""
        by_dimension = (
            {Dimension(each): tuple(hours) for each, hours in document[member].items()}
            for member in ("provisioned", "consumed")
        )
        return cls(datetime.fromisoformat(document["start"]), *by_dimension)

    def document(self) -> dict[str, Any]:
        """Return it as JSON-ready values."""
        return {
            "start": self.start.isoformat(),
            "provisioned": {str(each): hours for each, hours in self.provisioned.items()},
            "consumed": {str(each): hours for each, hours in self.consumed.items()},
        }

    def repeated(self, hours: int) -> CapacityHours:
        """Return so many hours, with the last one again and again, for a table whose capacity does not change."""

        def longer(series: Mapping[Dimension, tuple[int, ...]]) -> dict[Dimension, tuple[int, ...]]:
            return {each: (*units, *units[-1:] * (hours - len(units))) for each, units in series.items()}

        return replace(self, provisioned=longer(self.provisioned), consumed=longer(self.consumed))


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyUsage:
    """What is billed in each clock hour in one region.

    Attributes:
        region: The region.
        start: The first hour, UTC.
        reservable: By dimension the units of each hour that reserved capacity may cover: provisioned capacity of class
            Standard, without replicated writes.
        provisioned_usd: The list price of all other provisioned capacity in each hour.
        on_demand_usd: The list price of the requests on demand in each hour.
    """

    region: str
    start: datetime
    reservable: Mapping[Dimension, tuple[int, ...]]
    provisioned_usd: tuple[Decimal, ...]
    on_demand_usd: tuple[Decimal, ...]

    @classmethod
    def of_capacity(
        cls,
        capacity: CapacityHours,
        prices: Prices,
        *,
        is_infrequent_access: bool = False,
        replicas: Sequence[BilledReplica] = (),
    ) -> HourlyUsage:
        """Return what the capacity of one table is billed for, with the replicas of a global table.

        The reads of replicas in other regions count as capacity that cannot be reserved.
        """
        own = prices.throughput(is_infrequent_access=is_infrequent_access)
        series = [*capacity.provisioned.values(), *capacity.consumed.values()]
        hours = max(map(len, series), default=0)
        reservable, provisioned, on_demand = {}, [_ZERO] * hours, [_ZERO] * hours
        for dimension, units in capacity.provisioned.items():
            is_replicated = bool(replicas) and dimension is Dimension.WRITE
            if not is_infrequent_access and not is_replicated:
                reservable[dimension] = units
            else:
                _add(provisioned, units, exact(own.unit_hour(dimension)))
            for replica in replicas:
                theirs = units if dimension is Dimension.WRITE else [replica.read_units] * hours
                _add(provisioned, theirs, exact(replica.prices.unit_hour(dimension)))
        for dimension, quanta in capacity.consumed.items():
            at = [own, *(replica.prices for replica in replicas if dimension is Dimension.WRITE)]
            price = sum((exact(each.on_demand_million(dimension)) for each in at), _ZERO)
            _add(on_demand, quanta, price / (1_000_000 * QUANTA_PER_UNIT))
        return cls(
            region=prices.region,
            start=capacity.start.astimezone(UTC),
            reservable=reservable,
            provisioned_usd=tuple(provisioned),
            on_demand_usd=tuple(on_demand),
        )

    @property
    def hours(self) -> int:
        """The number of hours."""
        return len(self.on_demand_usd)

    def between(self, start: datetime, end: datetime) -> HourlyUsage:
        """Return the hours from *start*, inclusive, to *end*, exclusive; both lie within."""
        part = slice((start - self.start) // timedelta(hours=1), (end - self.start) // timedelta(hours=1))
        return replace(
            self,
            start=start,
            reservable={each: units[part] for each, units in self.reservable.items()},
            provisioned_usd=self.provisioned_usd[part],
            on_demand_usd=self.on_demand_usd[part],
        )

    def without_reserved(self, held: Commitments) -> HourlyUsage:
        """Return what units that are reserved already do not cover."""
        reservable = {
            each: tuple(max(0, unit - held.reserved_units(each)) for unit in units)
            for each, units in self.reservable.items()
        }
        return replace(self, reservable=reservable)

    def fallen(self) -> HourlyUsage:
        """Return the same if the usage falls by a third."""
        left, of = _FALLEN
        return replace(
            self,
            reservable={each: tuple(unit * left // of for unit in units) for each, units in self.reservable.items()},
            provisioned_usd=tuple(usd * left / of for usd in self.provisioned_usd),
            on_demand_usd=tuple(usd * left / of for usd in self.on_demand_usd),
        )


def _add(sums: list[Decimal], amounts: Iterable[int], price: Decimal) -> None:
    for hour, amount in enumerate(amounts):
        sums[hour] += amount * price


def summed(usages: Iterable[HourlyUsage]) -> tuple[HourlyUsage, ...]:
    """Return the usage of each region, of all its tables, in the hours that are known of every table."""
    known = [each for each in usages if each.hours]
    if not known:
        return ()
    start = max(each.start for each in known)
    end = max(start, min(each.start + timedelta(hours=each.hours) for each in known))
    regions: dict[str, list[HourlyUsage]] = {}
    for usage in known:
        regions.setdefault(usage.region, []).append(usage.between(start, end))
    return tuple(
        HourlyUsage(
            region=region,
            start=start,
            reservable=hourly_units((each, units) for part in parts for each, units in part.reservable.items()),
            provisioned_usd=_sums([part.provisioned_usd for part in parts]),
            on_demand_usd=_sums([part.on_demand_usd for part in parts]),
        )
        for region, parts in sorted(regions.items())
    )


def _sums(series: Sequence[Sequence[Decimal]]) -> tuple[Decimal, ...]:
    return tuple(sum(hour, _ZERO) for hour in zip(*series, strict=True))


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What one size of a commitment saves.

    Attributes:
        size: Units, or USD an hour.
        saved_usd: What it saves, in USD a month; negative if it costs more than it saves.
    """

    size: Decimal
    saved_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedUnits:
    """Reserved capacity of one dimension in one region.

    Attributes:
        region: The region.
        dimension: Reads or writes.
        years: The term.
        units: How many units, in hundreds.
        upfront_usd: What is paid once for the term.
        hour_usd: What is paid for each hour of it.
        saved_usd: What it saves, in USD a month of the term, the share of what is paid once included.
        saved_if_fallen_usd: The same if the usage falls by a third; negative if it then costs more than it saves.
        break_even_percent: The share of the hours in which a unit has to be provisioned for its reservation to pay.
        curve: What other numbers of units save.
    """

    region: str
    dimension: Dimension
    years: int
    units: int
    upfront_usd: Decimal
    hour_usd: Decimal
    saved_usd: Decimal
    saved_if_fallen_usd: Decimal
    break_even_percent: Decimal
    curve: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingsPlan:
    """A Database Savings Plan of one year without upfront payment, for all regions and both table classes.

    Attributes:
        hour_usd: The commitment: what is paid for each hour.
        saved_usd: What it saves, in USD a month, beside the reserved capacity of the same offer.
        saved_if_fallen_usd: The same if the usage falls by a third; negative if it then costs more than it saves.
        curve: What other commitments save.
    """

    hour_usd: Decimal
    saved_usd: Decimal
    saved_if_fallen_usd: Decimal
    curve: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True)
class CommitmentOffer:
    """What to commit to if reserved capacity is bought for one term; one offer excludes the others.

    Attributes:
        years: The term of the reserved capacity.
        reservations: The reserved capacity, by region and dimension.
        plan: The savings plan for the rest; `None` if none is worth it.
    """

    years: int
    reservations: tuple[ReservedUnits, ...]
    plan: SavingsPlan | None

    @property
    def saved_usd(self) -> Decimal:
        """What everything saves, in USD a month."""
        return sum((each.saved_usd for each in self._all), _ZERO)

    @property
    def saved_if_fallen_usd(self) -> Decimal:
        """The same if the usage falls by a third."""
        return sum((each.saved_if_fallen_usd for each in self._all), _ZERO)

    @property
    def _all(self) -> tuple[ReservedUnits | SavingsPlan, ...]:
        return self.reservations if self.plan is None else (*self.reservations, self.plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitmentAdvice:
    """Which commitments are worth it.

    Attributes:
        hours: The clock hours that were looked at.
        list_usd: What they cost at list prices for a month, beyond what is reserved already.
        offers: For each term what is worth it, empty if nothing is. Each excludes the others.
        unpriced: The regions with capacity that could be reserved and no prices for it, by term.
        problem: Why nothing was worked out; empty if it was.
    """

    hours: int
    list_usd: Decimal
    offers: tuple[CommitmentOffer, ...]
    unpriced: Mapping[int, tuple[str, ...]]
    problem: str = ""


def advise(
    usages: Iterable[HourlyUsage],
    prices_of: Callable[[str], Prices],
    held: Commitments = NO_COMMITMENTS,
    *,
    least_gain: float = 0.0,
) -> CommitmentAdvice:
    """Return which commitments are worth it, if every hour to come is like one of these.

    Args:
        usages: The usage of each table.
        prices_of: Returns the prices of a region.
        held: What was bought already: reserved units are subtracted in each region; with a savings plan nothing is
            worked out, as its size is not known.
        least_gain: What a commitment saves at least to be worth it, in USD a month.
    """
    regions = summed(usages)
    hours = regions[0].hours if regions else 0
    problem = ""
    if held.has_savings_plan:
        problem = "a savings plan is there already, and how much of it is in use is not known"
    elif hours < LEAST_HOURS:
        problem = f"whole hours of traffic that all tables have in common: {hours}; {LEAST_HOURS} are needed"
    if problem:
        return CommitmentAdvice(hours=hours, list_usd=_ZERO, offers=(), unpriced={}, problem=problem)
    rest = tuple(each.without_reserved(held) for each in regions)
    work = _Work(rest, prices_of, hours, exact(least_gain))
    offers = [work.offer(years) for years in RESERVED_YEARS]
    return CommitmentAdvice(
        hours=hours,
        list_usd=_month(sum((usd for hour in work.rest(work.usages, {}) for usd in hour), _ZERO), hours),
        # a savings plan alone is the same in each of them
        offers=tuple(each for each in offers if each.reservations or (each.plan and each is offers[0])),
        unpriced={years: found for years in RESERVED_YEARS if (found := work.unpriced(years))},
    )


def _month(usd: Decimal, hours: int) -> Decimal:
    return usd * HOURS_PER_MONTH / hours


# the units of each pool that are reserved
_Reserved = Mapping[tuple[str, Dimension], int]


class _Work:
    """The sizes of commitments for the usage of all regions."""

    def __init__(
        self, usages: tuple[HourlyUsage, ...], prices_of: Callable[[str], Prices], hours: int, least_gain: Decimal
    ) -> None:
        self.usages, self._prices_of, self._hours, self._least_gain = usages, prices_of, hours, least_gain

    def unpriced(self, years: int) -> tuple[str, ...]:
        """Return the regions without prices of a term, and with units to reserve."""
        could = (
            each.region
            for each in self.usages
            if any(max(units, default=0) >= BLOCK_UNITS for units in each.reservable.values())
        )
        return tuple(region for region in could if self._reserved_prices(region, years) is None)

    def offer(self, years: int) -> CommitmentOffer:
        """Return the better of reserved capacity with a savings plan for the rest, and of a savings plan alone."""
        reservations = tuple(each for each in self._reservations(years) if each.saved_usd >= self._least_gain)
        reserved = {(each.region, each.dimension): each.units for each in reservations}
        together = CommitmentOffer(years, reservations, self._plan(reserved))
        alone = CommitmentOffer(years, (), self._plan({}))
        return together if together.saved_usd >= alone.saved_usd else alone

    def _reserved_prices(self, region: str, years: int) -> ReservedPrices | None:
        return self._prices_of(region).regions[region].reserved.get(years)

    def _reservations(self, years: int) -> Iterable[ReservedUnits]:
        for usage in self.usages:
            prices = self._reserved_prices(usage.region, years)
            if prices is None:
                continue
            for dimension, units in usage.reservable.items():
                pool = _Pool(units, self._list_price(usage.region, dimension), dimension, years, prices)
                size = pool.best()
                if size:
                    fallen = replace(pool, units=usage.fallen().reservable[dimension])
                    yield pool.reservation(usage.region, size, fallen)

    def _list_price(self, region: str, dimension: Dimension) -> Decimal:
        return exact(self._prices_of(region).throughput().unit_hour(dimension))

    def rest(self, usages: Iterable[HourlyUsage], reserved: _Reserved) -> list[tuple[Decimal, Decimal]]:
        """Return the list prices of provisioned capacity and of requests that are not reserved, hour by hour."""
        provisioned, on_demand = [_ZERO] * self._hours, [_ZERO] * self._hours
        for usage in usages:
            for dimension, units in usage.reservable.items():
                covered = reserved.get((usage.region, dimension), 0)
                price = self._list_price(usage.region, dimension)
                _add(provisioned, (max(0, each - covered) for each in units), price)
            for hour in range(self._hours):
                provisioned[hour] += usage.provisioned_usd[hour]
                on_demand[hour] += usage.on_demand_usd[hour]
        return list(zip(provisioned, on_demand, strict=True))

    def _plan(self, reserved: _Reserved) -> SavingsPlan | None:
        rest = self.rest(self.usages, reserved)
        best = best_plan(rest)
        saved = _month(plan_saves(best, rest), self._hours)
        if not best or saved < self._least_gain:
            return None
        fallen = self.rest((each.fallen() for each in self.usages), reserved)
        top = min(2 * best, max(usd * PLAN_PROVISIONED + more * PLAN_ON_DEMAND for usd, more in rest))
        step = max(_PLAN_STEP, (top / _CURVE_POINTS).quantize(_PLAN_STEP))
        sizes = sorted({best, *(step * number for number in range(1, _CURVE_POINTS + 1))})
        return SavingsPlan(
            hour_usd=best,
            saved_usd=saved,
            saved_if_fallen_usd=_month(plan_saves(best, fallen), self._hours),
            curve=tuple(CurvePoint(size, _month(plan_saves(size, rest), self._hours)) for size in sizes),
        )


@dataclass(frozen=True, slots=True)
class _Pool:
    """The units of one dimension in one region, hour by hour, and what reserving them costs."""

    units: tuple[int, ...]
    list_price: Decimal
    dimension: Dimension
    years: int
    prices: ReservedPrices

    @property
    def _block_hour(self) -> Decimal:
        """What a block costs for an hour of the term, its share of what is paid once included."""
        once = self.prices.upfront(self.dimension) / (self.years * _HOURS_PER_YEAR)
        return once + self.prices.hour(self.dimension)

    def saves(self, size: int) -> Decimal:
        """Return what so many reserved units save in all hours."""
        covered = sum(min(each, size) for each in self.units)
        return covered * self.list_price - len(self.units) * size // BLOCK_UNITS * self._block_hour

    def best(self) -> int:
        """Return the units that save most. The more blocks there are, the less the last one is used."""
        least, too_many = 0, max(self.units, default=0) // BLOCK_UNITS + 2
        while too_many - least > 1:
            middle = (least + too_many) // 2
            gains = self.saves(middle * BLOCK_UNITS) > self.saves((middle - 1) * BLOCK_UNITS)
            least, too_many = (middle, too_many) if gains else (least, middle)
        return least * BLOCK_UNITS

    def reservation(self, region: str, size: int, fallen: _Pool) -> ReservedUnits:
        """Return so many units as a reservation."""
        hours, blocks = len(self.units), size // BLOCK_UNITS
        step = -(-min(2 * size, max(self.units)) // (BLOCK_UNITS * _CURVE_POINTS)) * BLOCK_UNITS
        sizes = sorted({size, *(step * number for number in range(1, _CURVE_POINTS + 1))})
        return ReservedUnits(
            region=region,
            dimension=self.dimension,
            years=self.years,
            units=size,
            upfront_usd=blocks * self.prices.upfront(self.dimension),
            hour_usd=blocks * self.prices.hour(self.dimension),
            saved_usd=_month(self.saves(size), hours),
            saved_if_fallen_usd=_month(fallen.saves(size), hours),
            break_even_percent=100 * self._block_hour / (BLOCK_UNITS * self.list_price),
            curve=tuple(CurvePoint(Decimal(each), _month(self.saves(each), hours)) for each in sizes),
        )


def plan_saves(hour_usd: Decimal, usage: Iterable[tuple[Decimal, Decimal]]) -> Decimal:
    """Return what a savings plan saves in all hours; negative if it costs more than it saves.

    In each hour it covers first what it lowers most: requests on demand, then provisioned capacity. What it does not
    use of an hour is lost.

    Args:
        hour_usd: The commitment, in USD an hour.
        usage: The list prices of provisioned capacity and of requests on demand in each hour.
    """
    saved = _ZERO
    for provisioned, on_demand in usage:
        of_requests = min(hour_usd, on_demand * PLAN_ON_DEMAND)
        of_capacity = min(hour_usd - of_requests, provisioned * PLAN_PROVISIONED)
        saved += of_requests / PLAN_ON_DEMAND + of_capacity / PLAN_PROVISIONED - hour_usd
    return saved


def best_plan(usage: Sequence[tuple[Decimal, Decimal]]) -> Decimal:
    """Return the commitment of the savings plan that saves most, in USD an hour; 0 if none does.

    The more is committed to, the less the last cent is used, so that the saving has one top. It lies where some hour
    is covered, or all its requests are.
    """
    tops = (usd * PLAN_PROVISIONED + more * PLAN_ON_DEMAND for usd, more in usage)
    sizes = sorted({_ZERO, *tops, *(more * PLAN_ON_DEMAND for _, more in usage)})
    least, too_many = 0, len(sizes)
    while too_many - least > 1:
        middle = (least + too_many) // 2
        gains = plan_saves(sizes[middle], usage) > plan_saves(sizes[middle - 1], usage)
        least, too_many = (middle, too_many) if gains else (least, middle)
    return sizes[least] // _PLAN_STEP * _PLAN_STEP
