"""Hours on demand as a policy: its rules, and that its simulation is the simulator's, but for the switches."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.modes import openings, run_hours
from highwater.core import Dimension
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.simulation import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.traffic import Stream, Traffic

_usd = st.integers(0, 40).map(float)
_hours = st.lists(st.tuples(_usd, _usd), min_size=24, max_size=24 * 12)
_back = st.sampled_from([1, 7])
WRITE = TargetSetup(units=1, min=2, max=9_000)
TABLE = TableSetup(
    name="orders",
    resources=(ResourceSetup(index=None, read=TargetSetup.fixed(1), write=WRITE, warm_write_units=9_000),),
)


def _openings(hours: list[tuple[float, float]], days_back: int) -> list[range]:
    return openings([own for own, _ in hours], [other for _, other in hours], days_back)


@settings(max_examples=200, deadline=None)
@given(_hours, _back)
def test_there_are_never_five_switches_in_a_day(hours: list[tuple[float, float]], days_back: int) -> None:
    windows = _openings(hours, days_back)
    for first, fifth in zip(windows, windows[4:], strict=False):
        # an hour more than a day: a change that is under way delays a switch by minutes
        assert fifth.start - first.start > 24
    for before, after in pairwise(windows):
        assert before.start < before.stop < after.start, "an hour between two windows is provisioned"


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(_usd, _usd, st.integers(0, 200)), min_size=72, max_size=72))
def test_a_simulated_table_is_not_switched_more_often(hours: list[tuple[float, float, int]]) -> None:
    windows = _openings([(own, other) for own, other, _ in hours], 1)
    run = run_hours(TABLE, _traffic([60.0 * 10 * ten for _, _, ten in hours for _ in range(60)]), windows)
    begun = [at for at, units in run.target(Dimension.WRITE).capacity if units == 0]
    assert len(begun) == len(windows)
    assert all(fifth - first > 86_400 for first, fifth in zip(begun, begun[4:], strict=False))


@settings(max_examples=200, deadline=None)
@given(_hours, _back, st.integers(1, 11), st.data())
def test_hours_of_a_day_do_not_depend_on_what_comes_after_the_hour_before_it(
    hours: list[tuple[float, float]], days_back: int, day: int, data: st.DataObject
) -> None:
    known, ends = day * 24 - 1, (day + 1) * 24
    rest = len(hours) - known
    others = data.draw(st.lists(st.tuples(_usd, _usd), min_size=rest, max_size=rest)) if rest > 0 else []
    chosen, again = (
        {hour for window in _openings(each, days_back) for hour in window if hour < ends}
        for each in (hours, [*hours[:known], *others])
    )
    assert chosen == again


def test_hours_are_those_of_the_day_or_the_week_before() -> None:
    own = [1.0] * (24 * 9)
    own[30] = own[31] = 20.0
    other = [2.0] * len(own)
    assert _openings(list(zip(own, other, strict=True)), 1) == [range(54, 56)]
    assert _openings(list(zip(own, other, strict=True)), 7) == [range(198, 200)]


def _traffic(counts: list[float]) -> Traffic:
    """Units of each minute, from half past two in the morning on."""
    start = datetime(2026, 1, 5, 2, 30, tzinfo=UTC)
    return Traffic.from_counts("orders", {Stream(None, Dimension.WRITE): counts}, bin_seconds=60, start=start)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 200), min_size=3, max_size=9))
def test_without_hours_it_is_target_tracking(tens: list[int]) -> None:
    traffic = _traffic([60.0 * 10 * ten for ten in tens for _ in range(25)])
    run, native = run_hours(TABLE, traffic, []), run_policy("native:70", TABLE, traffic)
    assert (run.targets, run.decreases, run.bill.per_month) == (native.targets, native.decreases, native.bill.per_month)


def test_switches_take_their_time_and_each_mode_is_billed_until_they_end() -> None:
    """Windows from 4 to 6 and from 8 to 9, at 210 units a second."""
    run = run_hours(TABLE, _traffic([210.0 * 60] * 8 * 60), [range(2, 4), range(6, 7)])
    write = run.target(Dimension.WRITE)
    four, eight = 90 * 60, 330 * 60
    assert list(write.capacity) == [
        (0, 300),
        (four - 180 + 150, 0),
        (four + 2 * 3600 + 113, 300),
        (eight - 180 + 5, 0),
        (eight + 3600 + 7, 300),
    ]
    # 2 to 11 o'clock
    assert write.hour_peaks == (300, 300, 0, 0, 300, 300, 0, 300, 300)
    requested = 210 * (30 + 2 * 3600 + 113 + 175 + 3600 + 7)
    assert run.bill.on_demand == requested * 0.625 / 1e6
    assert run.throttled_units == 0
