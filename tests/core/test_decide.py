"""The scaler's decision: each stage by its numbers, the laws by property, and what CloudWatch and people do to it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from highwater.core import DecreaseBudget, Dimension
from highwater.core.scaler import (
    Limit,
    LimitCode,
    Observation,
    TargetState,
    decide,
    in_one_call,
    wanted_units,
)
from highwater.core.scaler.regret import Regret
from tests.core.decisions_to_make import DIRECT, FLOOR, LATE, NOW, granted, minute_of, seen, state, steady

# stages


def test_steady_demand_is_held_as_it_is() -> None:
    decision = decide(FLOOR, state(400), steady(200), now=NOW)
    assert decision.granted == decision.wanted == 200
    assert decision.reason == "peak of 200 units/s in the last 30 minutes"
    assert decision.limits == ()


def test_peak_counts_for_half_an_hour_and_no_longer() -> None:
    peak = [100 * 60]
    assert granted(400, steady(19, 60, [*peak, *[19 * 60] * 29])) == 100
    assert granted(400, steady(19, 60, [*peak, *[19 * 60] * 30])) == 28  # of cautious 70 %, after a jump


@pytest.mark.parametrize(("minute", "minutes"), [(0, 30), (28, 30), (29, 31), (57, 59), (58, 30), (59, 30)])
def test_peak_counts_through_an_hour_that_is_paid_for(minute: int, minutes: int) -> None:
    now = NOW.replace(minute=minute)
    # 78 is no jump from 50
    just, no_more = (steady(50, 90, [78 * 60, *[50 * 60] * after], now=now) for after in (minutes - 1, minutes))
    decision = decide(FLOOR, state(400), just, now=now)
    assert (decision.granted, decision.reason) == (78, f"peak of 78 units/s in the last {minutes} minutes")
    assert decide(FLOOR, state(400), no_more, now=now).granted == 50


def test_what_is_raised_leaves_a_little_room_and_what_is_held_does_not() -> None:
    assert granted(100, steady(194), DIRECT) == 200, "194 are 97 % of it"
    assert granted(200, steady(194), DIRECT) == 200, "and so it stays"
    assert granted(400, steady(194, now=LATE), DIRECT, LATE) == 194
    assert granted(100, steady(194), DIRECT, baseline=194) == 194, "the plan's floor is not raised"
    assert granted(100, steady(194)) == 194, "target tracking leaves room of its own"


def test_throttled_units_are_demand() -> None:
    decision = decide(FLOOR, state(100), seen([100 * 60] * 60, [0] * 59 + [90 * 60]), now=NOW)
    assert decision.granted == 190


def test_capacity_is_asked_for_at_most_twenty_times_what_was_consumed() -> None:
    # throttles of so many are taken for retries of few requests
    decision = decide(FLOOR, state(100, ceiling=90_000), seen([70 * 60] * 60, [0] * 59 + [19_930 * 60]), now=NOW)
    assert decision.wanted == 20_000
    assert decision.granted == 1_400
    assert [(limit.code, limit.before, limit.after) for limit in decision.limits] == [(LimitCode.STEP, 20_000, 1_400)]
    assert decision.limits[0].sentence == "at most 20 times what was consumed"
    earlier = seen([*[90 * 60] * 5, *[70 * 60] * 60], [0] * 64 + [19_930 * 60])
    assert granted(100, earlier, ceiling=90_000) == 1_800, "in any of the minutes that are known"
    # and for a table that was idle a thousand units per second
    assert granted(1, seen([0] * 60, [0] * 59 + [19_980 * 60]), ceiling=90_000) == 1_000


def test_peaks_of_a_table_that_jumps_once_an_hour_are_held_for_the_hour() -> None:
    hour: list[int | None] = [*[100 * 60] * 56, *[300 * 60] * 4]
    now = LATE
    quiet: list[int | None] = [100 * 60] * 45
    decision = decide(FLOOR, state(400), seen([*hour * 7, *quiet], now=now), now=now)
    assert decision.granted == 300
    assert decision.reason == "peak of 300 units/s in the last 60 minutes, after 7 jumps"
    few = decide(FLOOR, state(400), seen([*hour * 4, *quiet], now=now), now=now)
    # 300 units/s for four minutes, from a bucket of 51 seconds
    assert (few.granted, few.reason) == (248, "spikes of the last hour, served with 60 s of burst")


def test_first_jump_leaves_headroom_for_the_next_and_many_are_held_as_peaks() -> None:
    quiet = [100 * 60]
    jump = [200 * 60] * 4
    decision = decide(FLOOR, state(900), seen([*quiet * 60, *jump, *quiet * 30]), now=NOW)
    assert decision.wanted == 143  # 100 at 70 %, rounded up
    assert decision.reason == "peak of 100 units/s in the last 5 minutes at 70 %, headroom after 1 jump"
    # five of them
    assert decide(FLOOR, state(900), seen([*[*quiet * 60, *jump] * 5, *quiet * 29]), now=NOW).wanted == 200


# 320 units/s and then 200, two jumps of two heights, so that neither is expected again
TWICE: list[int | None] = [*[100 * 60] * 60, *[320 * 60] * 4, *[100 * 60] * 40, *[200 * 60] * 4, *[100 * 60] * 31]


def test_headroom_counts_the_jumps_and_stays_for_the_hour() -> None:
    late, before = LATE, NOW.replace(minute=57)
    over = decide(FLOOR, state(120), seen(TWICE, now=late), now=late)
    reason = "peak of 100 units/s in the last minute at 70 %, headroom after 2 jumps"
    assert (over.granted, over.reason) == (143, reason)
    held = decide(FLOOR, state(290), seen(TWICE, now=before), now=before)
    reason = "peak of 200 units/s in the last 59 minutes at 70 %, headroom after 2 jumps"
    assert (held.wanted, held.reason) == (286, reason)


def test_headroom_is_not_bought_for_a_peak_that_is_over() -> None:
    before = NOW.replace(minute=57)
    raised, kept = (decide(FLOOR, state(units), seen(TWICE, now=before), now=before) for units in (106, 240))
    assert (raised.wanted, raised.reason) == (200, "peak of 200 units/s in the last 59 minutes")
    assert (kept.wanted, kept.granted) == (240, 240)
    going_on = seen([*TWICE, *[190 * 60] * 3], now=before)
    assert decide(FLOOR, state(106), going_on, now=before).wanted == 272  # 190 at 70 %, rounded up


def test_more_than_target_tracking_is_not_granted_where_it_was_not_worth_its_price() -> None:
    # the newest minutes are within 70 % of 150
    calm: list[int | None] = [105 * 60] * 6
    dear = replace(steady(200, last=calm), regret=Regret(150, 4_123, 2_900, 7))
    decision = decide(FLOOR, state(100), dear, now=NOW)
    assert decision.limits == (
        Limit(
            LimitCode.REGRET,
            200,
            150,
            "the last day cost 42 % more than target tracking at 70 %, which would have throttled 7 units: more is not "
            "worth its price",
        ),
    )
    assert granted(180, dear) == 180, "the hour is paid for"
    late = replace(steady(200, now=LATE, last=calm), regret=dear.regret)
    assert granted(180, late, now=LATE) == 150
    assert granted(180, late, now=LATE, baseline=170) == 170
    assert granted(180, late, now=LATE, boosts=40) == 190
    assert granted(100, replace(steady(148), regret=dear.regret)) == 148, "less than target tracking"
    assert granted(100, replace(dear, regret=Regret(150, 3_190, 2_900, 7))) == 200, "a tenth more"
    assert granted(100, replace(dear, regret=Regret(150, 4_123, 2_900, 12_729))) == 200, "worth its price"


def test_limit_of_regret_rises_with_what_target_tracking_would_raise_to() -> None:
    regret = Regret(150, 4_123, 2_900, 7)
    # 105 units a second are 70 % of 150
    one = steady(200, last=[*[6_300] * 5, 7_140])
    assert granted(100, replace(one, regret=regret)) == 150, "a single minute above"
    two = steady(200, last=[*[6_300] * 4, 7_560, 7_140])
    assert granted(100, replace(two, regret=regret)) == 170, "119 units a second at 70 %"
    throttled = [*[0] * 64, 1_260, 840]
    refused = steady(200, last=[6_300] * 6, throttled=throttled)
    assert granted(100, replace(refused, regret=regret)) == 170, "throttled requests were asked for too"


def test_little_lower_stays_and_what_falls_to_the_plan_falls_all_the_way() -> None:
    assert granted(206, steady(200)) == 206
    assert granted(207, steady(200)) == 207
    assert granted(208, steady(200)) == 200
    assert granted(202, steady(194)) == 194
    assert granted(206, steady(200), baseline=200) == 200
    assert granted(206, steady(200), baseline=199) == 206
    decision = decide(FLOOR, state(206), steady(200), now=NOW)
    assert decision.limited_by(LimitCode.TOLERANCE)
    assert decision.limits[0].sentence == "within 3 % of the current value"


def test_plan_is_the_least_and_boosts_come_on_top() -> None:
    decision = decide(FLOOR, state(100, baseline=300, boosts=1_050), steady(19), now=NOW)
    assert decision.granted == 1_350
    assert [(limit.code, limit.sentence) for limit in decision.limits] == [
        (LimitCode.BASELINE, "the plan's floor"),
        (LimitCode.BOOST, "boosts of 1,050 units/s"),
    ]


def test_boosts_are_no_part_of_what_demand_accounts_for() -> None:
    assert state(350, boosts=300).current_without_boosts == 50
    assert state(30, boosts=300).current_without_boosts == 0


def test_boost_that_ended_is_taken_back() -> None:
    assert granted(350, steady(300), baseline=10, boosts=50) == 350
    assert granted(350, steady(300), baseline=10, boosts=0) == 300


@pytest.mark.parametrize(
    ("more", "code", "expected", "sentence"),
    [
        ({"ceiling": 150}, LimitCode.CEILING, 150, "the plan's ceiling"),
        ({"quota_units": 170}, LimitCode.QUOTA, 170, "the account's quota per table and index"),
        ({"ceiling": 160, "boosts": 90}, LimitCode.CEILING, 160, "the plan's ceiling"),
    ],
)
def test_ceiling_and_quota_are_the_most(more: dict[str, int], code: LimitCode, expected: int, sentence: str) -> None:
    decision = decide(FLOOR, state(100, **more), steady(200), now=NOW)
    assert decision.granted == expected
    assert (decision.limits[-1].code, decision.limits[-1].sentence) == (code, sentence)


def test_capacity_is_one_unit_at_least() -> None:
    decision = decide(FLOOR, state(1, baseline=0), steady(0), now=NOW)
    assert decision.granted == 1
    assert [(limit.code, limit.sentence) for limit in decision.limits] == [
        (LimitCode.BASELINE, "capacity is at least 1")
    ]


def test_hot_key_is_told_and_buys_nothing() -> None:
    decision = decide(FLOOR, state(200), steady(100, hot_key_events=77), now=NOW)
    assert decision.has_hot_key
    assert decision.granted == 100
    assert decide(FLOOR, state(200), steady(100, hot_key_events=1), now=NOW).has_hot_key
    assert not decide(FLOOR, state(200), steady(100), now=NOW).has_hot_key


# DIRECT


def test_direct_lowers_late_in_a_paid_hour() -> None:
    early, late = steady(100, 1440, now=NOW), steady(100, 1440, now=LATE)
    decision = decide(DIRECT, state(400), early, now=NOW)
    assert decision.granted == 400
    assert decision.limits == (
        Limit(LimitCode.PAID_HOUR, 100, 400, "the hour is paid for at its highest value: not lowered before minute 58"),
    )
    assert decide(DIRECT, state(400), late, now=LATE).granted == 100


@pytest.mark.parametrize(("minute", "expected"), [(57, 400), (58, 100)])
def test_direct_lowers_from_that_minute_on(minute: int, expected: int) -> None:
    now = NOW.replace(minute=minute)
    assert granted(400, steady(100, 1440, now=now), DIRECT, now) == expected


def test_direct_raises_at_any_minute() -> None:
    assert granted(100, steady(194, 1440), DIRECT) == 200


def test_direct_lowers_only_as_the_budget_allows() -> None:
    spent = DecreaseBudget(4, LATE - timedelta(minutes=10))
    decision = decide(DIRECT, state(400, budget=spent), steady(100, 1440, now=LATE), now=LATE)
    assert decision.granted == 400
    assert decision.limits[-1].sentence == "the day's decreases are used: the next is allowed at 11:48:40 UTC"


def test_capacity_above_its_ceiling_is_lowered_at_once_where_the_budget_allows() -> None:
    assert granted(400, steady(100, 1440), DIRECT, ceiling=300) == 100
    assert granted(400, steady(100, 1440), DIRECT, quota_units=399) == 100
    assert granted(400, steady(100, 1440), DIRECT, ceiling=400) == 400, "it is not above its ceiling"
    spent = DecreaseBudget(4, NOW - timedelta(minutes=10))
    assert granted(400, steady(100, 1440), DIRECT, ceiling=300, budget=spent) == 400


def day_before(now: datetime, spike: int, units: int = 600) -> list[int | None]:
    """A day of 60 units/s, but for the minute that is *spike* minutes from now, a day ago."""
    day: list[int | None] = [60 * 60] * 1440
    first = (int(now.timestamp()) - 160) // 60 - 1440
    day[minute_of(now) + spike - 1440 - first] = units * 60
    return day


def test_half_of_yesterdays_next_minutes_is_ready_in_direct_mode() -> None:
    decision = decide(DIRECT, state(64), seen(day_before(NOW, 10)), now=NOW)
    assert decision.granted == 300
    assert decision.reason == "yesterday's next minutes: 600 units/s at 200 %"
    assert decide(FLOOR, state(64), seen(day_before(NOW, 10)), now=NOW).wanted == 60


@pytest.mark.parametrize(
    ("minute", "minutes"),
    [
        pytest.param(3, 18, id="until help comes"),
        pytest.param(57, 18, id="as long as nothing is lowered"),
        pytest.param(58, 60, id="through the next hour, where capacity may go down"),
    ],
)
def test_yesterday_is_looked_at_until_help_comes_or_for_the_next_hour(minute: int, minutes: int) -> None:
    now = NOW.replace(minute=minute)
    for spike, wanted in ((minutes - 1, 300), (minutes, 60)):
        assert decide(DIRECT, state(64), seen(day_before(now, spike), now=now), now=now).wanted == wanted


@pytest.mark.parametrize(
    ("newest_in", "waiting", "first", "last"),
    [
        pytest.param(-1, 2, 2, 17, id="whatever is still to come"),
        # the day before them is known for a little longer than now
        pytest.param(-120, 0, 0, 77, id="an hour further where data are two hours old"),
        pytest.param(5, 2, 2, 17, id="as far by a clock that is behind"),
    ],
)
def test_yesterday_is_looked_at_from_now_on(newest_in: int, waiting: int, first: int, last: int) -> None:
    for spike, wanted in ((last, 300), (last + 1, 60)):
        day: list[int | None] = [60 * 60] * (1440 + waiting)
        day[first + spike] = 600 * 60
        day[1440:] = [None] * waiting
        seen_then = Observation.of(minute_of(NOW) + newest_in, day, [0] * len(day))
        assert decide(DIRECT, state(64), seen_then, now=NOW).wanted == wanted


def test_increase_and_decrease_never_go_in_one_call() -> None:
    read = TargetState(index=None, dimension=Dimension.READ, current=400, baseline=10, ceiling=9_000)
    raised = decide(DIRECT, state(100), steady(194, 1440, now=LATE), now=LATE)
    lowered = decide(DIRECT, read, steady(100, 1440, now=LATE), now=LATE)
    assert lowered.granted == 100
    together = in_one_call([lowered, raised])
    assert wanted_units(together) == {Dimension.WRITE: 200}
    assert together[0].limits[-1] == Limit(
        LimitCode.RAISE_FIRST,
        100,
        400,
        "the other dimension is raised first: the scaler never combines an increase and a decrease in one call",
    )
    kept = replace(lowered, granted=400)
    assert in_one_call([kept, raised]) == (kept, raised), "nothing limits what stays as it is"
    assert wanted_units(in_one_call([lowered, replace(raised, granted=90)])) == {
        Dimension.READ: 100,
        Dimension.WRITE: 90,
    }


# data that lie


def test_without_any_data_nothing_falls_and_the_plan_still_rises() -> None:
    assert granted(400, Observation.nothing()) == 400
    assert granted(400, Observation.nothing(), baseline=500) == 500
    assert granted(400, Observation.nothing(), DIRECT, LATE) == 400
    decision = decide(FLOOR, state(400), Observation.nothing(), now=NOW)
    assert decision.limits[0].sentence == "no fresh datapoint: nothing is lowered on missing data"
    at_the_plan = decide(FLOOR, state(400, baseline=400), Observation.nothing(), now=NOW)
    assert [limit.sentence for limit in at_the_plan.limits] == ["the plan's floor"], "which is reason enough"


def held_for_missing_data(observation: Observation, now: datetime = NOW) -> str | None:
    """Why 400 units are kept, of which 100 are needed."""
    decision = decide(FLOOR, state(400), observation, now=now)
    if decision.granted == 100:
        return None
    (limit,) = decision.limits
    assert (limit.code, limit.before, limit.after) == (LimitCode.MISSING_DATA, 100, 400)
    return limit.sentence


def test_gap_in_the_window_keeps_the_floor_and_rises_still() -> None:
    consumed: list[int | None] = [100 * 60] * 61
    consumed[-17] = None
    assert held_for_missing_data(seen(consumed)) is None, "CloudWatch leaves out a minute now and then"
    consumed[-18] = None
    assert held_for_missing_data(seen(consumed)) == "datapoints are missing in the last 30 minutes"
    assert granted(80, seen(consumed)) == 100


@pytest.mark.parametrize(("back", "is_held"), [(2, False), (10, False), (11, True), (29, True), (30, False)])
def test_gap_counts_once_its_datapoint_can_come_no_more(back: int, is_held: bool) -> None:
    consumed: list[int | None] = [100 * 60] * 61
    consumed[-back] = consumed[-back - 1] = None
    assert (held_for_missing_data(seen(consumed)) is not None) is is_held


@pytest.mark.parametrize(("every", "is_held"), [(4, True), (5, False), (10, False)])
def test_single_gaps_count_where_they_are_more_than_a_fifth(every: int, is_held: bool) -> None:
    consumed: list[int | None] = [None if minute % every == 2 else 100 * 60 for minute in range(60)] + [100 * 60]
    assert (held_for_missing_data(seen(consumed)) is not None) is is_held


@pytest.mark.parametrize(("minutes", "is_held"), [(29, True), (30, False)])
def test_past_shorter_than_the_window_is_missing_data(minutes: int, is_held: bool) -> None:
    # nor is an hour known, so what is enough is 143 instead of 100
    decision = decide(FLOOR, state(400), steady(100, minutes), now=NOW)
    assert (decision.granted, decision.limited_by(LimitCode.MISSING_DATA)) == ((400, True) if is_held else (143, False))


@pytest.mark.parametrize(("seconds", "is_held"), [(0, False), (1, True)])
def test_data_are_missing_from_ten_minutes_on(seconds: int, is_held: bool) -> None:
    newest_ended = datetime(2027, 3, 4, 10, 1, tzinfo=UTC)
    now = newest_ended + timedelta(minutes=10, seconds=seconds)
    sentence = "no fresh datapoint: nothing is lowered on missing data" if is_held else None
    assert held_for_missing_data(replace(steady(100), newest=minute_of(newest_ended) - 1), now) == sentence


def test_throttles_that_are_not_known_keep_the_floor() -> None:
    assert held_for_missing_data(steady(100, lacks_throttles=True)) == (
        "throttles are likely, and CloudWatch did not report them"
    )


def test_newest_datapoints_may_be_late() -> None:
    assert granted(400, seen([*[100 * 60] * 60, None, None, None])) == 100


@pytest.mark.parametrize(("minutes", "wanted"), [(40, 143), (59, 143), (60, 100)])
def test_table_of_which_less_than_an_hour_is_known_has_headroom(minutes: int, wanted: int) -> None:
    # 100 units/s are 70 % of 143; what is before and between is not known
    consumed: list[int | None] = [*[None] * 100, 100 * 60, *[None] * 5, *[100 * 60] * (minutes - 6)]
    decision = decide(FLOOR, state(100), seen(consumed), now=NOW)
    assert decision.wanted == wanted
    cautious = "average of 100 units/s at 70 %, headroom as less than an hour is known"
    assert decision.reason == (cautious if minutes < 60 else "peak of 100 units/s in the last 30 minutes")


def test_headroom_of_a_table_that_is_new_is_over_its_average_and_not_over_a_spike() -> None:
    spike: list[int | None] = [*[100 * 60] * 5, 300 * 60, *[100 * 60] * 4]
    assert decide(FLOOR, state(100), seen(spike), now=NOW).wanted == 300
    # a minute of 114 makes ten of 102 on average: 70 % of 146
    noise: list[int | None] = [*[100 * 60] * 25, 114 * 60, *[100 * 60] * 4]
    above = decide(FLOOR, state(200), seen(noise, now=LATE), now=LATE)
    assert above.reason == "average of 102 units/s at 70 %, headroom as less than an hour is known"
    assert above.wanted == 146
    begun = decide(FLOOR, state(100), seen([98 * 60] * 3), now=NOW)
    assert (begun.wanted, begun.reason[:20]) == (140, "average of 98 units/")


def test_table_without_any_datapoint_asks_for_nothing() -> None:
    assert decide(FLOOR, state(100), Observation.nothing(), now=NOW).wanted == 0


def test_caution_is_about_the_newest_minute_that_is_known() -> None:
    after_a_jump = seen([*[100 * 60] * 60, *[300 * 60] * 2, None, None, None], now=LATE)
    assert decide(FLOOR, state(400), after_a_jump, now=LATE).reason == (
        "peak of 300 units/s in the last minute at 70 %, headroom after 1 jump"
    )


def test_data_of_last_week_lower_nothing() -> None:
    old = replace(steady(100), newest=minute_of(NOW) - 7 * 1440)
    assert granted(400, old) == 400


def test_clock_that_is_behind_its_data_lowers_as_ever() -> None:
    ahead = replace(steady(100), newest=minute_of(NOW) + 5)
    assert granted(400, ahead) == 100
