"""Rehearsals from Python: the template that is deployed, against traffic."""

from __future__ import annotations

import re
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, HighWaterTable, Window
from highwater.core import Dimension, Plan
from highwater.core.throttles import ThrottleCause
from highwater_lab.physics import KeyDistribution
from highwater_lab.policies.catalogue import PolicyError
from highwater_lab.rehearse import Conditions, Limits, RehearsalError, Workload, rehearse
from highwater_lab.report.page import write_page
from highwater_lab.report.terminal import shard_lines
from highwater_lab.simulation import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.simulation.plans import table_of
from highwater_lab.testing import assert_rehearsal
from highwater_lab.traffic import Stream, Traffic, scenario
from tests.simulation.tables import START, WRITE, table, tracked, writes

KEY = dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING)
# every weekday at 05:00 in New York, at 10:00 UTC in winter
LOAD = Window.weekly("load", days="MON-FRI", start="05:00", end="05:30", timezone="America/New_York", write_min=3_000)


def _load_traffic() -> Traffic:
    """Tuesday from 09:30 UTC: half an hour idle, half an hour of load, half an hour idle."""
    return writes(*[20] * 30, *[2_500] * 30, *[20] * 30, start=START.replace(hour=9, minute=30))


def _synthesized(tmp_path: Path, *windows: Window) -> Path:
    app = cdk.App(outdir=str(tmp_path / "cdk.out"))
    stack = cdk.Stack(app, "Shop")
    HighWaterTable(
        stack,
        "Orders",
        partition_key=KEY,
        read=Capacity.fixed(5),
        write=Capacity.autoscaled(min_capacity=100, max_capacity=9_000),
        windows=list(windows),
    )
    app.synth()
    return tmp_path / "cdk.out"


def test_windows_of_a_synthesized_table_are_rehearsed(tmp_path: Path) -> None:
    with_window = rehearse(_synthesized(tmp_path / "a", LOAD), _load_traffic(), compare=["native:70"])
    assert with_window.throttled_percent == 0
    floors = [floor for _, floor, _ in with_window.declared.target(Dimension.WRITE).bounds]
    assert floors == [100, 3_000, 100]
    # a warm-up is bought for it: 2,900 units for an hour's price
    assert with_window.declared.bill.warm_up == pytest.approx(2_900 * 0.00065)
    without = rehearse(_synthesized(tmp_path / "b"), _load_traffic())
    assert without.throttled_percent > 10
    assert with_window.runs[1].throttled_units > 0, "native:70 has no windows"
    assert [run.policy for run in with_window.runs] == ["declared", "native:70"]


def test_plan_and_its_synthesized_template_rehearse_the_same(tmp_path: Path) -> None:
    plan = Plan(
        read=Capacity.fixed(5), write=Capacity.autoscaled(min_capacity=100, max_capacity=9_000), windows=(LOAD,)
    )
    by_plan = rehearse(table_of(plan, "Orders"), _load_traffic()).declared
    by_template = rehearse(_synthesized(tmp_path, LOAD), _load_traffic()).declared
    assert by_plan.targets == by_template.targets
    assert by_plan.bill == by_template.bill


def test_hot_keys_are_a_cause_of_their_own() -> None:
    traffic = writes(*[2_000] * 5)
    spread = rehearse(table(tracked(low=4_000)), traffic)
    hot = rehearse(
        table(tracked(low=4_000)), traffic, workload=Workload(keys={None: KeyDistribution.single_hot_key(100)})
    )
    assert spread.declared.throttled_by_cause() == {}
    assert hot.declared.throttled_by_cause() == {ThrottleCause.KEY_RANGE: 1_000 * 300}


def test_shards_of_a_hot_key_are_compared_with_the_one_key(tmp_path: Path) -> None:
    traffic, setup = writes(*[5_000] * 4), table(tracked(low=9_000))
    found = rehearse(
        setup, traffic, workload=Workload(keys={None: KeyDistribution.single_hot_key(100, 20)}), compare=["fixed"]
    )
    assert [run.policy for run in found.runs] == ["declared", "without shards", "fixed"]
    assert [run.throttled_by_cause() for run in found.runs] == [{}, {ThrottleCause.KEY_RANGE: 4_000 * 240}, {}]
    line = "shards: 0 units throttled by the limit of a partition, 960,000 without shards"
    assert shard_lines(found) == [line]
    write_page(found, tmp_path / "page.html")
    assert f"<p>{line}</p>" in (tmp_path / "page.html").read_text()
    assert shard_lines(rehearse(setup, traffic)) == []


