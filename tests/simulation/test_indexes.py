"""Indexes: what they cost, and how they hold their table back."""

from __future__ import annotations

from dataclasses import replace

from highwater.core.throttles import ThrottleCause
from highwater_lab.physics import INDEX
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.simulation import EventKind, ResourceSetup, TargetSetup
from highwater_lab.traffic import Stream, Traffic
from tests.simulation.tables import READ, START, WRITE, table, tracked, writes


def _index(units: int, share: int = 100) -> ResourceSetup:
    return ResourceSetup(
        index="by_status",
        read=TargetSetup.fixed(3),
        write=TargetSetup.fixed(units),
        warm_write_units=40_000,
        write_share_percent=share,
    )


def test_index_with_too_little_holds_the_tables_writes_back() -> None:
    setup = table(TargetSetup.fixed(1_000), indexes=(_index(200),))
    run = run_policy("declared", setup, writes(*[500] * 20))
    own, index = run.target(WRITE), run.target(WRITE, "by_status")
    assert own.consumed == index.consumed
    # the index's bucket: 300 seconds of 200, and 200 a second after the first
    assert own.consumed_units == 200 * 300 + 200 * (1_200 - 1)
    assert own.throttled_by_cause() == {INDEX: 500 * 1_200 - own.consumed_units}
    assert index.throttled_by_cause() == {ThrottleCause.PROVISIONED: 500 * 1_200 - own.consumed_units}
    assert run.throttled_units == own.throttled_units, "a write is throttled once"


def test_index_that_takes_a_share_needs_that_share_only() -> None:
    setup = table(TargetSetup.fixed(1_000), indexes=(_index(200, share=40),))
    run = run_policy("declared", setup, writes(*[500] * 20))
    assert run.throttled_units == 0
    assert run.target(WRITE, "by_status").consumed_units == 500 * 1_200 * 0.4


def test_table_that_throttles_writes_less_to_its_index() -> None:
    setup = table(TargetSetup.fixed(200), indexes=(_index(1_000),))
    run = run_policy("declared", setup, writes(*[500] * 20))
    assert run.target(WRITE).throttled_by_cause().keys() == {ThrottleCause.PROVISIONED}
    assert run.target(WRITE, "by_status").throttled_units == 0
    assert run.target(WRITE, "by_status").consumed == run.target(WRITE).consumed


def test_column_for_an_index_counts_instead_of_the_share() -> None:
    counts = {Stream(None, WRITE): [30_000.0] * 5, Stream("by_status", WRITE): [6_000.0, 0.0, 9_000.0, 6_000.0, 60.0]}
    traffic = Traffic.from_counts("made", counts, bin_seconds=60, start=START)
    run = run_policy("declared", table(TargetSetup.fixed(1_000), indexes=(_index(400),)), traffic)
    assert [quanta // 60 for quanta in run.target(WRITE, "by_status").consumed] == [6_000, 0, 9_000, 6_000, 60]


def test_reads_of_an_index_are_its_own() -> None:
    counts = {Stream("by_status", READ): [60.0 * 4] * 5}
    traffic = Traffic.from_counts("made", counts, bin_seconds=60, start=START)
    run = run_policy("declared", table(indexes=(_index(1),)), traffic)
    assert run.demanded_units == 4 * 300
    assert run.target(READ).consumed_units == 0


def test_account_quota_is_for_the_table_and_its_indexes_together() -> None:
    setup = table(tracked(low=100), indexes=(_index(9_000),), account_quota_units=9_700)
    traffic = Traffic.from_counts(
        "made", {Stream(None, WRITE): [6_000.0] * 5 + [36_000.0] * 20}, bin_seconds=60, start=START
    )
    run = run_policy("native:70", setup, traffic)
    refused = [e for e in run.events if e.kind is EventKind.REFUSED and e.index is None]
    # 600 at 70 % would be 858
    assert [e.text for e in refused[:1]] == ["the capacity is above the account's quota"]
    assert max(run.target(WRITE).capacity_by_minute()) <= 700
    roomy = run_policy("native:70", replace(setup, account_quota_units=9_858), traffic)
    assert not [e for e in roomy.events if e.kind is EventKind.REFUSED and e.index is None]
