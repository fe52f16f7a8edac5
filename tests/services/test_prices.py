"""Prices and bills."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from highwater.core import Dimension
from highwater_lab.services.billing import Bill, BilledReplica, bill, scaler_items
from highwater_lab.services.prices import Commitments, PriceError, Prices, RegionPrices, UnitPrices, load_prices

READ, WRITE = Dimension.READ, Dimension.WRITE
_MEMBERS = ("write_unit_hour", "read_unit_hour", "on_demand_write_million", "on_demand_read_million")
OWN = {
    "dated": "2030-01",
    "alarm_month": 0.2,
    "thousand_metrics_requested": 0.02,
    "custom_metric_month": 0.7,
    "config_item": 0.005,
    "lambda_gb_second": 3e-5,
    "lambda_request": 4e-7,
    "schedule_run": 6e-6,
    "regions": {
        region: {
            "standard": dict(zip(_MEMBERS, (first, 2 * first, 3 * first, 4 * first), strict=True)),
            "infrequent_access": dict(zip(_MEMBERS, (7 * first, 8 * first, 9 * first, 10 * first), strict=True)),
        }
        for region, first in (("moon-1", 1), ("moon-2", 100))
    },
}


def _prices() -> Prices:
    by_region = {
        region: RegionPrices(
            standard=UnitPrices(**classes["standard"]), infrequent_access=UnitPrices(**classes["infrequent_access"])
        )
        for region, classes in OWN["regions"].items()  # type: ignore[attr-defined] # as JSON
    }
    return Prices(
        region="moon-1",
        dated="2030-01",
        alarm_month=0.2,
        thousand_metrics_requested=0.02,
        custom_metric_month=0.7,
        config_item=0.005,
        lambda_gb_second=3e-5,
        lambda_request=4e-7,
        schedule_run=6e-6,
        regions=by_region,
        source="mine.json",
    )


def test_each_hour_costs_its_highest_value() -> None:
    found = bill(
        load_prices(),
        [(READ, (30, 50)), (WRITE, (100, 700))],
        [],
        hours=2,
        seconds=5_400,
        policies=2,
        metrics_requested=5_000,
        warm_up=4.5,
    )
    assert found.provisioned == pytest.approx(80 * 0.00013 + 800 * 0.00065)
    assert found.scaler == pytest.approx(8 * 0.10 * 2 / 730 + 0.05)
    assert found.warm_up == 4.5
    by_hour, by_request = found.provisioned + 8 * 0.10 * 2 / 730, 0.05
    assert found.per_month == pytest.approx(by_hour * 365 + by_request * 730 / 1.5), "what is paid once stands apart"
    assert found.by_target == pytest.approx((80 * 0.00013, 800 * 0.00065))
    assert found.targets_per_month == pytest.approx((80 * 0.00013 * 365, 800 * 0.00065 * 365))
    assert sum(found.targets_per_month) + found.scaler_per_month == pytest.approx(found.per_month)


def test_on_demand_costs_what_was_consumed() -> None:
    unit = load_prices().throughput(is_infrequent_access=True)
    assert unit.on_demand_write_million > load_prices().throughput().on_demand_write_million
    found = bill(
        load_prices(),
        [],
        [(READ, 4e6), (WRITE, 3e6)],
        hours=1,
        seconds=900,
        is_infrequent_access=True,
    )
    assert found.on_demand == pytest.approx(4 * unit.on_demand_read_million + 3 * unit.on_demand_write_million)
    assert found.per_month == pytest.approx(found.on_demand * 4 * 730), "by the time that it took, not by hours begun"
    assert found.by_target == pytest.approx((4 * unit.on_demand_read_million, 3 * unit.on_demand_write_million))
    assert sum(found.targets_per_month) == pytest.approx(found.per_month)


def test_every_replica_is_paid_for() -> None:
    prices = _prices()
    moon = BilledReplica(prices=prices.in_region("moon-2").throughput(is_infrequent_access=True), read_units=70)
    found = bill(
        prices,
        [(READ, (30, 50)), (WRITE, (100, 700))],
        [],
        hours=2,
        seconds=7_200,
        policies=3,
        alarms=5,
        replicas=[moon],
    )
    assert found.provisioned == pytest.approx((80 * 2 + 800 * 1) + (800 * 700 + 2 * 70 * 800))
    assert found.alarms == pytest.approx((4 * 3 * 2 + 5) * 0.2 * 2 / 730)
    assert found.by_target == pytest.approx((80 * 2 + 2 * 70 * 800, 800 * 1 + 800 * 700))


def test_reserved_capacity_covers_no_writes_of_a_global_table() -> None:
    prices = _prices().committed(Commitments(reserved_read_units=30, reserved_write_units=100))
    moon = BilledReplica(prices=prices.in_region("moon-2").throughput(), read_units=0)
    peaks = [(READ, (30, 50)), (WRITE, (100, 700))]
    alone, replicated = (
        bill(prices, peaks, [], hours=2, seconds=7_200, replicas=replicas).by_target for replicas in ([], [moon])
    )
    whole = bill(_prices(), peaks, [], hours=2, seconds=7_200, replicas=[moon]).by_target
    assert alone == pytest.approx((20 * 2, 600 * 1))
    assert replicated == pytest.approx((20 * 2, whole[1]))


def test_replicas_on_demand_are_written_to_and_not_known_to_be_read() -> None:
    prices = _prices()
    found = bill(
        prices,
        [],
        [(READ, 4e6), (WRITE, 3e6)],
        hours=1,
        seconds=3_600,
        replicas=[BilledReplica(prices=prices.in_region("moon-2").throughput(), read_units=9)],
    )
    assert found.on_demand == pytest.approx((3 * 3 + 4 * 4) + 3 * 300)
    assert sum(found.by_target) == pytest.approx(found.on_demand)


def test_what_is_reserved_covers_the_targets_of_a_dimension_alike() -> None:
    found = bill(
        load_prices().committed(Commitments(reserved_write_units=300)),
        [(WRITE, (100, 300)), (READ, (20, 20)), (WRITE, (500, 100))],
        [],
        hours=2,
        seconds=7_200,
    )
    # 600 and 400 units, of which 300 are paid for already
    writes = (300 + 100) * 0.00065
    assert found.by_target == pytest.approx((writes * 400 / 1_000, 40 * 0.00013, writes * 600 / 1_000))
    assert sum(found.by_target) == pytest.approx(found.provisioned)


def test_crossover_is_near_29_percent_in_every_region() -> None:
    prices = load_prices()
    assert len(prices.regions) > 30
    for region in prices.regions:
        unit = prices.in_region(region).throughput()
        for dimension in Dimension:
            share = unit.unit_hour(dimension) / 3600 * 1e6 / unit.on_demand_million(dimension)
            assert share == pytest.approx(0.289, abs=0.003), region


def test_us_east_1_is_where_figures_in_documents_come_from() -> None:
    unit = load_prices().throughput()
    assert (unit.write_unit_hour, unit.read_unit_hour) == (0.00065, 0.00013)
    assert (unit.on_demand_write_million, unit.on_demand_read_million) == (0.625, 0.125)


def test_region_without_prices_says_what_to_do() -> None:
    with pytest.raises(PriceError) as refused:
        _prices().in_region("sun-1")
    assert str(refused.value) == (
        "mine.json: has no prices of region 'sun-1', only of moon-1, moon-2; make a file that has them with highwater "
        "prices --fetch, and give it with --prices"
    )


def test_file_of_ones_own_counts_instead(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(OWN))
    found = load_prices("moon-2", file)
    assert found == replace(_prices(), region="moon-2", source=str(file))
    assert found.name == "prices of moon-2, 2030-01"


def test_price_of_all_regions_that_a_file_lacks_is_the_labs(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({key: value for key, value in OWN.items() if key != "config_item"}))
    found = load_prices("moon-1", file)
    assert (found.config_item, found.schedule_run) == (0.003, 6e-6)


def test_configuration_items_are_paid_for_only_if_they_are_recorded() -> None:
    recorded = _prices().committed(Commitments(), has_config_recorder=True)
    without, found = (
        bill(
            prices,
            [(WRITE, (100, 700))],
            [],
            hours=2,
            seconds=5_400,
            config_items=30,
        )
        for prices in (_prices(), recorded)
    )
    assert (found.config_items, found.config) == (without.config_items, without.config) == (30, 30 * 0.005)
    assert (found.config_items_per_month, found.config_per_month) == pytest.approx((30 * 730 / 1.5, 73))
    assert found.per_month - without.per_month == pytest.approx(73)
    assert recorded.name == "prices of moon-1, 2030-01, with AWS Config"
    assert found.running - without.running == pytest.approx(0.15)


def test_scaler_costs_its_runs_and_its_metric() -> None:
    runs = 730 * 60
    assert list(scaler_items(_prices()).values()) == pytest.approx([runs * 6e-6, runs * (0.5 * 1.0 * 3e-5 + 4e-7), 0.7])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "{file}: cannot be read: it is not valid JSON"),
        ("[]", "{file}: is not a JSON object; give the members of the lab's prices.json"),
        ('{"alarm_month": -1}', "{file}: alarm_month is -1; expected a price in USD, from 0 to 1,000,000"),
        (
            '{"alarm_month": 1, "thousand_metrics_requested": 1, "regions": [7]}',
            "{file}: regions is [7]; expected the prices of throughput by region",
        ),
        (
            '{"alarm_month": 1, "thousand_metrics_requested": 1, "regions": {"moon-1": {"standard": 5}}}',
            "{file}: moon-1 standard write_unit_hour is None; expected a price in USD, from 0 to 1,000,000",
        ),
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


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("data", {"backup_gb_month": 5}, "moon-1 data recovery_gb_month is None"),
        ("reserved", {"3": {"write_upfront": "free"}}, "moon-1 reserved 3 write_upfront is free"),
    ],
)
def test_prices_of_a_region_are_whole_or_missing(member: str, value: object, message: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    regions = {"moon-1": {**OWN["regions"]["moon-1"], member: value}}  # type: ignore[index] # as JSON
    file.write_text(json.dumps({**OWN, "regions": regions}))
    with pytest.raises(PriceError) as refused:
        load_prices("moon-1", file)
    assert str(refused.value) == f"{file}: {message}; expected a price in USD, from 0 to 1,000,000"


def test_reserved_capacity_is_priced_by_years() -> None:
    reserved = load_prices("eu-west-1").regions["eu-west-1"].reserved
    assert [(years, each.write_upfront, each.hour(READ)) for years, each in reserved.items()] == [
        (1, 169.5, Decimal("0.0029")),
        (3, 203.4, Decimal("0.0018")),
    ]
    assert load_prices("eu-west-3").regions["eu-west-3"].reserved.keys() == {1}


def _bill(prices: Prices, *, is_infrequent_access: bool = False) -> Bill:
    """Two hours of a table and an index, and some requests on demand."""
    return bill(
        prices,
        [
            (Dimension.WRITE, (100, 300)),
            (Dimension.WRITE, (50, 70)),
            (Dimension.READ, (900, 20)),
        ],
        [(Dimension.READ, 4e6)],
        hours=2,
        seconds=7_200,
        is_infrequent_access=is_infrequent_access,
    )


def test_capacity_that_is_reserved_costs_nothing_more_in_each_hour() -> None:
    prices = load_prices()
    unit = prices.throughput()
    reserved = Commitments(reserved_write_units=160, reserved_read_units=100)
    # 150 and 370 write units, 900 and 20 read units
    saved = unit.write_unit_hour * (150 + 160) + unit.read_unit_hour * (100 + 20)
    before, after = _bill(prices), _bill(prices.committed(reserved))
    assert before.provisioned - after.provisioned == pytest.approx(saved)
    assert after.on_demand == before.on_demand
    assert _bill(prices.committed(reserved), is_infrequent_access=True) == _bill(prices, is_infrequent_access=True)
    assert prices.committed(reserved).name.endswith(", 100 read units reserved, 160 write units reserved")


def test_savings_plan_covers_what_is_not_reserved_and_requests() -> None:
    prices = load_prices()
    reserved = Commitments(reserved_write_units=160)
    both = replace(reserved, has_savings_plan=True)
    without, with_plan = _bill(prices.committed(reserved)), _bill(prices.committed(both))
    assert with_plan.provisioned == pytest.approx(0.88 * without.provisioned)
    assert with_plan.on_demand == pytest.approx(0.82 * without.on_demand)
    assert prices.committed(both).name.endswith(", 160 write units reserved, savings plan")