def test_limits_are_told_with_figures() -> None:
    rehearsal = rehearse(table(tracked(low=100)), scenario("step"))
    limits = Limits(max_throttled_percent=0.5, max_cost_per_month=3)
    passed = limits.passed(rehearsal)
    assert [found.what for found in passed] == ["throttled", "cost"]
    assert re.fullmatch(r"\d+\.\d+ % of the requested units are throttled, the limit is 0\.5 %", passed[0].text)
    assert re.fullmatch(r"the cost is \$[\d,]+\.\d\d a month, the limit is \$3\.00", passed[1].text)
    assert Limits().passed(rehearsal) == ()
    assert Limits(max_throttled_percent=100, max_cost_per_month=1e9).passed(rehearsal) == ()


def test_helper_for_tests_says_what_was_worst() -> None:
    rehearsal = rehearse(table(tracked(low=100)), scenario("step"))
    assert_rehearsal(rehearsal, max_throttled_percent=50, max_cost_per_month=1e6)
    with pytest.raises(AssertionError) as failed:
        assert_rehearsal(rehearsal, max_throttled_percent=0.01)
    first, second = str(failed.value).splitlines()
    assert first.startswith("table Orders under step: ")
    assert first.endswith(" % of the requested units are throttled, the limit is 0.01 %")
    assert re.fullmatch(r"worst minute: \d+ minutes after the start, [\d,]+ units throttled", second)


def test_traffic_for_an_index_that_there_is_none_of() -> None:
    counts = {Stream(None, WRITE): [1.0], Stream("by_day", WRITE): [1.0]}
    traffic = Traffic.from_counts("made", counts, bin_seconds=60, start=START)
    with pytest.raises(RehearsalError) as refused:
        rehearse(table(), traffic)
    assert str(refused.value) == (
        "traffic made has a column writes:by_day, but table Orders has no index; remove the column"
    )
    with pytest.raises(RehearsalError) as refused:
        rehearse(table(), writes(1), workload=Workload(keys={"by_day": KeyDistribution.uniform()}))
    assert str(refused.value) == "table Orders has no index 'by_day'; its indexes: none"


def test_unknown_policy_is_refused_before_anything_runs() -> None:
    told: list[int] = []
    with pytest.raises(PolicyError, match=r"^unknown policy 'magic', allowed: "):
        rehearse(table(), writes(1), compare=["native:70", "magic"], progress=lambda done, _: told.append(done))
    assert told == []


def test_progress_ends_at_all_of_it() -> None:
    told: list[tuple[int, int]] = []
    rehearse(table(), writes(*[5] * 1_500), compare=["on-demand"], progress=lambda *step: told.append(step))
    assert told == [(1_440, 3_000), (1_500, 3_000), (2_940, 3_000), (3_000, 3_000)]


def test_ceiling_above_the_quota_is_noted_and_kept_from() -> None:
    setup = table(tracked(low=5_000, high=70_000))
    traffic = writes(*[5_000] * 5, *[45_000] * 30)
    usual = rehearse(setup, traffic)
    assert usual.setup.notes == (
        "table write: the ceiling 70,000 is above the quota of 40,000 units per table; if your account's quota is "
        "higher, give it with --table-quota",
    )
    assert max(usual.declared.target(Dimension.WRITE).capacity_by_minute()) <= 40_000
    raised = rehearse(setup, traffic, conditions=Conditions(table_quota_units=70_000))
    assert raised.setup.notes == ()
    assert max(raised.declared.target(Dimension.WRITE).capacity_by_minute()) > 40_000


def test_data_that_grows_splits_partitions_and_takes_more_of_a_burst() -> None:
    own = ResourceSetup(index=None, read=TargetSetup.fixed(5), write=TargetSetup.fixed(980))
    orders = TableSetup(name="Orders", resources=(own,))
    # one partition takes 1,000 a second; 3.5 million units are written in an hour
    traffic = writes(*[1_200], *[900] * 119, *[1_200])
    still = rehearse(orders, traffic, workload=Workload(size_gb=9)).declared
    grown = rehearse(orders, traffic, workload=Workload(size_gb=9, new_items_percent=100)).declared
    assert still.throttled_minutes() == (0, 120)
    assert still.throttled_by_cause().keys() == {ThrottleCause.KEY_RANGE}
    assert grown.throttled_minutes() == (0,)
