"""Prices of one region, from the lab's dated file or from a file of the user."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from highwater.core import Dimension, HighwaterError
from highwater_lab.files import read_file

# An upper limit far above any of these prices; a higher one is an error in the file
_MOST = 1_000_000


class PriceError(HighwaterError, ValueError):
    """The price file cannot be read, or it has no prices for the region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices in USD of one region, for the Standard table class.

    Attributes:
        dated: The date on which the prices were read.
        write_unit_hour: The price of one provisioned write unit for an hour.
        read_unit_hour: The price of one provisioned read unit for an hour.
        on_demand_write_million: The price of a million write request units.
        on_demand_read_million: The price of a million read request units.
        infrequent_access_factor: The throughput prices of the table class Standard-IA, as a multiple of Standard's.
        alarm_month: The price of one standard-resolution alarm for a month.
        thousand_metrics_requested: The price of a thousand metrics requested with GetMetricData.
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
        """Return the price of one provisioned unit for an hour."""
        return self.read_unit_hour if dimension is Dimension.READ else self.write_unit_hour

    def on_demand_million(self, dimension: Dimension) -> float:
        """Return the price of a million request units."""
        return self.on_demand_read_million if dimension is Dimension.READ else self.on_demand_write_million


def load_prices(region: str = "us-east-1", file: Path | None = None) -> Prices:
    """Load the prices of a region from *file*, by default from the file that is part of the lab.

    A file has the same members as the lab's `prices.json`: prices of us-east-1, and a factor for each region. Raises
    `PriceError` if a member is missing or invalid, or if the file has no factor for the region.
    """
    name = str(file) if file else "prices.json"
    document = _load_shipped() if file is None else _load(file)
    price_names = [field.name for field in fields(Prices) if field.name != "dated"]
    invalid = [key for key in price_names if not _is_price(document.get(key))]
    if invalid:
        got = str(document.get(invalid[0]))[:60]
        raise PriceError(f"{name}: {invalid[0]} is {got}; expected a price in USD, from 0 to 1,000,000")
    factors = document.get("region_factors")
    if not isinstance(factors, dict) or not all(_is_price(factor) for factor in factors.values()):
        raise PriceError(
            f"{name}: region_factors is {str(factors)[:60]}; expected a factor by region, from 0 to 1,000,000"
        )
    factor = factors.get(region)
    if factor is None:
        regions = ", ".join(sorted(factors))
        raise PriceError(
            f"{name}: has no factor for region {region!r}, only for {regions or 'none'}; add the region to a copy of "
            "the file and give the copy with --prices"
        )
    # CloudWatch's prices are the same in nearly all regions
    flat = {"infrequent_access_factor", "alarm_month", "thousand_metrics_requested"}
    return Prices(
        dated=str(document.get("dated", "undated")),
        **{key: document[key] * (1 if key in flat else factor) for key in price_names},
    )


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST


@cache
def _load_shipped() -> dict[str, Any]:
    text = resources.files("highwater_lab.services").joinpath("prices.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def _load(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(read_file(file))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not valid JSON"
        raise PriceError(f"{file}: cannot be read: {reason}") from error
    if not isinstance(document, dict):
        raise PriceError(f"{file}: is not a JSON object; give the members of the lab's prices.json")
    return document
