"""Each policy of others does what its source says: the numbers of its algorithm, seen in a run."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

from benchmarks.policies import OTHERS, find_policy, run_policy
from highwater_lab.simulation import ResourceSetup, Run, TableSetup, TargetSetup
from highwater_lab.simulation.run import EventKind
from highwater_lab.traffic import Stream, Traffic
from tests.simulation.tables import READ, START, WRITE, table, tracked, writes

NOON = datetime(2026, 11, 3, 12, tzinfo=UTC)


def _changes(run: Run) -> list[tuple[int, int]]:
    return list(run.target(WRITE).capacity[1:])


def _fixed_start(units: int, low: int = 1, high: int = 40_000) -> TableSetup:
    """A table that a scaler may move, with what it starts with."""
    return table(TargetSetup(units=units, min=low, max=high), starts_settled=False)


def test_dynamic_dynamodb_goes_up_by_half_ten_minutes_late() -> None:
    run = run_policy("dynamic-dynamodb", _fixed_start(100), writes(*[95] * 30))
    # at 15:15 it sees the first five minutes: 95 % of 100
    assert _changes(run)[0] == (15 * 60 + 17, 150)


def test_dynamic_dynamodb_goes_down_by_half_and_not_when_idle() -> None:
    run = run_policy("dynamic-dynamodb", _fixed_start(1_000), writes(*[29] * 16))
    assert _changes(run) == [(15 * 60 + 17, 500)]
    assert _changes(run_policy("dynamic-dynamodb", _fixed_start(1_000), writes(*[0] * 30))) == []


def test_dynamodb_lambda_autoscale_adds_what_throttled() -> None:
    run = run_policy("dynamodb-lambda-autoscale", _fixed_start(100), writes(*[76] * 12))
    at, units = _changes(run)[0]
    assert (at, units) == (3 * 60 + 17, 130), "76 is above 75 %: 1.3 times what there is"
    throttling = run_policy("dynamodb-lambda-autoscale", _fixed_start(10), writes(*[5] * 3, *[2_000] * 10))
    first = _changes(throttling)[0]
    assert first[1] > 13 * 10, "0.7 of each minute's throttles on top"


def test_dynamodb_lambda_autoscale_spreads_four_decreases_over_the_day() -> None:
    midnight = datetime(2026, 11, 3, tzinfo=UTC)
    # each hour two thirds as much
    rates = [units for hour in range(24) for units in [20_000 * 2**hour // 3**hour] * 60]
    run = run_policy("dynamodb-lambda-autoscale", _fixed_start(30_000), writes(*rates, start=midnight))
    falls = [event.at for event in run.events if event.kind is EventKind.SCALE_IN]
    assert run.decreases == len(falls) == 4
    assert len(_changes(run)) > 4, "it lands at 100 %, and so goes up again the next minute"
    # the first after a fifth of the time to 23:30
    assert falls[0] >= 23.5 * 3600 / 5
    assert all(later - earlier >= 3_600 for earlier, later in pairwise(falls))


def test_better_dynamodb_scaling_jumps_to_what_was_asked_for() -> None:
    traffic = writes(*[50] * 5, *[3_500] * 20)
    ours = run_policy("better-dynamodb-scaling", table(tracked(low=100)), traffic)
    native = run_policy("native:70", table(tracked(low=100)), traffic)
    assert 5_000 in [units for _, units in _changes(ours)]
    assert _changes(ours)[0][0] < _changes(native)[0][0]
    assert ours.throttled_units < native.throttled_units


def test_its_python_port_lowers_once_an_hour_by_itself() -> None:
    traffic = writes(*[700] * 5, *[70] * 30)
    run = run_policy("improved-dynamodb-auto-scaling", table(tracked(low=10)), traffic)
    at, units = _changes(run)[0]
    assert units == 100
    # when the last busy minute has left its five, and not fifteen minutes later
    assert at < 15 * 60
    counts = {Stream(None, READ): [60.0 * 700] * 5 + [60.0 * 70] * 30}
    reads = Traffic.from_counts("made", counts, bin_seconds=60, start=START)
    both = TableSetup(name="Orders", resources=(ResourceSetup(index=None, read=tracked(low=10), write=tracked()),))
    assert run_policy("improved-dynamodb-auto-scaling", both, reads).target(READ).capacity[1][1] == 100


def test_trek10_adds_ten_and_lowers_every_six_hours() -> None:
    run = run_policy("trek10", _fixed_start(100), writes(*[85] * 10))
    assert _changes(run)[0] == (3 * 60 + 17, 110)
    late = datetime(2026, 11, 3, 11, tzinfo=UTC)
    run = run_policy("trek10", _fixed_start(1_000), writes(*[400] * 90, start=late))
    # 400 / 0.8 - 10 at noon, which is full again to 80 %
    assert _changes(run)[:2] == [(3_617, 490), (3_677, 500)]


def test_sprkem_keeps_five_units_ahead() -> None:
    run = run_policy("sprkem", _fixed_start(50), writes(*[60] * 10))
    assert _changes(run)[0][1] == 65
    run = run_policy("sprkem", _fixed_start(100), writes(*[40] * 10, start=NOON.replace(hour=2)))
    assert _changes(run)[0][1] == 40, "down to what is consumed"


def test_throttle_aware_lambda_takes_steps_while_it_throttles() -> None:
    run = run_policy("throttle-aware-lambda", _fixed_start(100), writes(*[3_000] * 26))
    # the bucket is gone after ten seconds, the rest of the minute throttles far more than a thousand
    assert _changes(run)[0] == (317, 1_100)
    calm = run_policy("throttle-aware-lambda", _fixed_start(1_000), writes(*[400] * 26))
    assert _changes(calm)[0][1] == 500, "400 at 80 %"


def test_step_cron_adds_a_fifth_by_day_and_goes_back_at_night() -> None:
    run = run_policy("step-cron", _fixed_start(100), writes(*[85] * 40, start=NOON))
    assert _changes(run)[0] == (15 * 60 + 17, 120)
    evening = datetime(2026, 11, 3, 23, tzinfo=UTC)
    run = run_policy("step-cron", _fixed_start(100), writes(*[85] * 30, *[10] * 90, start=evening))
    assert [units for _, units in _changes(run)] == [120, 100]


def test_each_policy_has_a_name_and_a_source() -> None:
    for name in OTHERS:
        assert find_policy(name).name == name
        assert find_policy(name).source
