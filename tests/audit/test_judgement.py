"""What is found about one table."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from highwater.core import Dimension
from highwater.core.tracking import TargetTracking
from highwater_lab.audit import AuditFinding, Kind, LiveTable, Question, judge
from highwater_lab.services.prices import load_prices
from highwater_lab.simulation import KeyAttribute, Keys, KnownTable, ResourceSetup, TableSetup, TargetSetup
from highwater_lab.traffic import Stream, Traffic, Usage

READ, WRITE = Dimension.READ, Dimension.WRITE
QUESTION = Question(
    days=1,
    max_throttled=0.1,
    least_gain=15,
    timezone="UTC",
    language="cdk",
    has_savings_plan=False,
    prices_file="",
)
FOLLOWING = TargetSetup(units=31, min=31, max=310, tracking=TargetTracking(target_percent=70))


def _table(*resources: ResourceSetup, **more: Any) -> LiveTable:
    is_on_demand, is_infrequent = more.pop("is_on_demand", False), more.pop("is_infrequent_access", False)
    setup = TableSetup(
        name="orders",
        resources=resources,
        is_on_demand=is_on_demand,
        is_infrequent_access=is_infrequent,
        known=KnownTable(table_name="orders", keys={None: Keys(partition=(KeyAttribute("order", "N"),))}, is_live=True),
    )
    return LiveTable(account="111122223333", region="us-east-1", name="orders", setup=setup, **more)


def _fixed(read: int, write: int, index: str | None = None) -> ResourceSetup:
    return ResourceSetup(index=index, read=TargetSetup.fixed(read), write=TargetSetup.fixed(write))


def _usage(table: LiveTable, throttled: int = 0, **rates: float) -> Usage:
    """A day of constant rates, given as `write`, or as `by_owner_write` for an index."""
    counts = {
        stream: [60 * rates.get(f"{stream.index}_{stream.dimension}" if stream.index else f"{stream.dimension}", 0)]
        * 1440
        for stream in table.streams
    }
    traffic = Traffic.from_counts("orders", counts, bin_seconds=60, start=datetime(2026, 11, 2, tzinfo=UTC))
    return Usage(traffic, {Stream(None, WRITE): throttled} if throttled else {})


def _findings(table: LiveTable, usage: Usage, region: str = "us-east-1", **question: Any) -> tuple[AuditFinding, ...]:
    return judge(table, usage, replace(QUESTION, **question), load_prices(region)).findings


@pytest.mark.parametrize(
    ("is_infrequent", "size_gb", "name", "gain"),
    [(False, 1_300, "STANDARD_INFREQUENT_ACCESS", 195), (True, 70, "STANDARD", 60.18)],
    ids=["much-storage-little-use", "little-storage-much-use"],
)
def test_class_goes_by_storage_and_throughput(is_infrequent: bool, size_gb: int, name: str, gain: float) -> None:
    table = _table(_fixed(3, 5 if not is_infrequent else 600), size_gb=size_gb, is_infrequent_access=is_infrequent)
    (finding,) = [each for each in _findings(table, _usage(table, write=4)) if each.kind is Kind.CLASS]
    assert finding.gain_usd == pytest.approx(gain, abs=1)
    assert finding.code == f"dynamodb.TableClass.{name}\n"
    (finding,) = [each for each in _findings(table, _usage(table, write=4), language="hcl") if each.kind is Kind.CLASS]
    assert finding.code == f'table_class = "{name}"\n'


def test_capacity_is_that_after_the_best_change() -> None:
    table = _table(_fixed(3, 1_100), size_gb=1_300)
    judgement = judge(table, _usage(table, write=4, read=2), QUESTION, load_prices())
    assert [each.kind for each in judgement.findings] == [Kind.WASTE, Kind.CLASS]
    assert judgement.capacity is not None
    assert set(judgement.capacity.provisioned[WRITE]) == {5}
    assert not judgement.is_infrequent_access
    assert "capacity" not in judgement.document()
    table = _table(_fixed(3, 5), size_gb=1_300)
    judgement = judge(table, _usage(table, write=4), QUESTION, load_prices())
    assert ([each.kind for each in judgement.findings], judgement.is_infrequent_access) == ([Kind.CLASS], True)


def test_capacity_of_an_idle_table_has_all_hours() -> None:
    table = _table(_fixed(3, 5))
    usage = _usage(table)
    longer = replace(
        usage, traffic=replace(usage.traffic, rates={each: 3 * rate for each, rate in usage.traffic.rates.items()})
    )
    judgement = judge(table, longer, QUESTION, load_prices())
    assert judgement.capacity is not None
    assert judgement.capacity.provisioned == {WRITE: (5,) * 72, READ: (3,) * 72}


def test_class_is_not_judged_without_prices_of_storage() -> None:
    table = _table(_fixed(3, 5), size_gb=1_300)
    assert _findings(table, _usage(table, write=4), "eu-west-1") == ()


def test_index_without_scaling_is_scaled_as_its_table() -> None:
    own = ResourceSetup(index=None, read=FOLLOWING, write=FOLLOWING)
    table = _table(own, _fixed(7, 40, "by_owner"))
    usage = _usage(table, write=35, read=22, by_owner_write=35)
    (finding,) = _findings(table, usage)
    assert (finding.kind, finding.what) == (
        Kind.NO_SCALING,
        "nothing scales index 'by_owner' write (40 fixed, up to 35 requested), beside a table that is scaled",
    )
    assert 'index_name="by_owner", read=Capacity.fixed(7), write=Capacity.autoscaled(min_capacity=31' in finding.code
    assert 'orders = dynamodb.Table.from_table_name(stack, "orders", "orders")\n' in finding.code
    (finding,) = _findings(table, usage, language="hcl")
    assert 'resource "aws_appautoscaling_target" "orders_index_by_owner_write"' in finding.code
    assert 'import {\n  to = aws_dynamodb_table.orders\n  id = "orders"\n}\n' in finding.code


def test_terraform_code_never_lowers_what_is_warm() -> None:
    own = ResourceSetup(index=None, read=TargetSetup.fixed(3), write=TargetSetup.fixed(9_000), warm_write_units=60_000)
    table = _table(own)
    (finding,) = _findings(table, _usage(table, write=5_000, read=2), language="hcl")
    assert finding.kind is Kind.WASTE
    assert "warm_throughput {" not in finding.code
    assert "ignore_changes  = [read_capacity, write_capacity, warm_throughput]" in finding.code
    assert 'hash_key       = "order"' in finding.code


def test_own_dimension_without_scaling_gets_the_target_of_the_other() -> None:
    table = _table(ResourceSetup(index=None, read=FOLLOWING, write=TargetSetup.fixed(50)))
    (finding,) = _findings(table, _usage(table, write=42, read=22))
    assert finding.what == "nothing scales table write (50 fixed, up to 42 requested), beside a table that is scaled"
    # twice what the busiest minute needs at 70 %
    assert "write=Capacity.autoscaled(min_capacity=50, max_capacity=124)" in finding.code


def test_index_that_has_room_is_left_alone() -> None:
    own = ResourceSetup(index=None, read=FOLLOWING, write=FOLLOWING)
    table = _table(own, _fixed(7, 40, "by_owner"))
    assert _findings(table, _usage(table, write=35, read=22, by_owner_write=9)) == ()


def test_throttles_that_the_missing_scaling_makes_are_no_second_finding() -> None:
    own = ResourceSetup(index=None, read=FOLLOWING, write=FOLLOWING)
    table = _table(own, _fixed(7, 30, "by_owner"))
    usage = _usage(table, throttled=90_000, write=35, read=22, by_owner_write=35)
    (finding,) = _findings(table, usage)
    assert (finding.kind, finding.throttled_after) == (Kind.NO_SCALING, 0)
    assert finding.throttled_before == pytest.approx(90_000 * 365 / 12, rel=0.001)


def test_throttles_beyond_all_plans_have_no_code() -> None:
    table = _table(_fixed(3, 40_000))
    usage = _usage(table, throttled=90_000_000, write=45_000)
    (finding,) = _findings(table, usage)
    assert (finding.kind, finding.code) == (Kind.THROTTLES, "")
    assert finding.what == "2.3 % of the requests were throttled; no plan keeps the limit"


def test_throttles_that_minutes_do_not_explain_say_where_to_look() -> None:
    table = _table(_fixed(3, 130))
    (finding,) = _findings(table, _usage(table, throttled=95_000, write=70))
    assert (finding.kind, finding.code) == (Kind.THROTTLES, "")
    assert finding.what == (
        "1.6 % of the requests were throttled; its capacity is enough by the minute: look for a hot key, or for bursts "
        "within minutes"
    )


def test_table_with_vector_indexes_stays_on_demand() -> None:
    table = _table(_fixed(0, 0), is_on_demand=True)
    usage = _usage(table, write=400)
    (finding,) = _findings(table, usage)
    assert (finding.kind, "Capacity.autoscaled" in finding.code) == (Kind.MODE, True)
    assert 'partition_key=dynamodb.Attribute(name="order", type=dynamodb.AttributeType.NUMBER),\n' in finding.code
    assert "    initial_write_units=" in finding.code
    assert _findings(replace(table, is_bound_to_on_demand=True), usage) == ()


def test_change_that_saves_too_little_is_not_told() -> None:
    table = _table(_fixed(3, 40))
    usage = _usage(table, write=1)
    (finding,) = _findings(table, usage)
    assert finding.kind is Kind.WASTE
    assert 15 < finding.gain_usd < 20
    assert _findings(table, usage, least_gain=20) == ()
