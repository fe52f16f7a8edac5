"""What a run says about its throttling: each row of the table of remedies, as a whole sentence."""

from __future__ import annotations

from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from highwater.core.throttles import ThrottleCause
from highwater_lab.physics import INDEX, KeyDistribution
from highwater_lab.physics.throughput import Cause
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.schedules import parse_expression
from highwater_lab.simulation import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.simulation.remedies import REMEDIES, Bottleneck, remedies
from highwater_lab.traffic import Stream, Traffic
from tests.simulation.tables import READ, START, WRITE, table, tracked, writes

LONG = 15
HOT = KeyDistribution.single_hot_key(100)
SURGE = writes(*[70] * 5, *[800] * LONG)
OPEN = parse_expression("at(2026-11-03T10:06:00)", ZoneInfo("UTC"), START)
WINDOW = ScheduledChange(name="open", expression=OPEN, min=3_500, max=None)


def _reads(*units_per_second: int) -> Traffic:
    counts = {Stream(None, READ): [units * 60 for units in units_per_second]}
    return Traffic.from_counts("made", counts, bin_seconds=60, start=START)


def _with_keys(setup: TableSetup, keys: KeyDistribution, mark: int = 40_000) -> TableSetup:
    own = replace(setup.resources[0], keys=keys, warm_write_units=mark, warm_read_units=mark)
    return replace(setup, resources=(own, *setup.resources[1:]))


def _index(write: TargetSetup, keys: KeyDistribution | None = None) -> ResourceSetup:
    keys = keys or KeyDistribution.uniform()
    return ResourceSetup(index="by_status", read=TargetSetup.fixed(7), write=write, warm_write_units=40_000, keys=keys)


ON_DEMAND = table(is_on_demand=True)
COLD = _with_keys(ON_DEMAND, KeyDistribution.uniform(), mark=0)
READ_TABLE = replace(table(), resources=(replace(table().resources[0], read=TargetSetup.fixed(6_000)),))
CAPPED = replace(ON_DEMAND, resources=(replace(ON_DEMAND.resources[0], max_write_units=600),))


ROWS = [
    pytest.param(
        table(tracked(low=90, high=300)),
        SURGE,
        Bottleneck.CEILING,
        "table write needs up to 800 units/s, and its ceiling is 300: raise the ceiling",
        id="ceiling",
    ),
    pytest.param(
        table(TargetSetup.fixed(90)),
        SURGE,
        Bottleneck.FIXED,
        "table write needs up to 800 units/s, and nothing scales its capacity of 90: raise the capacity, or have "
        "auto scaling scale it",
        id="fixed capacity",
    ),
    pytest.param(
        table(TargetSetup(units=90, min=80, max=2_000, is_scaled=False)),
        SURGE,
        Bottleneck.NO_POLICY,
        "table write needs up to 800 units/s, and no policy scales its capacity of 90: add target tracking to its "
        "scalable target, or raise its floor ahead of the surge",
        id="a scalable target without a policy",
    ),
    pytest.param(
        table(tracked(low=90, high=2_000, target=60)),
        SURGE,
        Bottleneck.FLOOR,
        "table write rises to 800 units/s faster than it is scaled from its floor of 90: raise the floor ahead of "
        "the surge, or lower the target utilization of 60 %",
        id="a surge below the ceiling",
    ),
    pytest.param(
        table(tracked(low=90, high=5_000, target=20)),
        writes(*[18] * 5, *[800] * LONG),
        Bottleneck.FLOOR_ALONE,
        "table write rises to 800 units/s faster than it is scaled from its floor of 90: raise the floor ahead of "
        "the surge",
        id="the target utilization cannot be lower",
    ),
    pytest.param(
        table(tracked(low=90, high=4_000, actions=(WINDOW,))),
        writes(*[60] * 6, *[3_000] * LONG),
        Bottleneck.LATE_FLOOR,
        "the floor of table write is 3,500, enough for the 3,000 units/s that it needs, but rises too late: raise "
        "it earlier",
        id="a window that opens with the surge",
    ),
    pytest.param(
        CAPPED,
        writes(*[800] * LONG),
        Bottleneck.MAXIMUM,
        "table write needs up to 800 units/s, more than its maximum on-demand throughput: raise or remove the maximum",
        id="maximum of an on-demand table",
    ),
    pytest.param(
        COLD,
        writes(*[4_700] * LONG),
        Bottleneck.PREVIOUS_PEAK,
        "table write needs up to 4,700 units/s, more than its warm throughput and more than twice its previous "
        "peak: raise the warm throughput ahead of the surge, or let traffic take 30 minutes to double",
        id="twice the previous peak on demand",
    ),
    pytest.param(
        _with_keys(table(TargetSetup.fixed(1_800)), KeyDistribution.uniform(), mark=0),
        writes(*[100] * 5, *[2_900] * 2),
        Bottleneck.PARTITIONS,
        "table write needs more than the 1,000 units/s of a partition from some partitions, but from no single "
        "key: raise the high-water mark, which adds partitions",
        id="partitions at their limit with even keys",
    ),
    pytest.param(
        _with_keys(READ_TABLE, HOT),
        _reads(*[3_600] * LONG),
        Bottleneck.HOT_READS,
        "one key needs more than the 3,000 units/s of a partition, so more capacity of table read does not help: "
        "spread the key over shards, or put a cache in front of it",
        id="hot key of reads",
    ),
    pytest.param(
        _with_keys(table(TargetSetup.fixed(5_000)), HOT),
        writes(*[1_200] * LONG),
        Bottleneck.HOT_WRITES,
        "one key needs more than the 1,000 units/s of a partition, so more capacity of table write does not help: "
        "spread the key over shards",
        id="hot key of writes",
    ),
    pytest.param(
        _with_keys(ON_DEMAND, HOT),
        writes(*[1_300] * LONG),
        Bottleneck.HOT_WRITES,
        "one key needs more than the 1,000 units/s of a partition, so more capacity of table write does not help: "
        "spread the key over shards",
        id="hot key on demand",
    ),
    pytest.param(
        table(TargetSetup.fixed(5_000), indexes=(_index(TargetSetup.fixed(5_000), HOT),)),
        writes(*[1_500] * LONG),
        Bottleneck.HOT_INDEX_KEY,
        "an index throttles the table's writes: one key needs more than the 1,000 units/s of a partition, so more "
        "capacity of index 'by_status' write does not help: give the index a key with more values, such as the "
        "value with the number of a shard",
        id="hot key of an index with capacity to spare",
    ),
    pytest.param(
        table(TargetSetup.fixed(5_000), indexes=(_index(TargetSetup.fixed(110)),)),
        writes(*[400] * LONG),
        Bottleneck.FIXED,
        "an index throttles the table's writes: index 'by_status' write needs up to 400 units/s, and nothing "
        "scales its capacity of 110: raise the capacity, or have auto scaling scale it",
        id="index behind its table",
    ),
    pytest.param(
        table(TargetSetup.fixed(1_100), quota_units=1_100),
        writes(*[100] * 2, *[9_000] * LONG),
        Bottleneck.QUOTA,
        "table write needs up to 9,000 units/s, more than the account's quotas allow: have AWS raise them, then "
        "give the new ones with --table-quota and --account-quota",
        id="quota of a table",
    ),
    pytest.param(
        table(tracked(low=900, high=3_000), quota_units=1_200),
        writes(*[100] * 2, *[1_700] * 30),
        Bottleneck.QUOTA,
        "table write needs up to 1,700 units/s, more than the account's quotas allow: have AWS raise them, then "
        "give the new ones with --table-quota and --account-quota",
        id="quota in the way of auto scaling",
    ),
    pytest.param(
        _with_keys(ON_DEMAND, KeyDistribution.uniform(), mark=90_000),
        writes(*[50_000] * LONG),
        Bottleneck.QUOTA,
        "table write needs up to 50,000 units/s, more than the account's quotas allow: have AWS raise them, then "
        "give the new ones with --table-quota and --account-quota",
        id="quota on demand",
    ),
]


