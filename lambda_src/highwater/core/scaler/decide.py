"""The scaler's one decision: what a target's floor, or in DIRECT mode its capacity, should be now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from highwater.core.scaler.answer import Answer
from highwater.core.scaler.decisions import Decision, LimitCode
from highwater.core.scaler.demand import count_jumps, demand_by_minute, rise_of_climb, yesterday
from highwater.core.scaler.fresh import fresh_of
from highwater.core.scaler.observations import Observation
from highwater.core.scaler.proposals import STEP_PERCENT, Proposal, capacity_for_peak, minutes_that_count, per_second
from highwater.core.scaler.pulsed import heed_bucket, propose_with_pulses
from highwater.core.scaler.settings import JUMP_HISTORY, Mode, ScalerSettings
from highwater.core.scaler.state import TargetState

_MINUTE = timedelta(minutes=1)
# How far ahead yesterday is looked at: until help comes, and, where capacity may go down, through the next hour.
_SOON_MINUTES, _NEXT_HOUR_MINUTES = 18, 70
# How far a climb is extrapolated: from the newest datapoint until the next raise is there, which takes longer by auto
# scaling.
_CLIMB_MINUTES = {Mode.FLOOR: 8, Mode.DIRECT: 5}
# Caution is for tables that jump now and then. One that jumps more often, once an hour say, has its peaks held longer.
_MOST_JUMPS = 4
_HOLD_OF_FREQUENT_JUMPS = timedelta(hours=1)
# A value that would fall by less stays: each change is a call, and in DIRECT mode one of the day's decreases.
_TOLERANCE_PERCENT = 3
# Consumption is missing once its newest datapoint is older than this; CloudWatch's are there after three minutes.
MISSING_AFTER = timedelta(minutes=10)


def decide(settings: ScalerSettings, state: TargetState, seen: Observation, *, now: datetime) -> Decision:
    """The value that *state*'s target should have at the aware instant *now*.

    Each stage may change what the one before answered, and then says so in the decision's limits:

    1. demand: the units asked for in each minute, throttled requests included;
    2. proposal: the highest of capacity for the peak that is held, for a climb that goes on, for the next jump of a
       table that jumps, and for yesterday's next minutes (forecast);
       A fleet whose pulses cover enough of what CloudWatch counts needs the first alone, at a higher target;
    3. step: at most so many times what was consumed, as throttles may be more retries than thought;
    4. bucket: raised to what the fleet's pulses ask for where the burst bucket would not last until help is there;
       where it would, nothing is raised, and nothing lowered that would change that;
    5. tolerance: a value only a little lower than the current one leaves it;
    6. missing data: without fresh data the value may rise and never falls, as missing data is not zero;
    7. baseline and boosts: never below the plan, and boosts on top; not lower while the leases cannot be read;
    8. ceiling and quota: never above either;
    9. paid hour and budget, in DIRECT mode: lower only late in an hour that is paid for anyway, and only where
       DynamoDB allows a decrease. A decrease that it refuses is the one case of capacity above its ceiling.

    Deciding again on the answer changes nothing. More throttles never give a lower answer.
    """
    now = now.astimezone(UTC)
    fresh = fresh_of(seen, seen.pulses, capacity_units=state.capacity_units, last_increase=state.last_increase)
    if fresh is None or fresh.coverage_percent is None:
        proposal = _propose(settings, state, seen, now)
    else:
        proposal = propose_with_pulses(settings, seen, fresh, now)
    answer = Answer(proposal.units)
    within_step = min(proposal.units, proposal.most)
    answer.become(within_step, LimitCode.STEP, f"at most {STEP_PERCENT // 100} times what was consumed")
    if fresh is not None:
        heed_bucket(answer, settings, state, seen, fresh)
    _tolerate(answer, state)
    if state.current_without_boosts > state.baseline:
        _mind_missing_data(answer, settings, state, seen, now)
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
    return capacity_for_peak(demand, seen, minutes_that_count(settings, settings.hold, now), settings.target_percent)


def _follow_climb(settings: ScalerSettings, demand: Sequence[int | None], seen: Observation) -> Proposal | None:
    """Capacity for a climb that goes on until the next raise is there; `None` where nothing climbs.

    Without it every raise is for the demand of some minutes ago, and a climb of minutes empties the burst bucket.
    """
    rise = rise_of_climb(seen.known_units, _CLIMB_MINUTES[settings.mode], settings.hold // _MINUTE)
    if not rise:
        return None
    climbed = (demand[-1 - seen.pending_minutes] or 0) + rise
    units = per_second(climbed, settings.target_percent)
    return Proposal(units, units, f"climbing to {-(-climbed // 60):,} units/s at {settings.target_percent} %")


def _expect_jump(
    settings: ScalerSettings, demand: Sequence[int | None], seen: Observation, state: TargetState, now: datetime
) -> Proposal | None:
    """Capacity for the next jump of a table that jumped lately; `None` for any other table."""
    jumps = count_jumps(seen.known_units, JUMP_HISTORY // _MINUTE, settings.jump_percent)
    if not jumps:
        return None
    if jumps > _MOST_JUMPS:
        minutes = minutes_that_count(settings, _HOLD_OF_FREQUENT_JUMPS, now)
        proposal = capacity_for_peak(demand, seen, minutes, settings.target_percent)
        return replace(proposal, reason=f"{proposal.reason}, after {jumps} jumps")
    return _be_cautious(settings, demand, seen, state, now, jumps)


def _be_cautious(
    settings: ScalerSettings,
    demand: Sequence[int | None],
    seen: Observation,
    state: TargetState,
    now: datetime,
    jumps: int,
) -> Proposal:
    """Headroom over the demand of now, so that the burst bucket outlasts the next jump until help comes."""
    minutes = minutes_that_count(settings, _MINUTE, now)
    proposal = capacity_for_peak(demand, seen, minutes, settings.cautious_target_percent)
    reason = f"{proposal.reason}, cautious after {jumps} {'jump' if jumps == 1 else 'jumps'}"
    current = state.current_without_boosts
    if now.minute >= settings.lower_from_minute and proposal.units > current:
        # headroom for the few minutes that are left would be billed for the whole hour
        return Proposal(current, proposal.most, f"{reason}, though not above {current:,} so late in an hour")
    return replace(proposal, reason=reason)


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


def _tolerate(answer: Answer, state: TargetState) -> None:
    current = state.current_without_boosts
    # a value that falls to the plan's own floor falls all the way
    if answer.units > state.baseline and answer.units * 100 >= current * (100 - _TOLERANCE_PERCENT):
        sentence = f"within {_TOLERANCE_PERCENT} % of the current value"
        answer.become(max(answer.units, current), LimitCode.TOLERANCE, sentence)


def _mind_missing_data(
    answer: Answer, settings: ScalerSettings, state: TargetState, seen: Observation, now: datetime
) -> None:
    not_lower = max(answer.units, state.current_without_boosts)
    hold = settings.hold // _MINUTE
    window = seen.known_units[-hold:]
    # the newest minutes may still be coming
    settled = window[: -(MISSING_AFTER // _MINUTE)]
    if seen.age(now) > MISSING_AFTER:
        answer.become(not_lower, LimitCode.MISSING_DATA, "no fresh datapoint: nothing is lowered on missing data")
    elif seen.lacks_throttles:
        answer.become(not_lower, LimitCode.MISSING_DATA, "throttles are likely, and CloudWatch did not report them")
    elif len(window) < hold or any(units is None for units in settled):
        answer.become(not_lower, LimitCode.MISSING_DATA, f"datapoints are missing in the last {hold} minutes")


def _mind_hour_and_budget(answer: Answer, settings: ScalerSettings, state: TargetState, now: datetime) -> None:
    not_lower = max(answer.units, state.current)
    is_above_bounds = state.current > min(state.ceiling, state.quota_units)
    if now.minute < settings.lower_from_minute and not is_above_bounds:
        minute = settings.lower_from_minute
        sentence = f"the hour is paid for at its highest value: not lowered before minute {minute}"
        answer.become(not_lower, LimitCode.PAID_HOUR, sentence)
    elif not state.budget.allows(now):
        at = state.budget.next_allowed(now)
        sentence = f"the day's decreases are used: the next is allowed at {at:%H:%M:%S} UTC"
        answer.become(not_lower, LimitCode.DECREASE_BUDGET, sentence)
