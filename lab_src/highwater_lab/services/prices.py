"""Prices: a dated file, which a user may replace."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from highwater.core import Dimension, HighwaterError
from highwater_lab.files import read_file

# no price of anything here comes near
_MOST = 1_000_000


class PriceError(HighwaterError, ValueError):
    """Prices that cannot be read, or that a region has none of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """USD in one region, for the Standard table class unless *infrequent_access_factor* is applied.

    Attributes:
        dated: When they were read.
        write_unit_hour: One provisioned write unit for an hour.
        read_unit_hour: Likewise for reads.
        on_demand_write_million: A million write request units.
        on_demand_read_million: Likewise for reads.
        infrequent_access_factor: What Standard-IA makes of throughput prices.
        alarm_month: One standard alarm for a month.
        thousand_metrics_requested: A thousand metrics asked of GetMetricData.
    """

    dated: str
    write_unit_hour: float
    read_unit_hour: float
    on_demand_write_million: float
    on_demand_read_million: float
    infrequent_access_factor: float
    alarm_month: float
    thousand_metrics_requested: float

    def unit_hour(self, dimension: Dimension) -> float:
        """One provisioned unit for an hour."""
        return self.read_unit_hour if dimension is Dimension.READ else self.write_unit_hour

    def on_demand_million(self, dimension: Dimension) -> float:
        """A million request units."""
        return self.on_demand_read_million if dimension is Dimension.READ else self.on_demand_write_million


def load_prices(region: str = "us-east-1", file: Path | None = None) -> Prices:
    """The prices of a region: of *file*, by default of the file that comes with the lab.

    A file has the same members as the lab's `prices.json`. Raises `PriceError` for a file that does not, and for a
    region that it has no factor for.
    """
    name = str(file) if file else "prices.json"
    document = _shipped() if file is None else _read(file)
    wanted = [field.name for field in fields(Prices) if field.name != "dated"]
    wrong = [key for key in wanted if not _is_price(document.get(key))]
    if wrong:
        got = str(document.get(wrong[0]))[:60]
        raise PriceError(f"{name}: {wrong[0]} is {got}; expected a price in USD, from 0 to 1,000,000")
    factors = document.get("region_factors")
    if not isinstance(factors, dict) or not all(_is_price(factor) for factor in factors.values()):
        raise PriceError(
            f"{name}: region_factors is {str(factors)[:60]}; expected a factor by region, from 0 to 1,000,000"
        )
    factor = factors.get(region)
    if factor is None:
        known = ", ".join(sorted(factors))
        raise PriceError(
            f"{name}: has no factor for region {region!r}; it has {known or 'none'}: add it to a copy and give that "
            "with --prices"
        )
    # what CloudWatch takes is the same nearly everywhere
    flat = {"infrequent_access_factor", "alarm_month", "thousand_metrics_requested"}
    return Prices(
        dated=str(document.get("dated", "undated")),
        **{key: document[key] * (1 if key in flat else factor) for key in wanted},
    )


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST


@cache
def _shipped() -> dict[str, Any]:
    text = resources.files("highwater_lab.services").joinpath("prices.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def _read(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(read_file(file))
    except (OSError, ValueError, RecursionError) as unreadable:
        reason = unreadable.strerror if isinstance(unreadable, OSError) else "is no JSON"
        raise PriceError(f"{file}: cannot be read: {reason}") from unreadable
    if not isinstance(document, dict):
        raise PriceError(f"{file}: holds no object of prices")
    return document
