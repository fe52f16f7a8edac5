"""The scaler's decision: each stage by its numbers, the laws by property, and what CloudWatch and people do to it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from highwater.core import DecreaseBudget, Dimension
from highwater.core.scaler import (
    Limit,
    LimitCode,
    Mode,
    Observation,
    Proposal,
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
    assert granted(400, steady(19, 60, [*peak, *[19 * 60] * 30])) == 26  # of cautious 75 %, after a jump


@pytest.mark.parametrize(("minute", "minutes"), [(0, 30), (20, 30), (21, 31), (49, 59), (50, 30), (59, 30)])
def test_peak_counts_through_an_hour_that_is_paid_for(minute: int, minutes: int) -> None:
    now = NOW.replace(minute=minute)
    just, no_more = (steady(19, 90, [100 * 60, *[19 * 60] * after], now=now) for after in (minutes - 1, minutes))
    calm = replace(FLOOR, jump_percent=10_000)
    decision = decide(calm, state(400), just, now=now)
    assert (decision.granted, decision.reason) == (100, f"peak of 100 units/s in the last {minutes} minutes")
    assert decide(calm, state(400), no_more, now=now).granted == 19


def test_caution_raises_nothing_late_in_an_hour() -> None:
    after_a_jump: list[int | None] = [*[100 * 60] * 60, *[200 * 60] * 4, *[100 * 60] * 31]
    late, early = (seen(after_a_jump, now=now) for now in (LATE, NOW))
    assert decide(FLOOR, state(106), late, now=LATE).granted == 106
    decision = decide(FLOOR, state(120), late, now=LATE)
    assert decision.granted == 120
    assert decision.reason == (
        "peak of 100 units/s in the last minute at 75 %, cautious after 1 jump, though not above 120 so late in an hour"
    )
    assert decide(FLOOR, state(156, boosts=50), late, now=LATE).granted == 156
    assert decide(FLOOR, state(400), late, now=LATE).granted == 134
    assert decide(FLOOR, state(106), early, now=NOW).granted == 134


def test_throttled_units_are_demand() -> None:
    decision = decide(FLOOR, state(100), seen([100 * 60] * 60, [0] * 59 + [90 * 60]), now=NOW)
    assert decision.granted == 190


def test_capacity_is_asked_for_at_most_a_hundred_times_what_was_consumed() -> None:
    # throttles of so many are taken for retries of few requests
    decision = decide(FLOOR, state(100, ceiling=90_000), seen([20 * 60] * 60, [0] * 59 + [19_980 * 60]), now=NOW)
    assert decision.wanted == 20_000
    assert decision.granted == 2_000
    assert [(limit.code, limit.before, limit.after) for limit in decision.limits] == [(LimitCode.STEP, 20_000, 2_000)]
    assert decision.limits[0].sentence == "at most 100 times what was consumed"
    more_before: list[int | None] = [*[50 * 60] * 5, *[20 * 60] * 60]
    earlier = seen(more_before, [0] * 64 + [19_980 * 60])
    assert granted(100, earlier, ceiling=90_000) == 2_000, "in the minutes that count"
    # a hundred times a unit per second
    assert granted(1, seen([0] * 60, [0] * 59 + [19_980 * 60]), ceiling=90_000) == 100


def test_higher_of_two_proposals_counts_with_the_wider_of_their_limits() -> None:
    peak, climb = Proposal(70, 40, "peak"), Proposal(50, 60, "climb")
    assert peak.or_higher(climb) == climb.or_higher(peak) == Proposal(70, 60, "peak")
    assert peak.or_higher(Proposal(70, 30, "forecast")) == peak, "the first of two that ask for the same"
    assert peak.or_higher(None) == peak


def climbing(to: int, step: int, minutes: int = 8) -> list[int | None]:
    """Minutes that rise by *step* units per second each, up to *to*."""
    return [(to - step * back) * 60 for back in reversed(range(minutes))]


def test_climb_is_extrapolated_until_the_next_raise_is_there() -> None:
    consumed: list[int | None] = [*[100 * 60] * 60, *climbing(190, 10)]
    decision = decide(FLOOR, state(120), seen(consumed), now=NOW)
    assert decision.reason == "climbing to 270 units/s", "eight minutes of ten units per second more"
    assert decision.granted == 270
    direct = decide(DIRECT, state(120), seen([*[100 * 60] * 1400, *consumed]), now=NOW)
    assert direct.reason == "climbing to 240 units/s", "five minutes"


@pytest.mark.parametrize(
    "last",
    [
        pytest.param([*climbing(170, 10, 6), 190 * 60, 180 * 60], id="the newest minute is lower than the one before"),
        pytest.param([*[110 * 60] * 6, 190 * 60, 200 * 60], id="one step is no climb"),
        pytest.param([*climbing(150, 10, 4), None, *climbing(190, 10, 3)], id="one of the minutes is not known"),
        pytest.param(list(reversed(climbing(190, 10))), id="it falls"),
    ],
)
def test_what_does_not_climb_for_eight_minutes_is_not_extrapolated(last: list[int | None]) -> None:
    decision = decide(FLOOR, state(120), seen([*[105 * 60] * 60, *last]), now=NOW)
    assert "climbing" not in decision.reason


def test_climb_below_the_peak_of_the_last_half_hour_is_not_extrapolated() -> None:
    earlier: list[int | None] = [*[250 * 60] * 20, *[105 * 60] * 8]
    assert "climbing" not in decide(FLOOR, state(120), seen([*earlier, *climbing(190, 10)]), now=NOW).reason


def test_climb_above_a_peak_that_is_not_held_any_more_is_extrapolated() -> None:
    earlier: list[int | None] = [*[250 * 60] * 20, *[105 * 60] * 22]
    decision = decide(FLOOR, state(120), seen([*earlier, *climbing(190, 10)]), now=NOW)
    assert decision.reason == "climbing to 270 units/s"


def test_climb_goes_on_while_its_next_datapoints_are_still_to_come() -> None:
    consumed: list[int | None] = [*[100 * 60] * 60, *climbing(190, 10)]
    decision = decide(FLOOR, state(120), seen([*consumed, None, None]), now=NOW)
    assert decision.reason == "climbing to 270 units/s"


def test_peaks_of_a_table_that_jumps_once_an_hour_are_held_for_the_hour() -> None:
    hour: list[int | None] = [*[100 * 60] * 56, *[300 * 60] * 4]
    now = NOW.replace(minute=50)
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
    assert decision.wanted == 134  # 100 at 75 %, rounded up
    assert decision.reason == "peak of 100 units/s in the last 13 minutes at 75 %, cautious after 1 jump"
    # five of them
    assert decide(FLOOR, state(900), seen([*[*quiet * 60, *jump] * 5, *quiet * 29]), now=NOW).wanted == 200


def test_caution_counts_the_jumps() -> None:
    # of two heights, so that neither is expected again
    twice: list[int | None] = [*[100 * 60] * 60, *[320 * 60] * 4, *[100 * 60] * 40, *[200 * 60] * 4, *[100 * 60] * 31]
    at_fifty = NOW.replace(minute=50)
    decision = decide(FLOOR, state(120), seen(twice, now=at_fifty), now=at_fifty)
    assert decision.reason == (
        "peak of 100 units/s in the last minute at 75 %, cautious after 2 jumps, "
        "though not above 120 so late in an hour"
    )
    before = NOW.replace(minute=49)
    held = decide(FLOOR, state(290), seen(twice, now=before), now=before)
    assert (held.wanted, held.reason) == (
        267,
        "peak of 200 units/s in the last 59 minutes at 75 %, cautious after 2 jumps",
    )


def test_caution_raises_no_headroom_over_what_is_over() -> None:
    over: list[int | None] = [*[100 * 60] * 60, *[320 * 60] * 4, *[100 * 60] * 40, *[200 * 60] * 4, *[100 * 60] * 31]
    before = NOW.replace(minute=49)
    raised, kept = (decide(FLOOR, state(units), seen(over, now=before), now=before) for units in (106, 240))
    assert (raised.wanted, raised.reason) == (200, "peak of 200 units/s in the last 59 minutes")
    assert (kept.wanted, kept.granted) == (240, 240)
    going_on = seen([*over, *[190 * 60] * 3], now=before)
    assert decide(FLOOR, state(106), going_on, now=before).wanted == 254  # 190 at 75 %, rounded up


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
    assert granted(200, steady(194)) == 200, "194 are 97 % of it"
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
        Limit(LimitCode.PAID_HOUR, 100, 400, "the hour is paid for at its highest value: not lowered before minute 50"),
    )
    assert decide(DIRECT, state(400), late, now=LATE).granted == 100


@pytest.mark.parametrize(("minute", "expected"), [(49, 400), (50, 100)])
def test_direct_lowers_from_that_minute_on(minute: int, expected: int) -> None:
    now = NOW.replace(minute=minute)
    assert granted(400, steady(100, 1440, now=now), DIRECT, now) == expected


def test_direct_raises_at_any_minute() -> None:
    assert granted(100, steady(200, 1440), DIRECT) == 200


def test_direct_lowers_only_as_the_budget_allows() -> None:
    spent = DecreaseBudget(4, LATE - timedelta(minutes=10))
    decision = decide(DIRECT, state(400, budget=spent), steady(100, 1440, now=LATE), now=LATE)
    assert decision.granted == 400
    assert decision.limits[-1].sentence == "the day's decreases are used: the next is allowed at 11:42:40 UTC"


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


def test_yesterdays_next_minutes_are_provided_for() -> None:
    decision = decide(DIRECT, state(64), seen(day_before(NOW, 10)), now=NOW)
    assert decision.granted == 500
    assert decision.reason == "yesterday's next minutes: 600 units/s at 120 %"


@pytest.mark.parametrize(
    ("mode", "minute", "minutes"),
    [
        pytest.param(Mode.DIRECT, 3, 18, id="until help comes"),
        pytest.param(Mode.DIRECT, 49, 18, id="as long as nothing is lowered"),
        pytest.param(Mode.DIRECT, 50, 70, id="through the next hour, where capacity may go down"),
        pytest.param(Mode.FLOOR, 50, 18, id="a floor may rise again at any time"),
    ],
)
def test_yesterday_is_looked_at_until_help_comes_or_for_the_next_hour(mode: Mode, minute: int, minutes: int) -> None:
    now, scaler = NOW.replace(minute=minute), replace(DIRECT, mode=mode)
    for spike, wanted in ((minutes - 1, 500), (minutes, 60)):
        assert decide(scaler, state(64), seen(day_before(now, spike), now=now), now=now).wanted == wanted


@pytest.mark.parametrize(
    ("newest_in", "waiting", "first", "last"),
    [
        pytest.param(-1, 2, 2, 17, id="whatever is still to come"),
        # the day before them is known for a little longer than now
        pytest.param(-120, 0, 0, 87, id="an hour further where data are two hours old"),
        pytest.param(5, 2, 2, 17, id="as far by a clock that is behind"),
    ],
)
def test_yesterday_is_looked_at_from_now_on(newest_in: int, waiting: int, first: int, last: int) -> None:
    for spike, wanted in ((last, 500), (last + 1, 60)):
        day: list[int | None] = [60 * 60] * (1440 + waiting)
        day[first + spike] = 600 * 60
        day[1440:] = [None] * waiting
        seen_then = Observation.of(minute_of(NOW) + newest_in, day, [0] * len(day))
        assert decide(DIRECT, state(64), seen_then, now=NOW).wanted == wanted


def test_increase_and_decrease_never_go_in_one_call() -> None:
    read = TargetState(index=None, dimension=Dimension.READ, current=400, baseline=10, ceiling=9_000)
    raised = decide(DIRECT, state(100), steady(200, 1440, now=LATE), now=LATE)
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
    # nor is an hour known, so what is enough is 134 instead of 100
    decision = decide(FLOOR, state(400), steady(100, minutes), now=NOW)
    assert (decision.granted, decision.limited_by(LimitCode.MISSING_DATA)) == ((400, True) if is_held else (134, False))


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


@pytest.mark.parametrize(("minutes", "wanted"), [(40, 134), (59, 134), (60, 100)])
def test_table_of_which_less_than_an_hour_is_known_has_headroom(minutes: int, wanted: int) -> None:
    # 100 units/s are 75 % of 134; what is before and between is not known
    consumed: list[int | None] = [*[None] * 100, 100 * 60, *[None] * 5, *[100 * 60] * (minutes - 6)]
    decision = decide(FLOOR, state(100), seen(consumed), now=NOW)
    assert decision.wanted == wanted
    cautious = "average of 100 units/s at 75 %, cautious as less than an hour is known"
    assert decision.reason == (cautious if minutes < 60 else "peak of 100 units/s in the last 30 minutes")


def test_headroom_of_a_table_that_is_new_is_over_its_average_and_not_over_a_spike() -> None:
    # 300 units/s are 75 % of 400
    spike: list[int | None] = [*[100 * 60] * 5, 300 * 60, *[100 * 60] * 4]
    assert decide(FLOOR, state(100), seen(spike), now=NOW).wanted == 300
    # a minute of 114 makes ten of 102 on average: 75 % of 136
    noise: list[int | None] = [*[100 * 60] * 25, 114 * 60, *[100 * 60] * 4]
    above = decide(FLOOR, state(200), seen(noise, now=LATE), now=LATE)
    assert above.reason == "average of 102 units/s at 75 %, cautious as less than an hour is known"
    assert above.wanted == 136
    late = decide(FLOOR, state(130), seen(noise, now=LATE), now=LATE)
    assert late.reason == f"{above.reason}, though not above 130 so late in an hour"
    begun = decide(FLOOR, state(100), seen([98 * 60] * 3), now=NOW)
    assert (begun.wanted, begun.reason[:20]) == (131, "average of 98 units/")


def test_table_without_any_datapoint_asks_for_nothing() -> None:
    assert decide(FLOOR, state(100), Observation.nothing(), now=NOW).wanted == 0


def test_caution_is_about_the_newest_minute_that_is_known() -> None:
    after_a_jump = seen([*[100 * 60] * 60, *[300 * 60] * 2, None, None, None], now=LATE)
    assert decide(FLOOR, state(400), after_a_jump, now=LATE).reason == (
        "peak of 300 units/s in the last minute at 75 %, cautious after 1 jump"
    )


def test_data_of_last_week_lower_nothing() -> None:
    old = replace(steady(100), newest=minute_of(NOW) - 7 * 1440)
    assert granted(400, old) == 400


def test_clock_that_is_behind_its_data_lowers_as_ever() -> None:
    ahead = replace(steady(100), newest=minute_of(NOW) + 5)
    assert granted(400, ahead) == 100