@pytest.mark.parametrize(("setup", "traffic", "bottleneck", "text"), ROWS)
def test_remedy_follows_from_the_situation(
    setup: TableSetup, traffic: Traffic, bottleneck: Bottleneck, text: str
) -> None:
    run = run_policy("declared", setup, traffic)
    first = remedies(run)[0]
    assert (first.bottleneck, first.text) == (bottleneck, text)


def test_each_row_of_the_table_is_tested() -> None:
    # the audit's test reads the last one
    assert {row.values[2] for row in ROWS} == set(Bottleneck) - {Bottleneck.BETWEEN_MINUTES}
    assert set(REMEDIES) == set(Bottleneck)


def test_throttling_is_divided_by_situation_and_adds_up() -> None:
    index = _index(TargetSetup.fixed(1_500), HOT)
    run = run_policy("declared", table(tracked(low=90, high=1_700), indexes=(index,)), writes(70, 800, *[2_600] * 40))
    found = remedies(run)
    assert [(each.target.label, each.cause, each.bottleneck) for each in found] == [
        ("table write", ThrottleCause.PROVISIONED, Bottleneck.FLOOR),
        ("table write", ThrottleCause.PROVISIONED, Bottleneck.CEILING),
        ("index 'by_status' write", INDEX, Bottleneck.HOT_INDEX_KEY),
    ]
    by_cause: dict[Cause, float] = {}
    for each in found:
        by_cause[each.cause] = by_cause.get(each.cause, 0.0) + each.units
    assert by_cause == pytest.approx(run.throttled_by_cause())


def test_remedies_of_reads_and_writes_are_apart() -> None:
    counts = {Stream(None, READ): [7_200] * 9, Stream(None, WRITE): [48_000] * 9}
    run = run_policy(
        "declared", table(tracked(low=90, high=300)), Traffic.from_counts("made", counts, bin_seconds=60, start=START)
    )
    assert [(each.target.label, each.bottleneck) for each in remedies(run)] == [
        ("table write", Bottleneck.CEILING),
        ("table read", Bottleneck.FIXED),
    ]


def test_nothing_throttled_needs_no_remedy() -> None:
    assert remedies(run_policy("declared", table(), writes(*[10] * 9))) == []
