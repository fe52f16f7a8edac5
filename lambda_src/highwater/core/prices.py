"""AWS's list prices of throughput, by region and table class: `prices.json`, the one table of prices in this project.

Its figures are of November 2026; `highwater prices` prints them with their source, and makes such a file anew. Raising
warm throughput has no price of its own: it is charged once at provisioned rates (Amazon DynamoDB Developer Guide,
"Warm throughput", read 2026-11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any, Final

from highwater.core.documents import read_document
from highwater.core.units import Dimension

# The region whose prices are used, and named, where a region is not known
USUAL_REGION: Final = "us-east-1"
# AWS's price pages and calculator count a month as 730 hours
HOURS_PER_MONTH: Final = 730
_MILLION: Final = 1_000_000
# What a unit of each dimension costs, in read units: in some regions up to 1.3 percent more or less.
COST_WEIGHT: Final = {Dimension.READ: 1, Dimension.WRITE: 5}


@dataclass(frozen=True, slots=True)
class ThroughputPrices:
    """Prices in US dollars of one table class in one region.

    Attributes:
        region: The region.
        unit_hours: The price of one provisioned unit for an hour, by dimension.
        millions: The price of a million request units on demand, by dimension.
    """

    region: str
    unit_hours: Mapping[Dimension, Decimal]
    millions: Mapping[Dimension, Decimal]

    def provisioned(self, units: int, dimension: Dimension) -> Decimal:
        """Return the price of so many units that are provisioned for an hour."""
        return units * self.unit_hours[dimension]

    def worth(self, consumed: int, dimension: Dimension) -> Decimal:
        """Return what the provisioned capacity costs that serves so many units: a unit a second, for an hour."""
        return consumed * self.unit_hours[dimension] / 3_600

    def on_demand(self, consumed: int, dimension: Dimension) -> Decimal:
        """Return the price of so many request units on demand."""
        return consumed * self.millions[dimension] / _MILLION

    def requests_per_unit_hour(self, dimension: Dimension) -> int:
        """Return how many request units on demand cost as much as one unit that is provisioned for an hour."""
        return round(_MILLION * self.unit_hours[dimension] / self.millions[dimension])


def find_prices(region: str, *, is_infrequent_access: bool = False) -> ThroughputPrices | None:
    """Return the prices of DynamoDB Standard in a region, or of Standard-IA; `None` where they are not known."""
    found = _regions().get(region)
    if found is None:
        return None
    members = found["infrequent_access" if is_infrequent_access else "standard"]
    return ThroughputPrices(
        region,
        {each: members[f"{each}_unit_hour"] for each in Dimension},
        {each: members[f"on_demand_{each}_million"] for each in Dimension},
    )


def prices_or_usual(region: str | None, *, is_infrequent_access: bool = False) -> ThroughputPrices:
    """Return the prices of a region; those of us-east-1 where the region or its prices are not known."""
    found = None if region is None else find_prices(region, is_infrequent_access=is_infrequent_access)
    usual = found or find_prices(USUAL_REGION, is_infrequent_access=is_infrequent_access)
    if usual is None:
        message = f"prices.json has no prices of {USUAL_REGION}"
        raise ValueError(message)
    return usual


@cache
def _regions() -> dict[str, Any]:
    text = resources.files("highwater.core").joinpath("prices.json").read_text(encoding="utf-8")
    regions: dict[str, Any] = read_document(text, has_decimals=True)["regions"]
    return regions
