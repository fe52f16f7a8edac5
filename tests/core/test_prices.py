"""The one table of prices: of each region and class, and what follows from it for all regions."""

from __future__ import annotations

import json
from decimal import Decimal
from importlib import resources

import pytest

from highwater.core.prices import COST_WEIGHT, ThroughputPrices, find_prices, prices_or_usual
from highwater.core.scaler.regret import REQUESTS_PER_UNIT_HOUR
from highwater.core.units import Dimension

READ, WRITE = Dimension.READ, Dimension.WRITE
REGIONS = sorted(json.loads(resources.files("highwater.core").joinpath("prices.json").read_text())["regions"])


def test_prices_are_exact_and_of_the_region_and_the_tables_class() -> None:
    assert find_prices("eu-central-1") == ThroughputPrices(
        "eu-central-1",
        {READ: Decimal("0.0001586"), WRITE: Decimal("0.000793")},
        {READ: Decimal("0.1526"), WRITE: Decimal("0.7626")},
    )
    assert find_prices("us-east-1", is_infrequent_access=True) == ThroughputPrices(
        "us-east-1",
        {READ: Decimal("0.00016"), WRITE: Decimal("0.00081")},
        {READ: Decimal("0.155"), WRITE: Decimal("0.78")},
    )
    assert find_prices("moon-1") is None


def test_prices_that_are_not_known_are_those_of_us_east_1() -> None:
    assert prices_or_usual("moon-1") == prices_or_usual(None) == find_prices("us-east-1")
    assert prices_or_usual("eu-central-1") == find_prices("eu-central-1")
    infrequent = find_prices("us-east-1", is_infrequent_access=True)
    assert prices_or_usual(None, is_infrequent_access=True) == infrequent


def test_units_are_priced_by_mode() -> None:
    prices = prices_or_usual("us-east-1")
    assert prices.provisioned(70, WRITE) == Decimal("0.0455")
    assert prices.on_demand(200_000, WRITE) == Decimal("0.125")
    assert prices.on_demand(300_000, READ) == Decimal("0.0375")
    # 7,200 units are two a second for an hour
    assert prices.worth(7_200, READ) == Decimal("0.00026")


def test_requests_that_cost_a_unit_hour_are_as_many_in_every_region() -> None:
    """The scaler's regret weighs throttles by this number, whatever its region."""
    assert REQUESTS_PER_UNIT_HOUR == 1_040
    for region in REGIONS:
        for dimension in Dimension:
            found = prices_or_usual(region).requests_per_unit_hour(dimension)
            assert found == pytest.approx(REQUESTS_PER_UNIT_HOUR, rel=0.01), (region, dimension)


def test_a_write_costs_five_times_a_read_in_every_region() -> None:
    weight = COST_WEIGHT[WRITE] / COST_WEIGHT[READ]
    for region in REGIONS:
        prices = prices_or_usual(region)
        for found in (prices.unit_hours, prices.millions):
            assert float(found[WRITE] / found[READ]) == pytest.approx(weight, rel=0.014), region
