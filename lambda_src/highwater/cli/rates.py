"""The rate of bulk work beside what its table can do, how long the work takes, and what its units cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from math import ceil
from typing import Any, Final

import click

from highwater.bulk.adaptive import PacedWork
from highwater.core.pacing.following import Start
from highwater.core.prices import find_prices
from highwater.core.units import Dimension

# Work that takes longer is said to: it may be that nobody meant it
_DAY_SECONDS: Final = 86_400


class RateType(click.ParamType["float | str"]):
    """A click type for units per second, or a share of the provisioned capacity such as `30%`."""

    name = "rate"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Parse the text; raise `click.BadParameter` if it is neither. The client checks how large it is."""
        text = str(value).strip()
        if text.endswith("%"):
            return text
        try:
            return float(text)
        except ValueError:
            self.fail(f"{value!r} is no rate; write units per second, such as 200, or a share such as 30%", param, ctx)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The capacity of a table or index that is less than the rate that was asked of it.

    Attributes:
        units: Units per second that are provisioned, or the on-demand maximum.
        is_on_demand: Whether it is an on-demand maximum.
        ceiling: The most that auto scaling provisions; `None` if nothing scales it, or that cannot be read.
    """

    units: int
    is_on_demand: bool
    ceiling: int | None = None

    @property
    def most(self) -> int:
        """The units per second that it has, or that auto scaling may give it."""
        return max(self.units, self.ceiling or 0)


class BulkRate:
    """The rate of a scan or load beside what its table and indexes can do, and the price of the units.

    Application Auto Scaling is asked only about those whose provisioned capacity is below the rate. For a caller who
    may not ask it, nothing is said of ceilings.

    Args:
        work: The scan or load; raises `PacedWorkError` if its table cannot be described.
    """

    def __init__(self, work: PacedWork) -> None:
        shows = work.followed.shows
        self._start, self._dimension, self._described = work.followed.start, shows.dimension, work.described
        indexes = {each["IndexName"]: each for each in self._described.get("GlobalSecondaryIndexes", ())}
        targets: dict[str | None, Mapping[str, Any]] = {None: self._described, **indexes}
        if self._is_read:
            targets = {work.target: targets[work.target]}
        self._rates, self._is_shadow = work.followed.rates(targets), work.followed.pacer.is_shadow
        self._limits: dict[str | None, RateLimit] = {}
        for target, resource in targets.items():
            units = _capacity_of(resource, self._dimension, is_on_demand=self._is_on_demand)
            if units is not None and units < self._rates[target]:
                ceiling = None if self._is_on_demand else shows.scaling(target)[0]
                self._limits[target] = RateLimit(units, self._is_on_demand, ceiling)

    def warnings(self, units: Mapping[str | None, int] | None = None) -> list[str]:
        """Return a line for each table or index whose capacity is below the rate, and one if the work takes days.

        *units* are those that the work consumes of each, as far as that is known. A shadow has no warnings, as it does
        not keep to the rate.
        """
        if self._is_shadow:
            return []
        found = [self._warning(target, limit) for target, limit in self._limits.items() if self._is_felt(target, limit)]
        target, seconds = self._longest(units or {})
        if units and seconds > _DAY_SECONDS:
            found.append(
                f"{self._label(target)}: at {self._pace(target):,g} units/s the {self._work} takes about "
                f"{timedelta(seconds=seconds)}; to end within a day it needs {-(-units[target] // _DAY_SECONDS):,} "
                "units/s"
            )
        return found

    def lines(self, units: Mapping[str | None, int], seconds: int) -> Iterator[str]:
        """Yield the time of the work, *seconds* at its rate, and what its units cost."""
        rate = next(iter(self._rates.values()))
        yield f"time at {rate:,g} units/s: {timedelta(seconds=seconds)} or more"
        target, longest = self._longest(units)
        if target in self._limits and longest > seconds:
            limit = self._limits[target]
            time = f"{timedelta(seconds=longest)}{'' if limit.is_on_demand else ' without burst capacity'}"
            yield f"time at {limit.most:,} units/s, the limit of {self._label(target)}: {time}"
        usd = self._usd(sum(units.values()))
        if usd is None:
            return
        if self._is_on_demand:
            names = [f"{region}{' (Standard-IA)' if is_rare else ''}" for region, is_rare in self._places().items()]
            kind = f"{self._dimension} request units on demand"
            yield f"costs {_text(usd)} USD of {kind}, at list prices of {', '.join(names)}"
        else:
            yield (
                f"worth {_text(usd)} USD of provisioned capacity, which the table pays for anyway, unless it is raised "
                f"for the {self._work}"
            )

    def document(self, units: Mapping[str | None, int]) -> dict[str, Any]:
        """Return the same for machines."""
        usd = self._usd(sum(units.values()))
        return {
            "billing_mode": "PAY_PER_REQUEST" if self._is_on_demand else "PROVISIONED",
            "usd": None if usd is None else round(float(usd), 4),
            "seconds_at_capacity": self._longest(units)[1],
            "warnings": self.warnings(units),
        }

    def _is_felt(self, target: str | None, limit: RateLimit) -> bool:
        """Whether the limit slows the work down, or throttles it."""
        if self._start is Start.FULL or limit.is_on_demand:
            return True
        if limit.ceiling is None:
            # a boost raises the capacity, up to a ceiling of which the coordinator knows
            return self._start is Start.SLOW
        return self._rates[target] > limit.most

    def _warning(self, target: str | None, limit: RateLimit) -> str:
        rate, option, ceiling = self._rates[target], f"--{self._dimension}", limit.ceiling
        asked = f"{self._label(target)}: {rate:,g} units/s are asked for, and "
        slower = f"the {self._work} goes no faster than that"
        if limit.is_on_demand:
            return (
                f"{asked}the on-demand maximum is {limit.units:,}: requests above it are throttled, and {slower}; give "
                f"{option} {limit.units} or less, or raise Max{self._dimension.title()}RequestUnits"
            )
        asked += f"{limit.units:,} are provisioned"
        is_full = self._start is Start.FULL
        throttled = "once burst capacity is used up, requests are throttled, and " if is_full else ""
        if ceiling is None:
            return f"{asked}: {throttled}{slower}; give {option} {limit.units} or less, or raise the capacity"
        if ceiling <= limit.units:
            return (
                f"{asked}, which is no less than auto scaling's maximum: {throttled}{slower}; give {option} "
                f"{limit.units} or less, or raise the maximum"
            )
        asked += f", which auto scaling raises to {ceiling:,} at most"
        if rate > ceiling:
            slowly = " with --start slow" if is_full else ""
            return f"{asked}: {throttled}{slower}; give {option} {ceiling} or less{slowly}, or raise the maximum"
        return (
            f"{asked}: until it does, requests are throttled once burst capacity is used up; give --start slow, or "
            f"{option} {limit.units} or less"
        )

    def _longest(self, units: Mapping[str | None, int]) -> tuple[str | None, int]:
        """Return the table or index that takes longest at what it can do, and the seconds."""
        seconds = {target: ceil(units[target] / self._pace(target)) for target in units}
        target = max(seconds, key=lambda each: seconds[each], default=None)
        return target, seconds.get(target, 0)

    def _pace(self, target: str | None) -> float:
        rate = self._rates[target]
        return min(rate, self._limits[target].most) if target in self._limits else rate

    def _usd(self, units: int) -> Decimal | None:
        """Return the price of so many units in all regions that bill them; `None` where one is not known."""
        total = Decimal(0)
        for region, is_infrequent_access in self._places().items():
            prices = find_prices(region, is_infrequent_access=is_infrequent_access)
            if prices is None:
                return None
            price = prices.on_demand if self._is_on_demand else prices.worth
            total += price(units, self._dimension)
        return total

    def _places(self) -> dict[str, bool]:
        """Return the regions that bill the units, and whether the table's class there is Standard-IA.

        Each replica of a global table bills the writes, and the one that is read the reads.
        """
        own = self._described["TableArn"].split(":")[3]
        places = {own: _is_infrequent_access(self._described, "TableClassSummary")}
        if not self._is_read:
            for replica in self._described.get("Replicas", ()):
                # the described one may be among them
                places.setdefault(replica["RegionName"], _is_infrequent_access(replica, "ReplicaTableClassSummary"))
        return places

    @property
    def _is_read(self) -> bool:
        return self._dimension is Dimension.READ

    @property
    def _is_on_demand(self) -> bool:
        return bool(self._described.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST")

    @property
    def _work(self) -> str:
        return "scan" if self._is_read else "load"

    def _label(self, target: str | None) -> str:
        table = self._described["TableName"]
        what = table if target is None else f"index {target} of {table}"
        return f"{'reads of' if self._is_read else 'writes to'} {what}"


def _capacity_of(resource: Mapping[str, Any], dimension: Dimension, *, is_on_demand: bool) -> int | None:
    """Return a table's or index's provisioned units per second, or its on-demand maximum; `None` if it has none."""
    if is_on_demand:
        units = resource.get("OnDemandThroughput", {}).get(f"Max{dimension.title()}RequestUnits", -1)
    else:
        # an index that is being created may have no capacity yet
        units = resource.get("ProvisionedThroughput", {}).get(f"{dimension.title()}CapacityUnits", 0)
    return int(units) if units > 0 else None


def _is_infrequent_access(described: Mapping[str, Any], member: str) -> bool:
    return bool(described.get(member, {}).get("TableClass") == "STANDARD_INFREQUENT_ACCESS")


def _text(usd: Decimal) -> str:
    """Return an amount to the cent, and below one dollar to a tenth of a cent."""
    if 0 < usd < Decimal("0.001"):
        return "less than 0.001"
    return f"{usd:,.2f}" if usd >= 1 else f"{usd:.3f}"
