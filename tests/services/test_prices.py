"""Prices and bills."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from highwater.core import Dimension
from highwater_lab.services.billing import bill
from highwater_lab.services.prices import PriceError, load_prices

READ, WRITE = Dimension.READ, Dimension.WRITE


def test_each_hour_costs_its_highest_value() -> None:
    found = bill(
        load_prices(),
        [(READ, (30, 50)), (WRITE, (100, 700))],
        [],
        hours=2,
        seconds=5_400,
        policies=2,
        metrics_requested=5_000,
        is_infrequent_access=False,
        warm_up=4.5,
    )
    assert found.provisioned == pytest.approx(80 * 0.00013 + 800 * 0.00065)
    assert found.scaler == pytest.approx(8 * 0.10 * 2 / 730 + 0.05)
    assert found.warm_up == 4.5
    by_hour, by_request = found.provisioned + 8 * 0.10 * 2 / 730, 0.05
    assert found.per_month == pytest.approx(by_hour * 365 + by_request * 730 / 1.5), "what is paid once stands apart"


def test_on_demand_costs_what_was_consumed() -> None:
    found = bill(
        load_prices(),
        [],
        [(READ, 4e6), (WRITE, 3e6)],
        hours=1,
        seconds=900,
        policies=0,
        metrics_requested=0,
        is_infrequent_access=True,
        warm_up=0.0,
    )
    assert found.on_demand == pytest.approx((4 * 0.125 + 3 * 0.625) * 1.25)
    assert found.per_month == pytest.approx(found.on_demand * 4 * 730), "by the time that it took, not by hours begun"


def test_crossover_is_at_28_9_percent() -> None:
    prices = load_prices()
    for dimension in Dimension:
        per_million = prices.unit_hour(dimension) / 3600 * 1e6
        assert per_million / prices.on_demand_million(dimension) == pytest.approx(0.289, abs=0.0005)


def test_region_has_its_factor() -> None:
    assert load_prices("eu-west-1").write_unit_hour == pytest.approx(0.00065 * 1.13)
    assert load_prices("eu-west-1").alarm_month == 0.10


def test_region_without_a_factor_says_what_to_do() -> None:
    with pytest.raises(PriceError) as refused:
        load_prices("sa-east-1")
    assert str(refused.value) == (
        "prices.json: has no factor for region 'sa-east-1', only for eu-central-1, eu-west-1, us-east-1, us-east-2, "
        "us-west-2; add the region to a copy of the file and give the copy with --prices"
    )


def test_file_of_ones_own_counts_instead(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    shipped = {
        "write_unit_hour": 0.002,
        "read_unit_hour": 0.001,
        "on_demand_write_million": 2,
        "on_demand_read_million": 1,
        "infrequent_access_factor": 1.5,
        "alarm_month": 0.2,
        "thousand_metrics_requested": 0.02,
        "region_factors": {"moon-1": 3},
        "dated": "2030-01",
    }
    file.write_text(json.dumps(shipped))
    found = load_prices("moon-1", file)
    assert (found.write_unit_hour, found.read_unit_hour, found.dated) == (0.006, 0.003, "2030-01")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "{file}: cannot be read: it is not valid JSON"),
        ("[]", "{file}: is not a JSON object; give the members of the lab's prices.json"),
        ('{"write_unit_hour": -1}', "{file}: write_unit_hour is -1; expected a price in USD, from 0 to 1,000,000"),
        (None, "{file}: cannot be read: No such file or directory"),
    ],
)
def test_file_that_holds_no_prices_is_told(text: str | None, message: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(PriceError) as refused:
        load_prices(file=file)
    assert str(refused.value) == message.format(file=file)
