"""The burst bucket: what a table has shown of it, what it serves, and which spikes are expected."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from highwater.core.scaler import Observation
from highwater.core.scaler.attention import needs_past
from highwater.core.scaler.burst import (
    BucketDrain,
    DrainSeries,
    capacity_for_spikes,
    capacity_to_carry,
    drains,
    expected_drain,
    has_spikes,
    highest_average,
    is_expected,
    is_expected_so_far,
    without_regular_spikes,
    without_spikes,
)

# units a minute: 10 units per second, and spikes of 55
BASE, SPIKE = 600, 3_300
HOUR = [*[BASE] * 30, SPIKE, *[BASE] * 29]
units = st.none() | st.integers(0, 90_000)


def learned(*minutes: tuple[int, int, int | None]) -> int:
    series = DrainSeries()
    for minute in minutes:
        series.append(*minute)
    return series.burst_seconds(0)


def test_table_without_drains_is_believed_to_have_a_minute() -> None:
    assert learned() == 60
    assert learned((600, 0, 10), (599, 0, 10)) == 60


def test_drain_that_went_well_doubles_what_is_believed() -> None:
    # 700 units above 10 units per second are 70 seconds
    assert learned((1_300, 0, 10)) == 140
    assert learned((1_300, 0, 10), (600, 0, 10), (900, 0, 10)) == 200, "one drain of 100 seconds in three minutes"
    assert learned((4_000, 0, 10)) == 300, "documented, and no more"


def test_a_minute_below_capacity_fills_the_bucket() -> None:
    assert learned((1_300, 0, 10), (0, 0, 10), (1_200, 0, 10)) == 140
    assert learned((1_300, 0, 10), (500, 0, 10), (1_200, 0, 10)) == 240


def test_throttle_says_how_much_there_was_for_as_long_as_it_is_known() -> None:
    throttled = (1_900, 7, 10)
    assert learned((4_000, 0, 10), throttled) == 300, "470 seconds were drained until then"
    assert learned(throttled) == 130
    quiet = [(0, 0, 10)] * 15
    assert learned(throttled, *quiet, (4_000, 0, 10)) == 130, "no step up while it is known"
    assert learned((601, 7, 10), *quiet, (4_000, 0, 10)) == 60, "never below a minute"


def test_capacity_that_is_not_known_teaches_nothing() -> None:
    assert learned((4_000, 0, None), (700, 0, 10)) == 60


def test_drains_before_the_start_are_forgotten() -> None:
    series = DrainSeries()
    for minute in ((1_300, 0, 10), *[(0, 0, 10)] * 15, (1_000, 0, 10)):
        series.append(*minute)
    assert (series.burst_seconds(0), series.burst_seconds(1), len(series)) == (140, 80, 17)


def test_capacity_that_carries_demand_through_the_bucket() -> None:
    assert capacity_to_carry([], 60) == 0
    # 85 % of 60 seconds are 51: 1,110 units in a minute and 51 seconds
    assert capacity_to_carry([0, 1_110, 0], 60) == 10
    assert capacity_to_carry([0, 1_111, 0], 60) == 11
    assert capacity_to_carry([1_110, 610, 600], 60) == 11, "the bucket has no time to fill"
    assert capacity_to_carry([0, 3_150, 0], 300) == 10


@given(st.lists(units, max_size=25), st.sampled_from([60, 100, 300]))
def test_capacity_that_carries_is_the_least(demand: list[int | None], burst: int) -> None:
    seconds = burst * 85 // 100
    needed = max(
        (
            -(-sum(each or 0 for each in demand[first:last]) // (60 * (last - first) + seconds))
            for first in range(len(demand))
            for last in range(first + 1, len(demand) + 1)
        ),
        default=0,
    )
    assert capacity_to_carry(demand, burst) == needed


@given(st.lists(units, max_size=40), st.integers(0, 400))
def test_drains_are_apart_and_take_what_is_above_capacity(demand: list[int | None], capacity: int) -> None:
    found = drains(demand, capacity)
    assert sum(drain.units for drain in found) <= sum(each or 0 for each in demand)
    for drain in found:
        assert drain.excess_units == drain.units - 60 * capacity * drain.minutes > 0
        assert 60 * capacity < drain.highest_units <= drain.units


def test_drain_ends_with_a_full_bucket_or_three_calm_minutes() -> None:
    assert drains([600, 700, 500, 800], 10) == [BucketDrain(100, 1, 700, 700), BucketDrain(200, 1, 800, 800)]
    assert drains([900, 600, 600, 600, 900], 10) == [BucketDrain(300, 1, 900, 900)] * 2
    assert drains([900, 600, 600, 900], 10) == [BucketDrain(600, 4, 3_000, 900)]
    assert drains([None, 600], 10) == []


def test_highest_average_of_ten_minutes() -> None:
    assert highest_average([]) == 0
    assert highest_average([600, None, 601]) == 7
    assert highest_average([*[0] * 20, *[600] * 9, 1_200, 600]) == 11


def test_spike_that_came_before_is_expected_again() -> None:
    assert has_spikes(HOUR)
    assert not has_spikes([*HOUR, *[BASE] * 46])
    # 55 units per second for a minute, from a bucket of 51 and of 255 seconds
    assert capacity_for_spikes([*HOUR, *HOUR], 11, 60) == 30
    assert capacity_for_spikes([*HOUR, *HOUR], 11, 300) == 11
    often = [*[BASE] * 9, SPIKE] * 7
    # and time to fill again: seven times 2,640 units and a quarter more in 75 minutes
    assert capacity_for_spikes(often, 11, 300) == 16
    assert capacity_for_spikes(HOUR, 11, 60) == 11, "it came once"
    assert capacity_for_spikes(HOUR, 11, 60, times_before=0) == 30
    assert capacity_for_spikes([*HOUR[:-29], *[BASE] * 20, 2 * SPIKE], 11, 60) == 11, "two spikes that are not alike"
    assert capacity_for_spikes([*HOUR, *[BASE] * 50, *[SPIKE] * 11], 11, 60) == 11, "eleven minutes are no spike"


def test_minutes_without_spikes_are_those_that_came_before() -> None:
    assert without_spikes([*HOUR, *HOUR], 40) == [BASE] * 39
    assert without_spikes(HOUR, 40) is None
    assert without_spikes([*HOUR, *[BASE] * 40], 40) is None


def test_minutes_without_regular_spikes_are_those_whose_spikes_came_three_times_alike() -> None:
    window = HOUR[20:40]
    assert without_regular_spikes([*HOUR * 3, *window], 20) == [BASE] * 19
    assert without_regular_spikes([*HOUR * 2, *window], 20) == window, "it came twice before"
    # 2,400 units above 15 a second, the highest average of ten minutes, and once more than a tenth more
    taller = [*HOUR * 2, *HOUR[:30], SPIKE + 250, *HOUR[31:], *window]
    assert without_regular_spikes(taller, 20) == window, "one of them was larger"
    longer = [*HOUR * 2, *HOUR[:30], *[SPIKE] * 11, *HOUR[31:], *window]
    assert without_regular_spikes(longer, 20) == window, "one of them was no spike"
    assert without_regular_spikes([*HOUR * 3, *[BASE] * 20], 20) == [BASE] * 20
    assert without_regular_spikes([], 20) == []


def test_drain_is_expected_if_it_is_like_those_before_and_the_bucket_serves_them() -> None:
    until_now = [*HOUR, *HOUR[:31]]
    assert is_expected(until_now, 11, 300)
    assert not is_expected(until_now, 11, 200), "of the 2,640 units and a tenth, 2,200 are there"
    assert not is_expected([*until_now, SPIKE], 11, 300), "it lasts longer"
    assert not is_expected(HOUR[:31], 11, 300), "the first"
    assert is_expected([BASE], 11, 60), "no drain"


def test_drain_under_way_is_expected_to_be_like_the_largest_of_the_last_three() -> None:
    before = [*HOUR, *HOUR[:30]]
    # 2,640 units above a capacity of 660 a minute, and a tenth
    assert expected_drain(before, [], 11) == 2_904
    assert expected_drain(before, [660 + 2_904], 11) == 2_904
    assert expected_drain(before, [660 + 2_905], 11) is None, "it is larger"
    assert expected_drain(before, [900, 900], 11) is None, "spikes took a minute"
    assert expected_drain([*before, 900], [], 11) == 2_904 - 240, "what it took until CloudWatch's newest minute"
    assert expected_drain([BASE] * 60, [700], 11) is None, "the first"
    assert expected_drain([BASE] * 60, [BASE], 11) is None, "there is none"
    assert expected_drain([*before, SPIKE], [BASE, BASE], 11) == 2_904 - 2_640, "the minutes after it make it no longer"
    assert expected_drain([*before, SPIKE], [BASE, 900, 900], 11) is None, "but what is above the capacity again does"
    small, large = [*[BASE] * 20, 700], [*[BASE] * 20, SPIKE]
    assert [expected_drain([*large, *small * times, BASE], [], 11) for times in (2, 3)] == [2_904, 44]


def test_drain_within_minutes_is_expected_to_be_like_those_above_the_hours_highest_average() -> None:
    # 900 units in a minute of each ten are within a capacity of 15 a second, whatever their highest second was
    before = [*[BASE] * 5, 900, *[BASE] * 4] * 6
    # the average of ten minutes is 11 a second: 240 units above it, and a tenth
    assert expected_drain(before, [], 15) == 264
    assert expected_drain(before, [660 + 264], 15) == 264
    assert expected_drain(before, [660 + 265], 15) is None, "it is larger"
    assert expected_drain(before, [700, 700], 15) is None, "they took a minute"
    # minutes above the capacity count alone, where there are any
    assert expected_drain([*before, 930, *[BASE] * 5], [], 15) == 33
    assert is_expected_so_far(before, [900], 15, 60)
    assert not is_expected_so_far(before, [900], 15, 17), "it would not hold them"


def test_drain_under_way_is_left_to_the_bucket_as_far_as_it_is_filled() -> None:
    before = [*HOUR, *HOUR[:30]]
    # 11 units a second hold 3,300, 2,904 of them are expected to be taken
    assert is_expected_so_far(before, [BASE], 11, 300)
    assert not is_expected_so_far(before, [BASE], 11, 263), "11 units less than are expected"
    assert is_expected_so_far(before, [BASE], 11, 264)
    # the last spike was ten minutes ago, and a minute fills 60 units
    emptied = [*before, SPIKE, *[BASE] * 10]
    assert not is_expected_so_far(emptied, [BASE], 11, 300)
    assert is_expected_so_far([*emptied, *[BASE] * 30], [BASE], 11, 300)
    assert not is_expected_so_far(before, [900, 900], 11, 300), "it is longer"


def test_past_matters_after_a_spike_and_to_fleets_that_pulse() -> None:
    assert needs_past(Observation.of(7, HOUR), has_pulses=False)
    assert not needs_past(Observation.of(7, [BASE]), has_pulses=False)
    assert needs_past(Observation.of(7, [BASE]), has_pulses=True)
