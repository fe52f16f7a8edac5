"""Decisions for a fleet that tells what it asks for: the bucket, coverage, and what pulses can never do."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from highwater.core.pulses import Slots, slot_at
from highwater.core.scaler import Decision, LimitCode, Mode, Observation, ScalerSettings, decide
from highwater.core.scaler.fleet import coverage_percent, fleet_demand, help_seconds
from highwater.core.scaler.regret import Regret
from tests.core.decisions_to_make import NOW, law, state, steady

FLOOR = ScalerSettings()
DIRECT = ScalerSettings(mode=Mode.DIRECT)
LATE = NOW.replace(minute=58)
# CloudWatch's newest minute ended 160 seconds ago
_SINCE = 16


def told(
    *consumed: int | None, refused: int = 0, minutes: int = 15, before: int = 1_000, until: datetime = NOW
) -> Slots:
    """Slots of so many minutes at *before*, then *consumed*, before *until*; *refused* in the last slot."""
    all_slots = (*[before] * (minutes * 6), *consumed)
    return Slots(slot_at(until) - 1, all_slots, (*[0] * (len(all_slots) - 1), refused))


def pulsed(seen: Observation, pulses: Slots) -> Observation:
    return replace(seen, pulses=pulses)


def decided(seen: Observation, settings: ScalerSettings = DIRECT, current: int = 120, **more: Any) -> Decision:
    return decide(settings, state(current, **more), seen, now=NOW)


def reasons(decision: Decision) -> list[tuple[LimitCode, str]]:
    return [(limit.code, limit.sentence) for limit in decision.limits]


def test_coverage_is_pulses_over_cloudwatch_for_minutes_that_both_have() -> None:
    seen = steady(100)
    assert coverage_percent(told(*[1_000] * _SINCE), seen) == 100
    assert coverage_percent(told(*[1_000] * _SINCE, before=430), seen) == 43
    assert coverage_percent(told(*[1_000] * 3, minutes=0), seen) == 0
    assert coverage_percent(told(*[1_000] * _SINCE), steady(0)) == 0


def test_fleet_that_was_silent_is_whole_again_once_it_tells() -> None:
    """It was taken for a fourth of a fleet that asks for four times as much, and so much was bought."""
    silent_for_eleven_minutes = told(*[1_000] * 6, *[None] * 66, *[1_000] * (18 + _SINCE), minutes=1)
    assert coverage_percent(silent_for_eleven_minutes, steady(100)) == 100
    assert decided(pulsed(steady(100), silent_for_eleven_minutes)).granted == 120
    # the others are still untold: three of four requests
    a_fourth = told(*[250] * 6, *[None] * 66, *[250] * (18 + _SINCE), minutes=0)
    assert coverage_percent(a_fourth, steady(100)) == 25


def test_surge_that_the_bucket_outlasts_buys_nothing() -> None:
    decision = decided(pulsed(steady(100), told(*[1_000] * (_SINCE - 1), 3_000)))
    assert decision.granted == 120
    assert decided(pulsed(steady(100), told(*[1_000] * (_SINCE - 1), 2_400)), FLOOR).granted == 120


def test_capacity_below_the_average_of_the_last_hour_is_raised_to_it_while_the_bucket_lasts() -> None:
    # 130 units/s in one minute of ten and 100 in the others: 103 on average, and 106 fill the bucket between them
    seen = pulsed(steady(100, last=[*[6_000] * 4, 7_800, *[6_000] * 5] * 6), told(*[1_000] * _SINCE))
    decision = decided(seen, current=102)
    assert (decision.wanted, decision.granted) == (106, 103)
    sentence = "the burst bucket outlasts the 103 units/s that the fleet asks for"
    assert reasons(decision) == [(LimitCode.BUCKET, sentence)]
    assert decided(seen, current=104).granted == 104


# 600 units a second, for a minute in each of three half hours
_SPIKY = steady(100, last=[36_000, *[6_000] * 29] * 3)


def test_surge_like_those_that_are_regretted_is_met_as_target_tracking_would_meet_it() -> None:
    spiky = replace(_SPIKY, regret=Regret(143, 4_123, 2_900, 7))
    begun = told(*[1_000] * (_SINCE - 3), 6_000, 6_000, 6_000)
    assert decided(pulsed(spiky, begun)).granted == 143
    assert decided(pulsed(_SPIKY, begun)).granted == 619, "and without regret"
    # two minutes of more than 70 % of 143: 24,000 units at 70 %, and so far no more above it than the spikes were
    longer = told(*[1_000] * (_SINCE - 6), *[6_000] * 6)
    assert decided(pulsed(spiky, longer)).granted == 572


def test_surge_that_is_larger_or_longer_than_those_before_is_met_whatever_is_regretted() -> None:
    regret = Regret(143, 4_123, 2_900, 7)
    larger = told(*[1_000] * (_SINCE - 3), 6_000, 6_000, 30_000)
    assert decided(pulsed(replace(_SPIKY, regret=regret), larger)).granted == 3_093
    # there was none before
    surge = replace(steady(100), regret=regret)
    assert decided(pulsed(surge, told(*[1_000] * (_SINCE - 3), 6_000, 6_000, 6_000))).granted == 619
    # 200 units a second, which a bucket of 143 outlasts
    calm = told(*[1_000] * (_SINCE - 3), 2_000, 2_000, 2_000)
    assert decided(pulsed(surge, calm)).granted == 120
    # what part of the fleet it is, nobody knows
    unknown = told(*[6_000] * 10, minutes=0)
    assert decided(pulsed(surge, unknown)).granted == 619


def test_spike_of_twenty_minutes_ago_is_sized_for_though_it_came_only_once() -> None:
    steady_fleet = told(*[1_000] * _SINCE)
    decision = decided(pulsed(steady(100, 39, [18_000, *[6_000] * 20]), steady_fleet))
    # 51 s of burst and a minute of capacity for 18,000 units
    assert decision.wanted == 163
    assert decision.reason == "busiest ten minutes of 100 units/s, and peaks above them with 60 s of burst"
    assert decided(pulsed(steady(100), steady_fleet)).reason == "busiest ten minutes of 100 units/s"


def test_nothing_is_raised_above_what_there_is_while_the_bucket_lasts() -> None:
    # wanted are 325
    seen = pulsed(steady(100, 39, [36_000, *[6_000] * 20]), told(*[1_000] * _SINCE))
    assert decided(seen, FLOOR, current=200, provisioned=120).granted == 200
    assert decided(seen, FLOOR, current=150, provisioned=220).granted == 220


def test_surge_that_the_bucket_does_not_outlast_is_met_at_once() -> None:
    # 600 units a second of 7,200 tokens: 480 more than the capacity for 18 seconds are 8,640
    decision = decided(pulsed(steady(100), told(*[1_000] * (_SINCE - 1), 6_000)))
    assert decision.granted == 619
    assert reasons(decision)[0] == (
        LimitCode.BUCKET,
        "the fleet asks for 600 units/s and the burst bucket does not last 18 s",
    )
    slower = decided(pulsed(steady(100), told(*[1_000] * (_SINCE - 1), 2_600)), FLOOR)
    assert slower.granted == 269
    assert "the burst bucket does not last 50 s" in reasons(slower)[0][1]


def test_half_the_fleet_tells_for_the_whole() -> None:
    pulses = told(*[500] * (_SINCE - 1), 3_000, before=500)
    assert decided(pulsed(steady(100), pulses)).granted == 619


def test_fleet_of_which_too_little_tells_is_heard_and_nothing_else_changes() -> None:
    few = told(*[200] * _SINCE, before=200)
    quiet = decided(steady(100))
    assert decided(pulsed(steady(100), few)).granted == quiet.granted
    surge = told(*[200] * (_SINCE - 1), 9_000, before=200)
    assert decided(pulsed(steady(100), surge)).granted == -(-900 * 100 // 97)


def test_what_a_small_part_of_the_fleet_does_not_tell_is_no_job_that_goes_on() -> None:
    # a spike of 700 units/s in the newest minute that CloudWatch has, of which the fleet tells a tenth
    spike = steady(100, last=[700 * 60])
    few = told(*[100] * _SINCE, before=100)
    assert decided(pulsed(spike, few)).granted == decided(spike).granted


def test_fleet_that_falls_silent_is_none() -> None:
    spike = steady(100, last=[700 * 60])
    silent, late = (told(*[1_000] * (_SINCE - gap), *[None] * gap) for gap in (6, 5))
    assert decided(pulsed(spike, silent)) == decided(spike)
    assert decided(pulsed(spike, late)).reason.startswith("busiest ten minutes of "), "slots may be told late"


def test_refused_request_counts_at_once_whatever_the_bucket_should_hold() -> None:
    decision = decided(pulsed(steady(100), told(*[1_000] * _SINCE, refused=900)))
    # 190 units a second over 97 %, and half as much again
    assert decision.granted == 294
    assert reasons(decision)[0][1] == "the fleet asks for 190 units/s and requests were refused"


def test_bucket_is_empty_after_a_raise_until_it_fills_again() -> None:
    slots = told(*[1_000] * (_SINCE - 1), 2_000)
    seen = pulsed(steady(100), slots)
    fresh = fleet_demand(replace(seen, pulses=slots), capacity_units=120, last_increase=NOW - timedelta(seconds=53))
    assert fresh is not None
    # since 10:02:50, of 120 units a second: 200 left in each of four slots, then 800 more than there is
    assert fresh.level_units == 0
    later = fleet_demand(replace(seen, pulses=slots), capacity_units=500, last_increase=NOW - timedelta(seconds=53))
    assert later is not None
    assert later.level_units == 4 * 4_000 + 3_000


def test_raised_capacity_stays_while_the_fleet_needs_it() -> None:
    late = NOW.replace(minute=58)
    pulses = told(*[1_000] * 12, *[3_000] * 4, until=late)
    raised = state(310, last_increase=late - timedelta(seconds=21))
    decision = decide(DIRECT, raised, pulsed(steady(100, now=late), pulses), now=late)
    # of 300 units/s the bucket, filled for 20 s with 10 units/s more, serves the 18 s that help takes
    assert decision.granted == 289
    assert reasons(decision) == [
        (LimitCode.BUCKET, "with less, the burst bucket would not outlast the 300 units/s that the fleet asks for")
    ]
    full = decide(DIRECT, state(310), pulsed(steady(100, now=late), pulses), now=late)
    assert full.granted == 250


def test_spike_of_the_last_minute_that_is_over_holds_no_capacity() -> None:
    late = NOW.replace(minute=58)

    def granted(*last_minute: int) -> int:
        pulses = told(*[1_000] * (_SINCE - 6), *last_minute, until=late)
        # raised within the hour, so that the bucket fills with 800 units a second
        raised = state(900, last_increase=late - timedelta(minutes=10))
        return decide(DIRECT, raised, pulsed(steady(100, now=late), pulses), now=late).granted

    # three slots of 500 units/s: 300 on average in the last minute
    assert granted(1_000, 1_000, 1_000, 5_000, 5_000, 5_000) == 416, "500 over 120 %"
    assert granted(5_000, 5_000, 5_000, 1_000, 1_000, 1_000) == 129, "as much as carried it with a minute of burst"
    assert granted(*[1_000] * 6) == 100


def test_capacity_is_lowered_in_the_last_minutes_of_an_hour_alone_with_and_without_pulses() -> None:
    def granted_at(minute: int, *, has_pulses: bool) -> int:
        now = NOW.replace(minute=minute)
        pulses = Slots(slot_at(now) - 1, (1_000,) * 90, (0,) * 90)
        calm = steady(100, now=now)
        return decide(DIRECT, state(400), replace(calm, pulses=pulses) if has_pulses else calm, now=now).granted

    for has_pulses in (True, False):
        granted = [granted_at(minute, has_pulses=has_pulses) for minute in (0, 50, 57, 58, 59)]
        assert granted == [400, 400, 400, 100, 100]


def test_help_takes_longer_in_floor_mode_and_above_the_mark() -> None:
    assert help_seconds(Mode.FLOOR, 900, None) == 50
    assert help_seconds(Mode.DIRECT, 900, 900) == 18
    assert help_seconds(Mode.DIRECT, 901, 900) == 310


def test_raise_above_the_mark_is_asked_for_early() -> None:
    pulses = told(*[1_000] * (_SINCE - 1), 2_000)
    assert decided(pulsed(steady(100), pulses)).granted == 120
    above = decide(DIRECT, replace(state(120), mark_units=150), pulsed(steady(100), pulses), now=NOW)
    assert above.granted == 207


def test_client_that_lies_gets_no_more_than_twenty_times_what_was_consumed() -> None:
    pulses = told(*[1_000] * (_SINCE - 1), 10**9)
    assert decided(pulsed(steady(330), pulses), ceiling=39_000).granted == 6_600
    assert decided(pulsed(steady(3), pulses), ceiling=39_000).granted == 1_000


def test_table_that_is_idle_gets_twenty_times_what_the_last_day_consumed() -> None:
    """A morning's first requests come after a night that is longer than the hours that are looked at."""
    idle = pulsed(steady(0), told(*[0] * (_SINCE - 1), 90_000, before=0))
    yesterday = replace(idle, regret=Regret(130, 100, 2_900, 7, highest_units=60 * 130))
    assert [decided(seen, FLOOR, ceiling=39_000).granted for seen in (idle, yesterday)] == [1_000, 2_600]


