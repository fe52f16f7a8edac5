"""The scaler's one decision, stage by stage: what a target's floor, or in DIRECT mode its capacity, should be now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from highwater.core.bucket import BELIEVED_SECONDS
from highwater.core.scaler.burst import (
    CAPACITY_MINUTES,
    capacity_for_spikes,
    capacity_to_carry,
    expected_drain,
    has_spikes,
    highest_average,
    is_expected,
    is_expected_so_far,
    without_regular_spikes,
    without_spikes,
)
from highwater.core.scaler.decision import Decision, Limit, LimitCode
from highwater.core.scaler.demand import (
    Fresh,
    count_jumps,
    demand_by_minute,
    fresh_of,
    help_seconds,
    peak,
    rise_of_climb,
    yesterday,
)
from highwater.core.scaler.inputs import Observation, TargetState
from highwater.core.scaler.settings import JUMP_HISTORY, LOWERED_FROM_MINUTE, Mode, ScalerSettings
from highwater.core.tracking import NATIVE_TARGET_PERCENT


@dataclass(slots=True)
class Answer:
    """The units so far, and what changed them. A stage that leaves the units as they are is no limit."""

    units: int
    limits: list[Limit] = field(default_factory=list)

    def become(self, units: int, code: LimitCode, sentence: str) -> None:
        """Take the units that a stage answers, and note why."""
        if units != self.units:
            self.limits.append(Limit(code, self.units, units, sentence))
            self.units = units

    def add_boosts(self, state: TargetState) -> None:
        """Add what live boosts ask for."""
        self.become(self.units + state.boosts, LimitCode.BOOST, f"boosts of {state.boosts:,} units/s")
        sentence = f"a boost to {state.boosted_total:,} units/s in total"
        self.become(max(self.units, state.boosted_total), LimitCode.BOOST, sentence)

    def mind_missing_leases(self, state: TargetState) -> None:
        """If leases cannot be read, do not lower the floor."""
        if state.lacks_leases:
            sentence = "the boosts could not be read: nothing is lowered"
            self.become(max(self.units, state.current), LimitCode.MISSING_DATA, sentence)

    def clamp_demand(self, state: TargetState) -> None:
        """Keep what demand asks for from the room that the plan leaves to boosts alone."""
        if state.ceiling_with_boosts > state.ceiling:
            self.become(min(self.units, state.ceiling), LimitCode.CEILING, "the plan's ceiling")

    def clamp(self, state: TargetState) -> None:
        """Stay within ceiling and quota, and at least at one unit."""
        ceiling = max(state.ceiling, state.ceiling_with_boosts)
        self.become(min(self.units, ceiling), LimitCode.CEILING, "the plan's ceiling")
        self.become(min(self.units, state.quota_units), LimitCode.QUOTA, "the account's quota per table and index")
        self.become(max(self.units, 1), LimitCode.BASELINE, "capacity is at least 1")


_MINUTE: Final = timedelta(minutes=1)
# Throttles may be retries of few requests, so capacity is asked for at most a hundred times what was consumed.
STEP_PERCENT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Proposal:
    """The units that one rule asks for.

    Attributes:
        units: What it asks for, in units per second.
        most: What the step limit allows it to ask for.
        reason: Where the units come from, in a sentence.
    """

    units: int
    most: int
    reason: str

    def or_higher(self, other: Proposal | None) -> Proposal:
        """The proposal that asks for more, this one where both ask for the same; with the wider of the two limits."""
        if other is None:
            return self
        higher = other if other.units > self.units else self
        return replace(higher, most=max(self.most, other.most))


def minutes_that_count(settings: ScalerSettings, hold: timedelta, now: datetime) -> int:
    """For how many minutes a peak counts: *hold*, and at least back to when the last hour's lowering began.

    An hour is billed at its highest value, so lowering within it saves nothing until the next one comes near.
    """
    minutes = hold // _MINUTE
    if now.minute >= settings.lower_from_minute:
        return minutes
    return max(minutes, now.minute + 60 - settings.lower_from_minute)


def capacity_for_peak(demand: Sequence[int | None], seen: Observation, minutes: int, percent: int = 100) -> Proposal:
    """Capacity of which the highest demand of the last known *minutes* is *percent*."""
    # throttles of a minute may be known before its consumption is
    window = minutes + seen.pending_minutes
    highest = peak(demand, window)
    # capacity is at least one unit per second, so a step from nothing starts there
    most = max(peak(seen.consumed_units, window), 60) * STEP_PERCENT // 100
    time = "minute" if minutes == 1 else f"{minutes} minutes"
    reason = f"peak of {-(-highest // 60):,} units/s in the last {time}"
    if percent != 100:
        reason = f"{reason} at {percent} %"
    return Proposal(per_second(highest, percent), per_second(most, percent), reason)


def capacity_for_window(demand: Sequence[int | None], seen: Observation, minutes: int, percent: int = 100) -> Proposal:
    """Capacity for the last known *minutes*: for their peak, or for what remains where the burst bucket serves it.

    The bucket serves a spike that came before and was over soon, if the table has shown so much burst and throttles
    nothing. Spikes of the last hour are expected again.
    """
    at_peak = capacity_for_peak(demand, seen, minutes, percent)
    consumed, burst = seen.known_units[:], seen.burst_seconds
    may_spare = burst > BELIEVED_SECONDS and not any(seen.throttled_units)
    calm = without_spikes(consumed, minutes) if may_spare else None
    if calm is not None:
        units = capacity_for_spikes(consumed, per_second(peak(calm, len(calm)), percent), burst)
        if units < at_peak.units and ((consumed[-1] or 0) <= 60 * units or is_expected(consumed, units, burst)):
            return replace(at_peak, units=units, reason=f"{at_peak.reason}, spikes served by {burst} s of burst")
    units = capacity_for_spikes(consumed, at_peak.units, burst)
    if units == at_peak.units:
        return at_peak
    return replace(at_peak, units=units, reason=f"spikes of the last hour, served with {burst} s of burst")


def per_second(units_per_minute: int, percent: int) -> int:
    """Capacity, in units per second, of which *units_per_minute* are so many percent."""
    return -(-units_per_minute * 100 // (60 * percent))


# What is raised leaves room for a little more, so that the bucket fills again.
_RAISED_TARGET_PERCENT: Final = 97
_LEAST_MOST: Final = 1_000
# Pulses raise to at most twenty times what CloudWatch counted, until it bears them out, so that a client that counts
# wrongly gets no further.
_PULSED_STEP_PERCENT: Final = 2_000
# Clients whose requests are refused wait before they ask again, so what they ask for is more than what they tell.
_REFUSED_PERCENT: Final = 150
# How long a peak of a fleet that reports counts: as long as its highest average is taken over.
PULSED_HOLD: Final = timedelta(minutes=10)
# After lowering, the burst bucket must last at least this long at the current rate.
_LOWERED_SECONDS: Final = 60
# What is lowered is not far below what the fleet asks for now, or it is raised again as soon as the bucket is empty.
_LOWERED_TARGET_PERCENT: Final = 120
# Less capacity than the average of so many minutes empties the burst bucket sooner or later.
_HOUR_MINUTES: Final = 60
# Throttles of so many newest minutes say that the burst bucket is emptier than pulses let believe.
_THROTTLED_MINUTES: Final = 8


def propose_with_pulses(settings: ScalerSettings, seen: Observation, fresh: Fresh, now: datetime) -> Proposal:
    """Capacity for the highest average of ten minutes, and for shorter peaks as far as the bucket does not serve them.

    Minutes that CloudWatch does not have yet are counted from the fleet's pulses. The next surge is met when pulses
    report it, so there is neither caution nor forecast. Spikes that come again and again as they were are no part of
    the average: capacity is not raised for them.
    """
    most = _most(seen)
    recent = _newest_demand(seen, minutes_that_count(settings, PULSED_HOLD, now), fresh)
    calm = recent
    if has_spikes(recent):
        calm = without_regular_spikes(_newest_demand(seen, len(seen.known_units), fresh), len(recent))
    average, carried = highest_average(calm), capacity_to_carry(recent, seen.burst_seconds)
    base = max(average, carried)
    # a spike that came only once counts too: pulses would otherwise buy its whole peak when it comes again
    units = capacity_for_spikes(seen.known_units[:], base, seen.burst_seconds, times_before=0)
    reason = f"busiest ten minutes of {average:,} units/s"
    if units > average + 1:
        reason = f"{reason}, and peaks above them with {seen.burst_seconds} s of burst"
    return Proposal(units, most, reason)


def _newest_demand(seen: Observation, minutes: int, fresh: Fresh | None) -> list[int | None]:
    """The demand of the last *minutes* that CloudWatch has, and of those after them that only pulses have."""
    demand = demand_by_minute(seen, minutes + seen.pending_minutes)
    told = () if fresh is None or fresh.coverage_percent is None else fresh.minutes
    return [*demand[: len(demand) - seen.pending_minutes], *told]


def _most(seen: Observation) -> int:
    """The most that pulses can ask for: a multiple of what CloudWatch has of the last day, and for a table that was
    idle for as long a thousand units per second.
    """
    highest = max(seen.consumed_units.peak(), 0 if seen.regret is None else seen.regret.highest_units)
    return max(per_second(highest * _PULSED_STEP_PERCENT // 100, 100), _LEAST_MOST)


def heed_bucket(answer: Answer, settings: ScalerSettings, state: TargetState, seen: Observation, fresh: Fresh) -> None:
    """Raise to what the fleet asks for where the burst bucket would not last until help is there.

    Where it would, nothing is raised above the last hour's average: capacity below that empties the bucket in the end,
    and the raise that is then necessary is larger.
    """
    seconds = help_seconds(settings.mode, fresh.rate, state.mark_units)
    capacity, now_at = state.capacity_units, f"{fresh.rate:,} units/s"
    enough = _enough(fresh.rate, seen, is_refused=fresh.is_refused)
    is_throttled = any(seen.throttled_units[-_THROTTLED_MINUTES:])
    lasts = fresh.lasts(capacity, seconds)
    if not lasts and not fresh.was_refused and not is_throttled:
        lasts = is_expected_so_far(seen.known_units[:], fresh.minutes, capacity, fresh.burst_seconds)
    if not lasts:
        why = "requests were refused" if fresh.is_refused else f"the burst bucket does not last {seconds} s"
        answer.become(max(answer.units, enough), LimitCode.BUCKET, f"the fleet asks for {now_at} and {why}")
    elif fresh.coverage_percent is not None and not is_throttled and fresh.lasts_as_counted(capacity, seconds):
        not_above = max(capacity, state.current_without_boosts, _average_of_hour(seen))
        sentence = f"the burst bucket outlasts the {now_at} that the fleet asks for"
        answer.become(min(answer.units, not_above), LimitCode.BUCKET, sentence)
    if fresh.was_refused:
        least = _enough(fresh.rate, seen, is_refused=True)
    else:
        least = max(
            fresh.least_that_lasts(seconds + _LOWERED_SECONDS), fresh.least_rate * 100 // _LOWERED_TARGET_PERCENT
        )
    if answer.units < min(capacity, least):
        sentence = f"with less, the burst bucket would not outlast the {now_at} that the fleet asks for"
        answer.become(min(capacity, least), LimitCode.BUCKET, sentence)


def _average_of_hour(seen: Observation) -> int:
    """Return what was consumed in the last hour, in units per second; minutes that are not known count as none."""
    return -(-sum(units or 0 for units in seen.known_units[-_HOUR_MINUTES:]) // (60 * _HOUR_MINUTES))


def _enough(rate: int, seen: Observation, *, is_refused: bool) -> int:
    asked = rate * (_REFUSED_PERCENT if is_refused else 100)
    return min(-(-asked // _RAISED_TARGET_PERCENT), _most(seen))


def decide_by_plan(state: TargetState) -> Decision:
    """Return the floor that plan and boosts ask for now; demand is left to target tracking."""
    answer = Answer(state.baseline)
    without_boosts = state.clamped(state.baseline)
    answer.clamp_demand(state)
    answer.add_boosts(state)
    answer.mind_missing_leases(state)
    answer.clamp(state)
    return Decision(
        index=state.index,
        dimension=state.dimension,
        current=state.current,
        wanted=state.baseline,
        granted=answer.units,
        limits=tuple(answer.limits),
        reason="the plan's floor",
        boosted=answer.units - without_boosts,
    )


# How far ahead yesterday is looked at: until help comes, and, where capacity may go down, through the next hour.
_SOON_MINUTES, _NEXT_HOUR_MINUTES = 18, 70
# How far a climb is extrapolated: from the newest datapoint until the next raise is there, which takes longer by auto
# scaling.
_CLIMB_MINUTES = {Mode.FLOOR: 8, Mode.DIRECT: 5}
# Caution is for tables that jump now and then. One that jumps more often, once an hour say, has its peaks held longer.
_MOST_JUMPS = 4
_HOLD_OF_FREQUENT_JUMPS = timedelta(hours=1)
# A table whose oldest datapoint is younger may be one that jumps, so it has the headroom of one.
_NEW_MINUTES = 60
# What is known of it is averaged over so many minutes, so that a first spike is no level to jump from.
_AVERAGED_MINUTES = 10
# A value that would fall by less stays: each change is a call, and in DIRECT mode one of the day's decreases.
_TOLERANCE_PERCENT = 3
# Consumption is missing once its newest datapoint is older than this; CloudWatch's are there after three minutes.
MISSING_AFTER = timedelta(minutes=10)


def decide(
    settings: ScalerSettings, state: TargetState, seen: Observation, *, now: datetime, fresh: Fresh | None = None
) -> Decision:
    """The value that *state*'s target should have at the aware instant *now*.

    Each stage may change what the one before answered, and then says so in the decision's limits:

    1. demand: the units asked for in each minute, throttled requests included;
    2. proposal: the highest of capacity for the peak of the last minutes, for a climb that goes on, for the next jump
       of a table that jumps, or of which less than an hour is known, and for yesterday's next minutes (forecast).
       Spikes that came before and that the burst bucket serves are left to it. For a fleet whose pulses cover enough
       of CloudWatch's count, it is capacity for the highest average of ten minutes, and for peaks above it as far as
       the bucket does not serve them;
    3. step: at most so many times what was consumed, as throttles may be more retries than thought;
    4. bucket: raised to the demand in the fleet's pulses where the burst bucket would not last until a raise takes
       effect, unless the surge is like earlier ones that the bucket served; where it would last, nothing is raised
       above the last hour's average, and lowered only as far as the bucket still lasts;
    5. regret: no more than target tracking would have, where the last day cost clearly more than that, for throttles
       that are not worth it; within an hour that is paid for, nothing is lowered for it, and a surge that is larger or
       longer than the last spikes is met;
    6. tolerance: a value only a little lower than the current one leaves it;
    7. missing data: without fresh data the value may rise and never falls, as missing data is not zero;
    8. baseline and boosts: never below the plan, and boosts on top; not lower while the leases cannot be read;
    9. ceiling and quota: never above either;
    10. paid hour and budget, in DIRECT mode: lower only late in an hour that is paid for anyway, and only where
       DynamoDB allows a decrease. A decrease that it refuses is the one case of capacity above its ceiling.

    In FLOOR mode capacity above the value is lowered to it at the end of an hour, if DynamoDB allows a decrease, no
    datapoint is missing and nothing throttled in the last minutes (`Decision.lowered_to`).

    *fresh* is what `fresh_of` returns for the same target; by default it is worked out here.

    Deciding again on the answer changes nothing. More throttles never give a lower answer.
    """
    now = now.astimezone(UTC)
    if fresh is None:
        fresh = fresh_of(seen, capacity_units=state.capacity_units, last_increase=state.last_increase)
    if fresh is None or fresh.coverage_percent is None:
        proposal = _propose(settings, state, seen, now)
    else:
        settings = replace(settings, lower_from_minute=settings.pulsed_lower_from_minute)
        proposal = propose_with_pulses(settings, seen, fresh, now)
        if any(seen.throttled_units):
            proposal = proposal.or_higher(_hold_throttled(settings, seen, now))
    answer = Answer(proposal.units)
    within_step = min(proposal.units, proposal.most)
    answer.become(within_step, LimitCode.STEP, f"at most {STEP_PERCENT // 100} times what was consumed")
    if fresh is not None:
        heed_bucket(answer, settings, state, seen, fresh)
    _mind_regret(answer, settings, state, seen, fresh, now)
    _tolerate(answer, state)
    missing = _missing_data(settings, seen, now)
    if missing is not None and state.current_without_boosts > state.baseline:
        answer.become(max(answer.units, state.current_without_boosts), LimitCode.MISSING_DATA, missing)
    answer.become(max(answer.units, state.baseline), LimitCode.BASELINE, "the plan's floor")
    without_boosts = state.clamped(answer.units)
    answer.clamp_demand(state)
    answer.add_boosts(state)
    answer.mind_missing_leases(state)
    answer.clamp(state)
    boosted = answer.units - without_boosts
    if settings.mode is Mode.DIRECT:
        _mind_hour_and_budget(answer, settings, state, now)
        # what is kept until the hour ends, of boosts that have ended
        boosted = max(boosted, min(answer.units - without_boosts, state.boosted or 0))
    lowers = settings.mode is Mode.FLOOR and missing is None
    lowered_to = _lowered_to(answer, state, seen, now) if lowers else None
    return Decision(
        index=state.index,
        dimension=state.dimension,
        current=state.current,
        wanted=proposal.units,
        granted=answer.units,
        limits=tuple(answer.limits),
        reason=proposal.reason,
        has_hot_key=seen.hot_key_events > 0,
        boosted=boosted,
        lowered_to=lowered_to,
    )


def _propose(settings: ScalerSettings, state: TargetState, seen: Observation, now: datetime) -> Proposal:
    """The highest of what the rules for a fleet that tells nothing ask for."""
    demand = demand_by_minute(seen)
    proposal = _hold_peak(settings, demand, seen, now)
    proposal = proposal.or_higher(_follow_climb(settings, demand, seen))
    proposal = proposal.or_higher(_expect_jump(settings, demand, seen, state, now))
    return proposal.or_higher(_forecast(settings, demand, seen, now))


def _hold_peak(settings: ScalerSettings, demand: Sequence[int | None], seen: Observation, now: datetime) -> Proposal:
    """Capacity for the highest demand of the last minutes."""
    minutes = minutes_that_count(settings, settings.hold, now)
    return capacity_for_window(demand, seen, minutes)


def _hold_throttled(settings: ScalerSettings, seen: Observation, now: datetime) -> Proposal:
    """Capacity for the highest demand of the last minutes, up to the newest one in which requests were throttled.

    A throttle may mean that pulses came late, or from a part of the fleet only, so what CloudWatch counted until then
    is held as long as without pulses. Later peaks were met without throttles: their pulses came in time.
    """
    demand = demand_by_minute(seen)
    calm = next(minutes for minutes, units in enumerate(reversed(seen.throttled_units)) if units)
    minutes = minutes_that_count(settings, settings.hold, now) + seen.pending_minutes
    highest = peak(demand[: len(demand) - calm], minutes - calm)
    most = max(peak(seen.consumed_units, minutes), 60) * STEP_PERCENT // 100
    reason = f"peak of {-(-highest // 60):,} units/s until a throttle {calm + 1} minutes ago"
    return Proposal(per_second(highest, 100), per_second(most, 100), reason)


def _follow_climb(settings: ScalerSettings, demand: Sequence[int | None], seen: Observation) -> Proposal | None:
    """Capacity for a climb that goes on until the next raise is there; `None` where nothing climbs.

    Without it every raise is for the demand of some minutes ago, and a climb of minutes empties the burst bucket.
    """
    rise = rise_of_climb(seen.known_units, _CLIMB_MINUTES[settings.mode], settings.hold // _MINUTE)
    if not rise:
        return None
    climbed = (demand[-1 - seen.pending_minutes] or 0) + rise
    units = per_second(climbed, 100)
    return Proposal(units, units, f"climbing to {units:,} units/s")


def _expect_jump(
    settings: ScalerSettings, demand: Sequence[int | None], seen: Observation, state: TargetState, now: datetime
) -> Proposal | None:
    """Capacity for the next jump of a table that jumped lately, or that is too new to say; `None` for any other."""
    jumps = count_jumps(seen.known_units, JUMP_HISTORY // _MINUTE, settings.jump_percent)
    if jumps > _MOST_JUMPS:
        minutes = minutes_that_count(settings, _HOLD_OF_FREQUENT_JUMPS, now)
        proposal = capacity_for_window(demand, seen, minutes)
        return replace(proposal, reason=f"{proposal.reason}, after {jumps} jumps")
    percent = settings.cautious_target_percent
    current = state.current_without_boosts
    if jumps:
        proposal = capacity_for_window(demand, seen, minutes_that_count(settings, _MINUTE, now), percent)
        newest = capacity_for_peak(demand, seen, 1, percent)
        if proposal.units > max(newest.units, current):
            # the peak is over: its headroom stays while the hour is paid for, but is not bought anew
            proposal = newest if newest.units > current else replace(proposal, units=current)
        reason = f"{proposal.reason}, cautious after {jumps} {'jump' if jumps == 1 else 'jumps'}"
    elif _is_new(seen):
        proposal = _capacity_for_average(demand, seen, percent)
        reason = f"{proposal.reason}, cautious as less than an hour is known"
    else:
        return None
    if now.minute >= settings.lower_from_minute and proposal.units > current:
        # headroom for the few minutes that are left would be billed for the whole hour
        return Proposal(current, proposal.most, f"{reason}, though not above {current:,} so late in an hour")
    return replace(proposal, reason=reason)


def _is_new(seen: Observation) -> bool:
    """Whether the oldest datapoint that is known of the table is less than an hour before the newest."""
    return all(units is None for units in seen.known_units[: 1 - _NEW_MINUTES])


def _capacity_for_average(demand: Sequence[int | None], seen: Observation, percent: int) -> Proposal:
    """Capacity of which the average of the last ten known minutes is *percent*, so that a spike adds no headroom."""
    # minutes whose consumption is still to come are no minutes without any
    average = highest_average(demand[: len(demand) - seen.pending_minutes][-_AVERAGED_MINUTES:])
    units = -(-average * 100 // percent)
    return Proposal(units, units, f"average of {average:,} units/s at {percent} %")


def _forecast(
    settings: ScalerSettings, demand: Sequence[int | None], seen: Observation, now: datetime
) -> Proposal | None:
    """Capacity for what the coming minutes brought a day ago; `None` where there is no forecast."""
    percent = settings.forecast_target_percent
    if percent is None or seen.is_empty:
        return None
    is_late = now.minute >= settings.lower_from_minute
    ahead = _NEXT_HOUR_MINUTES if is_late and settings.mode is Mode.DIRECT else _SOON_MINUTES
    # a day before the newest minute that is known is some minutes earlier than a day before now
    minutes_since_newest = max(0, seen.age(now) // _MINUTE - seen.pending_minutes)
    highest = yesterday(demand, ahead + min(minutes_since_newest, _NEXT_HOUR_MINUTES))
    units = per_second(highest, percent)
    return Proposal(units, units, f"yesterday's next minutes: {-(-highest // 60):,} units/s at {percent} %")


def _mind_regret(
    answer: Answer,
    settings: ScalerSettings,
    state: TargetState,
    seen: Observation,
    fresh: Fresh | None,
    now: datetime,
) -> None:
    """Grant no more than is worth its price, where the last day cost more than target tracking and than it is worth."""
    regret = seen.regret
    if regret is None:
        return
    # the day ends with the last datapoint of provisioned capacity, up to five minutes before that of consumption
    newest = _newest_demand(seen, CAPACITY_MINUTES + 1, fresh)
    most = regret.most_units(settings.throttle_price_requests, [units or 0 for units in newest])
    if most is None:
        return
    if answer.units > most and fresh is not None and _is_new_surge(fresh, settings, state, seen, most):
        return
    if now.minute < settings.lower_from_minute:
        # an hour is billed at its highest value
        most = max(most, state.current_without_boosts)
    sentence = (
        f"the last day cost {regret.over_percent} % more than target tracking at {NATIVE_TARGET_PERCENT} %, which "
        f"would have throttled {regret.native_throttled_units:,} units: more is not worth its price"
    )
    answer.become(min(answer.units, most), LimitCode.REGRET, sentence)


def _is_new_surge(fresh: Fresh, settings: ScalerSettings, state: TargetState, seen: Observation, units: int) -> bool:
    """Whether the fleet's surge would empty the bucket of a capacity of *units*, and is unlike what was regretted."""
    if fresh.lasts(units, help_seconds(settings.mode, fresh.rate, state.mark_units)):
        return False
    return expected_drain(seen.known_units[:], fresh.minutes, units) is None


