"""Regret: what target tracking would have cost and throttled, and what that lets the scaler grant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from highwater.core import Bounds, Capacity, Dimension, Target, Window
from highwater.core.plan.plan import TargetWindow
from highwater.core.scaler.regret import PastSeries, Regret, past_of, planned_by_minute

# 26 Nov 2026, midnight UTC
FIRST = int(datetime(2026, 11, 26, tzinfo=UTC).timestamp()) // 60
PLANNED = Bounds(5, 4_000)
# 70 units per second: target tracking at 70 % has 100
CALM = 70 * 60


def series(
    demand: Sequence[int], capacity: int | None = 100, *, first: int = FIRST, planned: Bounds = PLANNED
) -> PastSeries:
    past = PastSeries(first)
    for units in demand:
        past.append(units, 0, capacity, planned)
    return past


def regret_of(past: PastSeries, minutes: int = 1_440) -> Regret:
    found = past.regret(minutes)
    assert found is not None
    return found


def regret(demand: Sequence[int], capacity: int | None = 100) -> Regret:
    return regret_of(series(demand, capacity))


def test_nothing_is_known_without_minutes() -> None:
    assert series([]).regret(1_440) is None


def test_capacity_is_billed_by_the_highest_of_each_hour() -> None:
    past = PastSeries(FIRST + 50)
    for minute in range(80):
        past.append(CALM, 0, {3: 130, 40: 170}.get(minute, 90), PLANNED)
    assert past.regret(1_440) == Regret(100, 130 + 170 + 90, 300, 0, hours=3, highest_units=CALM)
    assert past.regret(10) == Regret(100, 90, 100, 0, hours=1, highest_units=CALM)


def test_unknown_capacity_is_taken_for_that_of_target_tracking() -> None:
    assert regret([CALM] * 60, None) == Regret(100, 100, 100, 0, hours=1, highest_units=CALM)


def test_target_tracking_raises_after_two_minutes_above_its_target() -> None:
    one = [*[CALM] * 20, 9_000, CALM]
    assert regret(one).capacity_units == 100, "a single minute"
    two = [*[CALM] * 20, 8_400, 9_030]
    # 9,030 units in a minute are 150.5 per second
    assert regret(two).capacity_units == 215
    assert regret([*two, 9_030, 9_030, 9_030]).native_unit_hours == 100, "it is there four minutes later"
    assert regret([*two, 9_030, 9_030, 9_030, 9_030]).native_unit_hours == 215


def test_target_tracking_lowers_after_fifteen_minutes_far_below_its_target() -> None:
    low = 49 * 60
    assert regret([*[CALM] * 20, *[low] * 14]).capacity_units == 100
    assert regret([*[CALM] * 20, *[low] * 15]).capacity_units == 70
    assert regret([*[CALM] * 20, *[50 * 60] * 30]).capacity_units == 100, "within twenty points"


def test_target_tracking_stays_within_the_plan() -> None:
    past = series([CALM] * 70, planned=Bounds(120, 150))
    assert past.regret(1_440) == Regret(120, 200, 240, 0, hours=2, highest_units=CALM)
    found = regret_of(series([CALM] * 70, planned=Bounds(5, 80)))
    assert (found.capacity_units, found.native_unit_hours) == (80, 160)


def test_target_tracking_throttles_what_the_bucket_does_not_serve() -> None:
    # a full bucket of 300 seconds has 30,000 units
    assert regret([*[CALM] * 20, 36_000, CALM]).native_throttled_units == 0
    assert regret([*[CALM] * 20, 36_017, CALM]).native_throttled_units == 17
    assert regret([*[CALM] * 5, 36_019, CALM]).native_throttled_units == 19, "in the first minutes too"


def test_throttle_says_how_much_burst_target_tracking_would_have_had() -> None:
    past = series([CALM] * 20)
    # 90 seconds of 100 units above capacity, and then no more
    past.append(15_000, 7, 100, PLANNED)
    for _ in range(10):
        past.append(CALM, 0, 100, PLANNED)
    past.append(15_011, 0, 100, PLANNED)
    assert regret_of(past).native_throttled_units == 15_011 - 6_000 - 9_000 + 0
    assert past.burst_seconds(1_440) == 90


def test_throttle_is_forgotten_after_a_day() -> None:
    past = series([CALM] * 20)
    past.append(15_000, 7, 100, PLANNED)
    for _ in range(1_500):
        past.append(CALM, 0, 100, PLANNED)
    past.append(36_017, 0, 100, PLANNED)
    assert regret_of(past, 60).native_throttled_units == 17


def test_busiest_minute_is_of_what_was_consumed_in_the_hours_that_count() -> None:
    past = series([9_030, *[CALM] * 119])
    past.append(5_010, 7_000, 100, PLANNED)
    days = [past.regret(minutes) for minutes in (1_440, 60)]
    assert [day.highest_units for day in days if day is not None] == [9_030, 5_010]


def test_first_minutes_do_not_make_a_spike_the_usual_demand() -> None:
    assert regret([CALM, CALM, 40_000, *[CALM] * 30]).capacity_units == 100


def test_capacity_is_known_between_two_datapoints_and_the_higher_counts() -> None:
    consumed = [600, 600, 1_320, 600, 600, 600, 1_320]
    planned = [PLANNED] * 7

    def learned(provisioned: list[int | None], throttled: Sequence[int] = (0,) * 7) -> int:
        return past_of(FIRST, consumed, throttled, provisioned, planned).burst_seconds(7)

    provisioned: list[int | None] = [10, None, None, None, None, 11, None]
    assert learned(provisioned) == 660 // 11 * 2, "minute 6 waits for its next datapoint"
    assert learned([10, *[None] * 6]) == 60
    assert learned([None] * 7) == 60
    assert learned(provisioned, [0, 0, 3, 0, 0, 0, 0]) == 60


def test_plan_by_minute_has_its_windows() -> None:
    window = Window.daily("load", start="00:03", end="00:05", timezone="UTC", write_min=70, lead=timedelta(0))
    capacity = Capacity.autoscaled(min_capacity=20, max_capacity=90)
    target = Target(None, Dimension.WRITE, capacity, (TargetWindow(window, 70, None),))
    low, high = Bounds(20, 90), Bounds(70, 90)
    assert planned_by_minute(target, FIRST + 1, 6) == [low, low, high, high, low, low]


def worth(spent: int, native: int, throttled: int, hours: int = 24, price: int = 104) -> int | None:
    return Regret(30, spent, native, throttled, hours).most_units(price)


def test_a_tenth_more_is_nothing_to_regret() -> None:
    assert worth(1_100, 1_000, 0) is None
    assert worth(1_101, 1_000, 0) == 30


def test_the_tenth_of_a_new_table_is_that_of_a_whole_day() -> None:
    assert worth(220, 100, 0, hours=2) is None
    assert worth(221, 100, 0, hours=2) == 30
    assert worth(1_101, 1_000, 0, hours=25) == 30


def test_throttles_that_target_tracking_would_have_had_are_worth_their_price() -> None:
    # a unit-hour buys 1,040 requests on demand, so 10 throttled units at a price of 104 are worth one
    assert worth(1_500, 1_000, 5_000) is None
    assert worth(1_501, 1_000, 5_000) == 30 + 500 // 24
    assert worth(1_501, 1_000, 5_000, price=0) == 30


def test_newest_minutes_raise_target_tracking_once_two_are_above_its_target() -> None:
    regret = Regret(100, 1_101, 1_000, 0)

    def most(*newest: int) -> int | None:
        return regret.most_units(104, newest)

    assert most() == most(9_000) == most(CALM, 9_000, CALM, 9_000) == most(CALM, CALM) == 100
    # the later of the two: 9,030 units in a minute are 150.5 per second
    assert most(8_400, 9_030) == 215
    assert most(9_030, 8_400) == 200
    # 8,820 units are within 70 % of 215
    assert most(8_400, 9_030, 8_820, 8_820) == 215
    assert most(8_400, 9_030, 9_240, 9_240, CALM, 0) == 220, "and lowers for none"
    assert Regret(100, 1_100, 1_000, 0).most_units(104, [9_000, 9_000]) is None


def test_share_above_target_tracking_is_told_in_percent() -> None:
    assert Regret(30, 1_419, 1_000, 0).over_percent == 41
    assert Regret(30, 7, 0, 0).over_percent == 600


@given(st.lists(st.integers(0, 60_000), min_size=1, max_size=200), st.integers(1, 3_000), st.integers(0, 59))
def test_sums_are_those_of_the_hours(demand: list[int], capacity: int, minute: int) -> None:
    """What is summed up minute by minute is what each hour alone says."""
    found = regret_of(series(demand, capacity, first=FIRST + minute), len(demand))
    assert found.hours == (FIRST + minute + len(demand) - 1) // 60 - FIRST // 60 + 1
    assert found.spent_unit_hours == capacity * found.hours
    assert PLANNED.min * found.hours <= found.native_unit_hours <= PLANNED.max * found.hours
    assert 0 <= found.native_throttled_units <= sum(demand)
    assert PLANNED.min <= found.capacity_units


@given(st.integers(0, 10_000), st.integers(1, 10_000), st.integers(0, 10**6), st.integers(1, 25), st.integers(0, 10**4))
def test_more_is_never_worth_less_where_more_would_be_throttled(
    spent: int, native: int, throttled: int, hours: int, price: int
) -> None:
    most = worth(spent, native, throttled, hours, price)
    more = worth(spent, native, throttled + 1_000, hours, price)
    assert more is None or (most is not None and most <= more)
