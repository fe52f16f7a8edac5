"""Each policy does what its source says: the numbers of its algorithm, seen in a run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from highwater_lab.policies.catalogue import POLICY_NAMES, PolicyError, find_policy, run_policy
from highwater_lab.simulation import Run, TableSetup, TargetSetup
from tests.simulation.tables import WRITE, table, tracked, writes

NOON = datetime(2026, 11, 3, 12, tzinfo=UTC)


def _changes(run: Run) -> list[tuple[int, int]]:
    return list(run.target(WRITE).capacity[1:])


def _fixed_start(units: int, low: int = 1, high: int = 40_000) -> TableSetup:
    """A table that a scaler may move, with what it starts with."""
    return table(TargetSetup(units=units, min=low, max=high), starts_settled=False)


def test_native_tracks_every_target_and_knows_no_windows() -> None:
    setup = table(tracked(low=100, target=90))
    run = run_policy("native:50", setup, writes(*[60] * 12))
    assert run.target(WRITE).capacity[0] == (0, 120), "60 at 50 %"
    assert run.policy == "native:50"


def test_on_demand_pays_once_only_for_marks_above_what_it_has_for_free() -> None:
    """A mark of 13,000 reads and 3,000 writes: on demand a new table takes 12,000 and 4,000."""
    setup = table(tracked())
    resource = replace(
        setup.resources[0],
        warm_read_units=13_000,
        warm_write_units=3_000,
        bought_read_units=12_999,
        bought_write_units=2_999,
    )
    run = run_policy("on-demand", replace(setup, resources=(resource,)), writes(*[60] * 12))
    assert run.bill.warm_up == pytest.approx(1_000 * 0.00013)


def test_on_demand_has_no_capacity() -> None:
    run = run_policy("on-demand", table(tracked()), writes(*[60] * 12))
    assert run.target(WRITE).capacity == ((0, 0),)
    assert run.bill.on_demand == pytest.approx(60 * 720 * 0.625 / 1e6)
    assert run.bill.provisioned == 0


def test_fixed_is_the_busiest_minute_or_what_was_given() -> None:
    traffic = writes(5, 70, 20)
    assert run_policy("fixed", table(tracked()), traffic).target(WRITE).capacity == ((0, 70),)
    assert run_policy("fixed:33", table(tracked()), traffic).target(WRITE).capacity == ((0, 33),)


def test_clairvoyant_carries_what_the_bucket_is_left_with() -> None:
    # an hour at 100/s, an hour idle, ten minutes of 1,000/s in the third
    traffic = writes(*[100] * 60, *[0] * 60, *[1_000] * 10, *[0] * 50)
    run = run_policy("clairvoyant", table(tracked()), traffic)
    # 3,600 s at 100 of 300 + 3,599 s of capacity; 600 s at 1,000 of what a sixteenth of the bucket leaves, to which the
    # 300 units of the idle hour are rounded up
    assert run.target(WRITE).hour_peaks == (-(-3_600 * 100 // 3_899), 1, -(-(600_000 - 300_000 // 16) // 600))
    assert run.throttled_units == 0
    # steady demand needs its capacity less the first bucket: 28,700, and half a percent less by what is rounded up
    steady = run_policy("clairvoyant", table(tracked()), writes(*[1_200] * 60 * 24))
    assert sum(steady.target(WRITE).hour_peaks) == 28_558


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("native:19", "policy 'native:19': expected a target utilization in percent from 20 to 90, got '19'"),
        ("native:", "policy 'native:': expected a target utilization in percent from 20 to 90, got ''"),
        (
            "highwater-floor:91",
            "policy 'highwater-floor:91': expected a target utilization in percent from 20 to 90, got '91'",
        ),
        ("fixed:0", "policy 'fixed:0': expected a number of units from 1 to 10,000,000, got '0'"),
        (
            "highwater-floor-pulse:101",
            "policy 'highwater-floor-pulse:101': expected a share of the fleet that pulses in percent from 0 to 100, "
            "got '101'",
        ),
        ("magic", f"unknown policy 'magic', allowed: {', '.join(POLICY_NAMES)}"),
        (
            "on-demand:5",
            f"unknown policy 'on-demand:5', allowed: {', '.join(POLICY_NAMES)}; did you mean on-demand?",
        ),
    ],
)
def test_policy_that_there_is_none_of(name: str, message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        find_policy(name)
    assert str(refused.value) == message


def test_each_policy_has_a_name_and_a_source() -> None:
    for name in POLICY_NAMES:
        if name != "clairvoyant":
            policy = find_policy(name.replace("PERCENT", "45").replace("UNITS", "9"))
            assert policy.name == name.replace("PERCENT", "45").replace("UNITS", "9")
            assert policy.source