def _tolerate(answer: Answer, state: TargetState) -> None:
    current = state.current_without_boosts
    # a value that falls to the plan's own floor falls all the way. One unit more is tolerated, as both are rounded
    if answer.units > state.baseline and (answer.units + 1) * 100 >= current * (100 - _TOLERANCE_PERCENT):
        sentence = f"within {_TOLERANCE_PERCENT} % of the current value"
        answer.become(max(answer.units, current), LimitCode.TOLERANCE, sentence)


def _missing_data(settings: ScalerSettings, seen: Observation, now: datetime) -> str | None:
    """Why too little is known to lower anything, in a sentence; `None` where enough is.

    CloudWatch now and then has no datapoint for an idle minute (recorded: radkawar/stackd 9dc356f,
    testdata/aws/dynamodb/capacity_metrics, one of ten). Such a minute alone, between two that are known, hides nothing
    that would last; two in a row, or more than a fifth of the minutes, may.
    """
    hold = settings.hold // _MINUTE
    window = seen.known_units[-hold:]
    # the newest minutes may still be coming
    settled = window[: -(MISSING_AFTER // _MINUTE)]
    if seen.age(now) > MISSING_AFTER:
        return "no fresh datapoint: nothing is lowered on missing data"
    if seen.lacks_throttles:
        return "throttles are likely, and CloudWatch did not report them"
    has_gap = any(one is None and other is None for one, other in pairwise(settled))
    if len(window) < hold or has_gap or 5 * list(settled).count(None) > len(settled):
        return f"datapoints are missing in the last {hold} minutes"
    return None


def _lowered_to(answer: Answer, state: TargetState, seen: Observation, now: datetime) -> int | None:
    """The capacity to lower to at once; `None` where that is left to auto scaling, which waits for 15 calm minutes.

    An hour is billed at its highest value, so capacity is lowered at the end of an hour only, and only where that is
    worth one of the day's decreases. Without the headroom of its target utilization, target tracking raises again, for
    what the last minute alone consumed. Where that minute is a spike, it would buy the whole spike for an hour, so the
    headroom stays after an hour with spikes.
    """
    is_late = now.minute >= LOWERED_FROM_MINUTE
    is_sure = not state.lacks_leases and not any(seen.throttled_units[-_THROTTLED_MINUTES:])
    if not is_late or not is_sure or not state.budget.allows(now + state.patience):
        return None
    units = answer.units
    if state.tracked_percent is not None and has_spikes(seen.known_units):
        units = max(units, state.clamped(per_second(seen.known_units[-1] or 0, state.tracked_percent)))
    return units if units * 100 < state.capacity_units * (100 - _TOLERANCE_PERCENT) else None


def _mind_hour_and_budget(answer: Answer, settings: ScalerSettings, state: TargetState, now: datetime) -> None:
    not_lower = max(answer.units, state.current)
    is_boosted = state.boosts > 0 or state.boosted_total > 0
    ceiling = max(state.ceiling, state.ceiling_with_boosts) if is_boosted else state.ceiling
    is_above_bounds = state.current > min(ceiling, state.quota_units)
    if now.minute < settings.lower_from_minute and not is_above_bounds:
        minute = settings.lower_from_minute
        sentence = f"the hour is paid for at its highest value: not lowered before minute {minute}"
        answer.become(not_lower, LimitCode.PAID_HOUR, sentence)
    elif not state.budget.allows(now + state.patience):
        at = state.budget.next_allowed(now)
        sentence = f"the day's decreases are used: the next is allowed at {at:%H:%M:%S} UTC"
        answer.become(not_lower, LimitCode.DECREASE_BUDGET, sentence)