def test_lie_that_lasts_ends_when_cloudwatch_does_not_bear_it_out() -> None:
    lasting = told(*[100_000] * _SINCE, before=100_000)
    seen = pulsed(steady(100), lasting)
    assert coverage_percent(lasting, seen) == 10_000
    assert decided(seen, ceiling=39_000).granted == 120


def with_job(minutes: int, units: int = 600) -> Observation:
    """300 units a second that the fleet reports; in the newest known minutes a job consumes more, which it does not."""
    consumed = [300 * 60] * (500 - minutes) + [(300 + units) * 60] * minutes
    return pulsed(Observation.of(steady(1).newest, consumed, (0,) * 500), told(*[3_000] * _SINCE, before=3_000))


def test_job_that_is_not_metered_is_met_with_cloudwatchs_first_minute_of_it() -> None:
    assert decided(with_job(0), current=600).granted == 600
    for settings in (FLOOR, DIRECT):
        decision = decided(with_job(1), settings, current=600, ceiling=4_000)
        assert decision.granted == -(-900 * 100 // 97)
        assert decided(with_job(1, 1_500), settings, current=600, ceiling=4_000).granted == -(-1_800 * 100 // 97)


def test_peaks_of_a_table_whose_slots_are_noisy_buy_nothing() -> None:
    def rate_at(*slots: int, noise: int) -> tuple[int, int]:
        """The rate that is believed, and what is granted, at a capacity of 105 that has just been raised."""
        noisy = [1_000 + noise * each for each in (-1, 0, 1)] * 30
        seen = pulsed(steady(100), told(*noisy, *slots, minutes=0))
        fresh = fleet_demand(seen, capacity_units=105, last_increase=NOW - timedelta(seconds=12))
        assert fresh is not None
        raised = state(105, last_increase=NOW - timedelta(seconds=12))
        return fresh.rate, decide(DIRECT, raised, seen, now=NOW).granted

    calm, noisy = (rate_at(1_000, 400, 1_600, noise=noise) for noise in (0, 600))
    assert (calm, noisy) == ((160, 165), (100, 105))
    # a surge is met all the same: as the average of the last minute at first, as more than six times 30 % is none
    assert rate_at(9_000, 9_000, noise=600) == (377, 389)
    assert rate_at(*[9_000] * 6, noise=600) == (900, 928)
    assert rate_at(9_000, 9_000, noise=0) == (900, 928)


def test_client_that_falls_silent_does_not_put_off_what_cloudwatch_asks_for() -> None:
    for capacity, counted in ((450, 900), (450, 980), (300, 1_300), (450, 2_000)):
        silent = pulsed(steady(counted), told(*[0] * _SINCE, before=10 * counted))
        for settings in (FLOOR, DIRECT):
            assert decide(settings, state(capacity), silent, now=NOW).granted >= counted


def test_client_that_tells_of_nothing_lowers_nothing() -> None:
    silent = pulsed(steady(900), told(*[0] * _SINCE, before=9_000))
    assert decide(DIRECT, state(900, ceiling=4_000), silent, now=LATE).granted >= 900
    assert decided(silent, FLOOR, current=900, ceiling=4_000).granted >= 900


def test_spike_that_comes_again_as_it_was_is_no_part_of_the_average() -> None:
    def wanted(*heights: int) -> tuple[int, str]:
        halves: list[int | None] = [unit for height in heights for unit in (*[6_000] * 22, height, *[6_000] * 7)]
        seen = replace(pulsed(steady(100, last=halves), told(*[1_000] * _SINCE)), burst_seconds=300)
        decision = decided(seen)
        return decision.wanted, decision.reason

    # what pulses tell counts a fifth more, as they tell nothing of the spike
    often = "busiest ten minutes of 105 units/s, and peaks above them with 300 s of burst"
    assert wanted(*[24_000] * 4) == (120, often)
    seldom = often.replace("105", "135")
    assert wanted(*[24_000] * 3) == (149, seldom)
    assert wanted(24_000, 30_000, 24_000, 24_000) == (151, seldom), "one of them was larger"


_slots = st.lists(st.integers(0, 40_000), min_size=_SINCE, max_size=_SINCE)


@law
@given(
    st.sampled_from([FLOOR, DIRECT]), st.integers(1, 9_000), _slots, st.integers(0, _SINCE - 1), st.integers(0, 30_000)
)
def test_more_in_a_fresh_slot_never_gives_less(
    settings: ScalerSettings, current: int, fresh: list[int], at: int, more: int
) -> None:
    seen = steady(100)
    higher = [units + (more if place == at else 0) for place, units in enumerate(fresh)]
    for now in (NOW, LATE):
        less, greater = (
            decide(settings, state(current), pulsed(seen, told(*slots)), now=now).granted for slots in (fresh, higher)
        )
        assert less <= greater


@law
@given(st.sampled_from([FLOOR, DIRECT]), st.integers(1, 9_000), _slots)
def test_fresh_slots_never_lower_what_cloudwatch_alone_asks_for(
    settings: ScalerSettings, current: int, fresh: list[int]
) -> None:
    silent = told(*[0] * _SINCE)
    seen = steady(100)
    quiet = decide(settings, state(current), pulsed(seen, silent), now=NOW).granted
    assert decide(settings, state(current), pulsed(seen, told(*fresh)), now=NOW).granted >= quiet


@law
@given(st.sampled_from([FLOOR, DIRECT]), st.integers(1, 9_000), _slots, st.integers(0, 500))
def test_deciding_again_on_the_answer_changes_nothing(
    settings: ScalerSettings, current: int, fresh: list[int], refused: int
) -> None:
    seen = pulsed(steady(100), told(*fresh, refused=refused))
    once = decide(settings, state(current), seen, now=NOW).granted
    increase = NOW if once > current else None
    assert decide(settings, state(once, last_increase=increase), seen, now=NOW).granted == once
