"""What a run can cost at most: told before it begins, and never less than what its stacks can provision."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from rich.console import Console

from acceptance.app import STACKS, make_stack
from acceptance.costs import SMALL_THINGS_USD, clock_hours, cost_of, longest, tell_cost
from acceptance.parts import PARTS
from acceptance.stage import Part
from highwater.core import Plan
from highwater_lab.services.prices import load_prices

PRICES = load_prices()
LARGE = Part(name="large", title="large", minutes=8, units=9_000, run=lambda _: None)
# the values that the parts give
CONTEXT = {
    "opens": "2031-03-04T05:00",
    "closes": "2031-03-04T06:00",
    "floor": "45",
    "ceiling": "60",
    "key": "id",
    "elsewhere": "us-east-1",
    "broken": "no",
    "index": "yes",
    "units": "10",
}


def test_part_is_ended_after_half_as_long_again_and_counted_for_every_clock_hour_that_it_can_touch() -> None:
    assert longest(8) == timedelta(minutes=12)
    # 32 minutes that begin at 01:40 touch two hours; 98 minutes may touch three
    assert (clock_hours(8), clock_hours(52)) == (2, 3)


def test_all_units_count_at_the_price_of_writes() -> None:
    assert cost_of(LARGE, PRICES) == pytest.approx(9_000 * 2 * PRICES.throughput().write_unit_hour)


def test_read_units_count_at_the_price_of_reads() -> None:
    part = replace(LARGE, read_units=7_000)
    price = PRICES.throughput()
    assert cost_of(part, PRICES) == pytest.approx(2 * (9_000 * price.write_unit_hour + 7_000 * price.read_unit_hour))


def test_cost_is_told_at_prices_of_the_region_that_was_asked_for() -> None:
    output = io.StringIO()
    console = Console(file=output, width=160)
    here, there = tell_cost(console, [LARGE], "us-east-1"), tell_cost(console, [LARGE], "eu-west-1")
    assert here == pytest.approx(SMALL_THINGS_USD + cost_of(LARGE, PRICES))
    assert there == pytest.approx(SMALL_THINGS_USD + cost_of(LARGE, load_prices("eu-west-1")))
    assert there > here
    titles = [line.strip() for line in output.getvalue().splitlines() if line.startswith("At most")]
    assert titles == ["At most, in us-east-1", "At most, in eu-west-1"]


def test_full_run_costs_at_most_five_dollars_in_the_dearest_region() -> None:
    sums = [tell_cost(Console(quiet=True), PARTS, region) for region in ("us-east-1", "eu-west-1", "sa-east-1")]
    assert max(sums) < 5


@pytest.mark.parametrize(
    ("stack", "part"), [(part.name.title().replace("_", ""), part) for part in PARTS], ids=[part.name for part in PARTS]
)
def test_stack_cannot_provision_more_than_its_part_says_and_raises_no_mark(stack: str, part: Part) -> None:
    tables = "Orders" if stack == "Windows" else "Kept+Leaving"
    made = make_stack(cdk.App(context=CONTEXT | {"tables": tables}), "HwAccept", stack, "123456789012", "eu-west-1")
    template = assertions.Template.from_stack(made)

    def of_type(kind: str) -> list[dict[str, Any]]:
        return [each["Properties"] for each in template.find_resources(kind).values()]

    plans = [Plan.from_document(json.loads(each["Plan"])) for each in of_type("Custom::HighwaterFloors")]
    ceilings = sum(int(target.capacity.max_capacity) for plan in plans for target in plan.targets())
    throughputs = [each.get("ProvisionedThroughput", {}) for each in of_type("AWS::DynamoDB::Table") if not plans]
    bare = sum(sum(each.values()) for each in throughputs)
    replicated = 0
    for world in of_type("AWS::DynamoDB::GlobalTable"):
        writes = world["WriteProvisionedThroughputSettings"]["WriteCapacityAutoScalingSettings"]["MaxCapacity"]
        replicated += len(world["Replicas"]) * (1 + writes)
    assert 0 < ceilings + bare + replicated <= part.units + part.read_units
    assert of_type("Custom::HighwaterMarks") == []


def test_every_stack_of_the_app_is_a_parts() -> None:
    assert sorted(STACKS) == sorted(part.name.title().replace("_", "") for part in PARTS)
