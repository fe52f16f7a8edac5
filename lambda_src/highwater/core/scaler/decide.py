"""The scaler's one decision: what a target's floor, or in DIRECT mode its capacity, should be now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from highwater.core.budget import DecreaseBudget
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.scaler.decisions import Decision, Limit, LimitCode
from highwater.core.scaler.demand import count_jumps, demand_by_minute, peak, yesterday
from highwater.core.scaler.observations import Observation
from highwater.core.scaler.settings import Mode, ScalerSettings
from highwater.core.units import Dimension

_MINUTE = timedelta(minutes=1)
# how far ahead yesterday is looked at: until help comes, and, where capacity may go down, through the next hour
_SOON_MINUTES, _NEXT_HOUR_MINUTES = 18, 70


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetState:
    """One target as it stands, in units per second.

    Attributes:
        index: Name of the index, `None` for the table.
        dimension: READ or WRITE.
        current: Its floor (MinCapacity), or in DIRECT mode its provisioned capacity.
        baseline: The floor that the plan alone asks for now.
        ceiling: The ceiling that the plan asks for now, at least *baseline*.
        boosts: Units that open boosts add.
        quota_units: The account's quota per table and index.
        budget: Decreases used, for DIRECT mode.
    """

    index: str | None
    dimension: Dimension
    current: int
    baseline: int
    ceiling: int
    boosts: int = 0
    quota_units: int = DEFAULT_TABLE_QUOTA_UNITS
    budget: DecreaseBudget = field(default_factory=DecreaseBudget)


def decide(settings: ScalerSettings, state: TargetState, seen: Observation, *, now: datetime) -> Decision:
    """The value that *state*'s target should have at the aware instant *now*.

    The stages, each of which may change what the one before answered and says so in the decision's limits:

    1. demand: units asked for by minute, throttles included and retries taken out;
    2. target: the peak that is held over the target percentage, or yesterday's where that is forecast; a peak counts
       for a while, and at least through an hour that is paid for anyway;
    3. step: at most so many times what was consumed, as throttles may be more retries than thought;
    4. tolerance: a little less than now stays what it is;
    5. caution: without fresh data the value may rise and never falls, as missing data is not zero;
    6. baseline and boosts: never below the plan, and a lease on top;
    7. ceiling and quota: never above either;
    8. hour and budget, in DIRECT mode: lower late in an hour that is paid for anyway, and when a decrease is allowed;
       only a decrease that is not allowed leaves capacity above its ceiling.

    Deciding again on the answer changes nothing. More throttles never give a lower answer.
    """
    now = now.astimezone(UTC)
    # what boosts added is theirs
    held = max(state.current - state.boosts, 0)
    wanted, most, reason = _target(settings, seen, held, now)
    answer = _Answer(wanted)
    if wanted > most:
        answer.become(most, LimitCode.STEP, f"at most {settings.step_percent} % of what was consumed")
    _tolerate(answer, settings, state, held)
    if held > state.baseline:
        _be_cautious(answer, settings, seen, held, now)
    _add_plan(answer, state)
    _clamp(answer, state)
    if settings.mode is Mode.DIRECT:
        _mind_hour_and_budget(answer, settings, state, now)
    return Decision(
        index=state.index,
        dimension=state.dimension,
        current=state.current,
        wanted=wanted,
        granted=answer.units,
        limits=tuple(answer.limits),
        reason=reason,
        has_hot_key=seen.hot_key_events > 0,
    )


@dataclass(slots=True)
class _Answer:
    """The units so far, and what changed them."""

    units: int
    limits: list[Limit] = field(default_factory=list)

    def become(self, units: int, code: LimitCode, sentence: str) -> None:
        if units != self.units:
            self.limits.append(Limit(code, self.units, units, sentence))
            self.units = units


def _target(settings: ScalerSettings, seen: Observation, held: int, now: datetime) -> tuple[int, int, str]:
    """The units that demand asks for, the most that they may be, and where they come from."""
    demand = demand_by_minute(seen, settings.retry_percent)
    minutes = _minutes_held(settings, settings.hold, now)
    wanted, most, reason = _held(demand, seen, minutes, settings.target_percent, settings.step_percent)
    is_late = now.minute >= settings.late_minute
    jumps = count_jumps(
        seen.known_units, settings.jump_history // _MINUTE, settings.jump_percent, settings.jump_level_percent
    )
    if 1 <= jumps <= settings.most_jumps:
        percent = settings.cautious_target_percent
        minutes = _minutes_held(settings, settings.cautious_hold, now)
        cautious, bound, why = _held(demand, seen, minutes, percent, settings.step_percent)
        why = f"{why}, cautious after {jumps} {'jump' if jumps == 1 else 'jumps'}"
        if is_late and cautious > held:
            # headroom for a few minutes would be billed for the hour
            cautious, why = held, f"{why}, though not above {held:,} so late in an hour"
        if cautious > wanted:
            wanted, reason = cautious, why
        most = max(most, bound)
    if settings.forecast_target_percent is None or seen.is_empty:
        return wanted, most, reason
    # the newest minute may be some minutes old already
    old = max(0, seen.age(now) // _MINUTE - seen.late_minutes)
    looks_far = is_late and settings.mode is Mode.DIRECT
    ahead = (_NEXT_HOUR_MINUTES if looks_far else _SOON_MINUTES) + min(old, _NEXT_HOUR_MINUTES)
    before = yesterday(demand, ahead)
    forecast = _per_second(before, settings.forecast_target_percent)
    if forecast > wanted:
        wanted = forecast
        reason = f"yesterday's next minutes: {-(-before // 60):,} units/s at {settings.forecast_target_percent} %"
    return wanted, max(most, forecast), reason


def _minutes_held(settings: ScalerSettings, hold: timedelta, now: datetime) -> int:
    """For how many minutes a peak counts: *hold*, and before the late minute of an hour all since that of the last.

    An hour is billed at its highest value, so lowering within it saves nothing, and late in it the next one's begins.
    """
    minutes = hold // _MINUTE
    return minutes if now.minute >= settings.late_minute else max(minutes, now.minute + 60 - settings.late_minute)


def _held(
    demand: Sequence[int | None], seen: Observation, minutes: int, percent: int, step_percent: int
) -> tuple[int, int, str]:
    """The highest of the last known minutes over a percentage, the most that it may be, and a sentence."""
    # throttles of a minute may be known before its consumption
    window = minutes + seen.late_minutes
    highest = peak(demand, window)
    # a minute without consumption still had a unit a second
    bound = max(peak(seen.consumed_units, window), 60) * step_percent // 100
    reason = f"peak of {-(-highest // 60):,} units/s in the last {minutes} minutes at {percent} %"
    return _per_second(highest, percent), _per_second(bound, percent), reason


def _per_second(units_per_minute: int, percent: int) -> int:
    return -(-units_per_minute * 100 // (60 * percent))


def _tolerate(answer: _Answer, settings: ScalerSettings, state: TargetState, held: int) -> None:
    least = -(-held * (100 - settings.tolerance_percent) // 100)
    # what falls to the plan's own floor falls all the way
    if max(least, state.baseline + 1) <= answer.units < held:
        answer.become(held, LimitCode.TOLERANCE, f"within {settings.tolerance_percent} % of the current value")


def _be_cautious(answer: _Answer, settings: ScalerSettings, seen: Observation, held: int, now: datetime) -> None:
    if answer.units >= held:
        return
    hold = settings.hold // _MINUTE
    window = seen.known_units[-hold:]
    if seen.age(now) > settings.patience:
        answer.become(held, LimitCode.MISSING_DATA, "no fresh datapoint: nothing is lowered on missing data")
    elif seen.lacks_throttles:
        answer.become(held, LimitCode.MISSING_DATA, "throttles are likely and not known")
    elif len(window) < hold or any(units is None for units in window[: -(settings.patience // _MINUTE) or None]):
        answer.become(held, LimitCode.MISSING_DATA, f"datapoints are missing in the last {hold} minutes")


def _add_plan(answer: _Answer, state: TargetState) -> None:
    if answer.units < state.baseline:
        answer.become(state.baseline, LimitCode.BASELINE, "the plan's floor")
    if state.boosts:
        answer.become(answer.units + state.boosts, LimitCode.BOOST, f"boosts of {state.boosts:,} units/s")


def _clamp(answer: _Answer, state: TargetState) -> None:
    if answer.units > state.ceiling:
        answer.become(state.ceiling, LimitCode.CEILING, "the plan's ceiling")
    if answer.units > state.quota_units:
        answer.become(state.quota_units, LimitCode.QUOTA, "the account's quota per table and index")
    if answer.units < 1:
        answer.become(1, LimitCode.BASELINE, "capacity is at least 1")


def _mind_hour_and_budget(answer: _Answer, settings: ScalerSettings, state: TargetState, now: datetime) -> None:
    if answer.units >= state.current:
        return
    is_above = state.current > min(state.ceiling, state.quota_units)
    if now.minute < settings.late_minute and not is_above:
        sentence = f"the hour is paid for at its highest value: not lowered before minute {settings.late_minute}"
        answer.become(state.current, LimitCode.PAID_HOUR, sentence)
    elif not state.budget.allows(now):
        at = state.budget.next_allowed(now)
        sentence = f"the day's decreases are used: the next is allowed at {at:%H:%M:%S} UTC"
        answer.become(state.current, LimitCode.DECREASE_BUDGET, sentence)
