"""The scaler's one decision, stage by stage: what a target's floor, or in DIRECT mode its capacity, should be now.

In a sentence: *down once an hour, in minute 58, to what the next hour needs; up at any time, when more is asked for
than there is.* DynamoDB bills an hour at its highest value and allows few decreases a day, so nothing else saves.

`STAGES` is the order. The first ones say what is asked for, and the highest counts. Each later one may change that, and
then says so in the decision's limits. No stage needs another one: each can be read, and switched off, alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Final, TypeAlias

from highwater.core.bucket import BELIEVED_SECONDS
from highwater.core.plan.zones import MINUTES_PER_DAY
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
from highwater.core.scaler.demand import demand_by_minute, peak
from highwater.core.scaler.fleet import FleetDemand, fleet_demand, help_seconds
from highwater.core.scaler.inputs import Observation, TargetState
from highwater.core.scaler.settings import JUMP_MINUTES, LOWERED_FROM_MINUTE, Mode, ScalerSettings
from highwater.core.tracking import DEFAULT_TARGET_PERCENT

# For how many minutes a peak counts: without pulses, where the table jumps often, and with pulses. Over as many as with
# pulses the demand of a new table is averaged.
_HOLD_MINUTES: Final = 30
_HOUR_MINUTES: Final = 60
_PULSED_HOLD_MINUTES: Final = 10
# What is raised leaves room for a little more, so that the bucket fills again.
_RAISED_TARGET_PERCENT: Final = 97
# A value that would fall by less stays: each change is a call, and in DIRECT mode one of the day's decreases.
_TOLERANCE_PERCENT: Final = 3
# Consumption jumps where four minutes average more than this share of the highest of the fifteen minutes before.
_JUMP_PERCENT: Final = 160
# Headroom is for tables that jump now and then. One that jumps more often, once an hour say, has its peaks held longer.
_MOST_JUMPS: Final = 4
# How far ahead yesterday is looked at: until help comes. So much of its demand is left to the burst bucket.
_SOON_MINUTES: Final = 18
_YESTERDAY_PERCENT: Final = 200
# Throttles may be retries of few requests, and a client may count wrongly: at most so many times what was consumed, and
# for a table that was idle so many units per second.
_STEP_TIMES: Final = 20
_LEAST_STEP_UNITS: Final = 1_000
# Where requests are refused the bucket is empty, and what waits to be sent again comes on top of what is asked for.
_REFUSED_PERCENT: Final = 150
# What is lowered is not far below what the fleet asks for now, or it is raised again as soon as the bucket is empty.
_LOWERED_TARGET_PERCENT: Final = 120
# Consumption is missing once its newest datapoint is older than this; CloudWatch's are there after three minutes.
MISSING_AFTER: Final = timedelta(minutes=10)
_MINUTE: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class Facts:
    """All that a stage may look at.

    Attributes:
        settings: The scaler's mode, and what a throttled unit is worth.
        state: The target as it stands.
        seen: What CloudWatch has of its last minutes.
        fleet: What the fleet's pulses add to that; `None` for a fleet that tells nothing.
        now: The instant in UTC that is decided for.
    """

    settings: ScalerSettings
    state: TargetState
    seen: Observation
    fleet: FleetDemand | None
    now: datetime

    @cached_property
    def is_pulsed(self) -> bool:
        """Whether the fleet's pulses cover enough of what CloudWatch counts to size capacity from."""
        return self.fleet is not None and self.fleet.coverage_percent is not None

    @cached_property
    def demand(self) -> list[int | None]:
        """The units asked for in each minute, refused ones included."""
        return demand_by_minute(self.seen)

    @cached_property
    def jumps(self) -> int:
        """How often consumption jumped in the last eight hours."""
        return self.seen.known_units.count_jumps(JUMP_MINUTES, _JUMP_PERCENT)

    @cached_property
    def step_units(self) -> int:
        """The most that may be asked for, in units per second."""
        regret = self.seen.regret
        highest = max(self.seen.consumed_units.peak(), 0 if regret is None else regret.highest_units)
        return max(per_second(highest * _STEP_TIMES), _LEAST_STEP_UNITS)

    @cached_property
    def is_throttled(self) -> bool:
        """Whether requests were throttled in the last half hour: the bucket is emptier than it is believed to be."""
        return any(self.seen.throttled_units)

    @cached_property
    def missing_data(self) -> str | None:
        """Why too little is known to lower anything, in a sentence; `None` where enough is.

        CloudWatch now and then has no datapoint for an idle minute (recorded: radkawar/stackd 9dc356f,
        testdata/aws/dynamodb/capacity_metrics, one of ten). Such a minute alone, between two that are known, hides
        nothing that would last; two in a row, or more than a fifth of the minutes, may.
        """
        if not self.settings.mode.follows_demand:
            return None
        window = self.seen.known_units[-_HOLD_MINUTES:]
        # the newest minutes may still be coming
        settled = window[: -(MISSING_AFTER // _MINUTE)]
        if self.seen.age(self.now) > MISSING_AFTER:
            return "no fresh datapoint: nothing is lowered on missing data"
        if self.seen.lacks_throttles:
            return "throttles are likely, and CloudWatch did not report them"
        has_gap = any(one is None and other is None for one, other in pairwise(settled))
        if len(window) < _HOLD_MINUTES or has_gap or 5 * settled.count(None) > len(settled):
            return f"datapoints are missing in the last {_HOLD_MINUTES} minutes"
        return None

    def minutes_that_count(self, hold_minutes: int) -> int:
        """For how many minutes a peak counts: so many, and at least back to when the last hour's lowering began."""
        minute = self.now.minute
        return hold_minutes if minute >= LOWERED_FROM_MINUTE else max(hold_minutes, minute + 60 - LOWERED_FROM_MINUTE)

    def newest_demand(self, minutes: int) -> list[int | None]:
        """The demand of the last *minutes* that CloudWatch has, and of those after them that only pulses have."""
        pending = self.seen.pending_minutes
        demand = self.demand[-(minutes + pending) :]
        told = self.fleet.minutes if self.fleet is not None and self.is_pulsed else ()
        return [*demand[: len(demand) - pending], *told]

    @cached_property
    def help_seconds(self) -> int:
        """How long it takes until a raise for what the fleet asks for is there; of no meaning without a fleet."""
        rate = 0 if self.fleet is None else self.fleet.rate
        return help_seconds(self.settings.mode, rate, self.state.mark_units)

    @cached_property
    def bucket_lasts(self) -> bool:
        """Whether the burst bucket lasts until help is there, or what goes on is like what it served before."""
        fleet, capacity = self.fleet, self.state.capacity_units
        if fleet is None or fleet.lasts(capacity, self.help_seconds):
            return True
        if fleet.was_refused or self.is_throttled:
            return False
        return is_expected_so_far(self.seen.known_units[:], fleet.minutes, capacity, fleet.burst_seconds)


@dataclass(slots=True)
class Answer:
    """The units so far, where they come from, and what changed them. What leaves them as they are is no limit."""

    units: int = 0
    wanted: int = 0
    reason: str = ""
    limits: list[Limit] = field(default_factory=list)
    without_boosts: int = 0
    boosted: int = 0

    def ask(self, units: int, reason: str) -> None:
        """Ask for so many units: the highest that is asked for counts, the first of two that ask for the same."""
        if not self.reason or units > self.units:
            self.units = self.wanted = units
            self.reason = reason

    def become(self, units: int, code: LimitCode, sentence: str) -> None:
        """Take the units that a stage answers, and note why."""
        if units != self.units:
            self.limits.append(Limit(code, self.units, units, sentence))
            self.units = units

    def keep_current(self, at: Facts, code: LimitCode, sentence: str) -> None:
        """Lower nothing; what is kept may be for boosts that have ended."""
        self.become(max(self.units, at.state.current), code, sentence)
        self.boosted = max(self.boosted, min(self.units - self.without_boosts, at.state.boosted or 0))


Stage: TypeAlias = Callable[[Answer, Facts], None]


def ask_for_plan(answer: Answer, at: Facts) -> None:
    """Where demand is left to target tracking, ask for the plan's floor."""
    if not at.settings.mode.follows_demand:
        answer.ask(at.state.baseline, "the plan's floor")


def hold_peak(answer: Answer, at: Facts) -> None:
    """Hold the highest demand of the last half hour, or hour where the table jumps often, and back to minute 58.

    A spike is left to the burst bucket if it came before and the bucket serves it. What DIRECT mode raises leaves a
    little room.
    """
    if at.is_pulsed or not at.settings.mode.follows_demand:
        return
    is_frequent = at.jumps > _MOST_JUMPS
    minutes = at.minutes_that_count(_HOUR_MINUTES if is_frequent else _HOLD_MINUTES)
    units, reason = _capacity_for_window(at, minutes)
    has_room = at.settings.mode is Mode.FLOOR  # target tracking adds it
    if not has_room and units > max(at.state.capacity_units, at.state.current_without_boosts, at.state.baseline):
        units, reason = -(-units * 100 // _RAISED_TARGET_PERCENT), f"{reason} at {_RAISED_TARGET_PERCENT} %"
    answer.ask(units, f"{reason}, after {at.jumps} jumps" if is_frequent else reason)


def leave_headroom(answer: Answer, at: Facts) -> None:
    """Leave room for the next jump of a table that jumped lately, or of which less than an hour is known.

    Headroom stays for the rest of an hour, as it is paid for; it is not bought for a peak that is over.
    """
    if at.is_pulsed or not at.settings.mode.follows_demand:
        return
    percent = at.settings.cautious_percent
    known = at.seen.known_units
    if 0 < at.jumps <= _MOST_JUMPS:
        units, reason = _capacity_for_window(at, at.minutes_that_count(1), percent)
        newest, _ = _capacity_for_peak(at, 1, percent)
        units = min(units, max(newest, at.state.current_without_boosts))
        answer.ask(units, f"{reason}, headroom after {at.jumps} {'jump' if at.jumps == 1 else 'jumps'}")
    elif all(units is None for units in known[: 1 - _HOUR_MINUTES]):
        # minutes whose consumption is still to come are no minutes without any; a spike adds little to ten minutes
        average = highest_average(at.demand[: len(at.demand) - at.seen.pending_minutes][-_PULSED_HOLD_MINUTES:])
        reason = f"average of {average:,} units/s at {percent} %, headroom as less than an hour is known"
        answer.ask(-(-average * 100 // percent), reason)


def meet_yesterday(answer: Answer, at: Facts) -> None:
    """In DIRECT mode, have half of what the coming minutes brought a day ago; in minute 58, of what the hour brought.

    If it comes again, the burst bucket serves the other half for five minutes, and its own datapoints raise capacity
    within four.
    """
    if at.is_pulsed or at.settings.mode is not Mode.DIRECT or len(at.demand) < MINUTES_PER_DAY or at.seen.is_empty:
        return
    # a day before the newest minute that is known is some minutes earlier than a day before now
    since_newest = min(max(0, at.seen.age(at.now) // _MINUTE - at.seen.pending_minutes), _HOUR_MINUTES)
    ahead = since_newest + (_HOUR_MINUTES if at.now.minute >= LOWERED_FROM_MINUTE else _SOON_MINUTES)
    start = len(at.demand) - MINUTES_PER_DAY
    highest = max(filter(None, at.demand[start : start + ahead]), default=0)
    reason = f"yesterday's next minutes: {-(-highest // 60):,} units/s at {_YESTERDAY_PERCENT} %"
    answer.ask(per_second(highest, _YESTERDAY_PERCENT), reason)


def hold_busiest_minutes(answer: Answer, at: Facts) -> None:
    """For a fleet with pulses: hold the highest average of ten minutes, and what serves the peaks above it by burst.

    Pulses tell of the next surge within seconds, so there is neither headroom nor a longer hold. Spikes that come again
    and again as they were are no part of the average. One that came only once is sized for too: pulses would otherwise
    buy its whole peak when it comes again.
    """
    if not at.is_pulsed:
        return
    burst = at.seen.burst_seconds
    recent = calm = at.newest_demand(at.minutes_that_count(_PULSED_HOLD_MINUTES))
    if has_spikes(recent):
        calm = without_regular_spikes(at.newest_demand(len(at.seen.known_units)), len(recent))
    average = highest_average(calm)
    base = max(average, capacity_to_carry(recent, burst))
    units = capacity_for_spikes(at.seen.known_units[:], base, burst, times_before=0)
    reason = f"busiest ten minutes of {average:,} units/s"
    answer.ask(units, f"{reason}, and peaks above them with {burst} s of burst" if units > average + 1 else reason)


def meet_surge(answer: Answer, at: Facts) -> None:
    """Raise to what the fleet asks for now, where the burst bucket would not last until help is there."""
    fleet = at.fleet
    if fleet is None or at.bucket_lasts:
        return
    lasts = f"the burst bucket does not last {at.help_seconds} s"
    why = "requests were refused" if fleet.is_refused else lasts
    sentence = f"the fleet asks for {fleet.rate:,} units/s and {why}"
    answer.become(max(answer.units, _raised_for(fleet, is_refused=fleet.is_refused)), LimitCode.BUCKET, sentence)


def limit_step(answer: Answer, at: Facts) -> None:
    """Ask for at most twenty times what was consumed."""
    if at.settings.mode.follows_demand:
        sentence = f"at most {_STEP_TIMES} times what was consumed"
        answer.become(min(answer.units, at.step_units), LimitCode.STEP, sentence)


def rest_on_bucket(answer: Answer, at: Facts) -> None:
    """Raise nothing above the last hour's average while the burst bucket lasts.

    Less than the average would empty it in the end, and the raise that is then necessary is larger.
    """
    fleet = at.fleet
    if fleet is None or not at.is_pulsed or at.is_throttled or not at.bucket_lasts:
        return
    average = -(-sum(units or 0 for units in at.seen.known_units[-_HOUR_MINUTES:]) // (60 * _HOUR_MINUTES))
    not_above = max(at.state.capacity_units, at.state.current_without_boosts, average)
    sentence = f"the burst bucket outlasts the {fleet.rate:,} units/s that the fleet asks for"
    answer.become(min(answer.units, not_above), LimitCode.BUCKET, sentence)


def keep_what_lasts(answer: Answer, at: Facts) -> None:
    """Lower only as far as the burst bucket outlasts what the fleet asks for now."""
    fleet = at.fleet
    if fleet is None:
        return
    least = max(fleet.least_that_lasts(at.help_seconds), fleet.least_rate * 100 // _LOWERED_TARGET_PERCENT)
    if fleet.was_refused or at.now.minute < LOWERED_FROM_MINUTE:
        # what was raised a moment ago stays, so that a floor does not fall and rise with each slot
        least = max(least, _raised_for(fleet, is_refused=fleet.was_refused))
    least = min(at.state.capacity_units, least, at.step_units)
    sentence = f"with less, the burst bucket would not outlast the {fleet.rate:,} units/s that the fleet asks for"
    answer.become(max(answer.units, least), LimitCode.BUCKET, sentence)


def regret(answer: Answer, at: Facts) -> None:
    """Grant no more than is worth its price, where the last day cost more than target tracking and than it is worth.

    A surge that pulses tell of, that would empty the bucket and is unlike the last spikes, is not what was regretted.
    """
    past = at.seen.regret
    if past is None:
        return
    # the day ends with the last datapoint of provisioned capacity, up to five minutes before that of consumption
    newest = at.newest_demand(CAPACITY_MINUTES + 1)
    most = past.most_units(at.settings.throttle_price_requests, [units or 0 for units in newest])
    if most is None or answer.units <= most:
        return
    fleet = at.fleet
    is_met = fleet is None or fleet.lasts(most, at.help_seconds)
    if fleet is not None and not is_met and expected_drain(at.seen.known_units[:], fleet.minutes, most) is None:
        return
    if at.now.minute < LOWERED_FROM_MINUTE:
        # an hour is billed at its highest value
        most = max(most, at.state.current_without_boosts)
    sentence = (
        f"the last day cost {past.over_percent} % more than target tracking at {DEFAULT_TARGET_PERCENT} %, which "
        f"would have throttled {past.native_throttled_units:,} units: more is not worth its price"
    )
    answer.become(min(answer.units, most), LimitCode.REGRET, sentence)


def tolerate(answer: Answer, at: Facts) -> None:
    """Leave a value that would fall by little; one that falls to the plan's own floor falls all the way."""
    current = at.state.current_without_boosts
    # one unit more is tolerated, as both are rounded
    if answer.units > at.state.baseline and (answer.units + 1) * 100 >= current * (100 - _TOLERANCE_PERCENT):
        sentence = f"within {_TOLERANCE_PERCENT} % of the current value"
        answer.become(max(answer.units, current), LimitCode.TOLERANCE, sentence)


def keep_on_missing_data(answer: Answer, at: Facts) -> None:
    """Lower nothing without fresh data, as missing data is not zero."""
    current = at.state.current_without_boosts
    if at.missing_data is not None and current > at.state.baseline:
        answer.become(max(answer.units, current), LimitCode.MISSING_DATA, at.missing_data)


def keep_plan(answer: Answer, at: Facts) -> None:
    """Never go below the plan's floor."""
    answer.become(max(answer.units, at.state.baseline), LimitCode.BASELINE, "the plan's floor")


def add_boosts(answer: Answer, at: Facts) -> None:
    """Add what live boosts ask for, from the room that the plan leaves to them alone; lower nothing without leases."""
    state = at.state
    answer.without_boosts = state.clamped(answer.units)
    if state.ceiling_with_boosts > state.ceiling:
        answer.become(min(answer.units, state.ceiling), LimitCode.CEILING, "the plan's ceiling")
    answer.become(answer.units + state.boosts, LimitCode.BOOST, f"boosts of {state.boosts:,} units/s")
    sentence = f"a boost to {state.boosted_total:,} units/s in total"
    answer.become(max(answer.units, state.boosted_total), LimitCode.BOOST, sentence)
    if state.lacks_leases:
        sentence = "the boosts could not be read: nothing is lowered"
        answer.become(max(answer.units, state.current), LimitCode.MISSING_DATA, sentence)


def stay_below_ceiling(answer: Answer, at: Facts) -> None:
    """Never go above ceiling and quota, nor below one unit."""
    ceiling = max(at.state.ceiling, at.state.ceiling_with_boosts)
    answer.become(min(answer.units, ceiling), LimitCode.CEILING, "the plan's ceiling")
    quota = min(answer.units, at.state.quota_units)
    answer.become(quota, LimitCode.QUOTA, "the account's quota per table and index")
    answer.become(max(answer.units, 1), LimitCode.BASELINE, "capacity is at least 1")
    answer.boosted = answer.units - answer.without_boosts


def keep_paid_hour(answer: Answer, at: Facts) -> None:
    """In DIRECT mode, lower only late in an hour, which is billed at its highest value, and if a decrease is left.

    Capacity above its ceiling is lowered at any minute. A decrease that DynamoDB refuses is the one case of capacity
    that stays above it.
    """
    if at.settings.mode is not Mode.DIRECT:
        return
    state = at.state
    ceiling = max(state.ceiling, state.ceiling_with_boosts) if state.boosts or state.boosted_total else state.ceiling
    if at.now.minute < LOWERED_FROM_MINUTE and state.current <= min(ceiling, state.quota_units):
        sentence = f"the hour is paid for at its highest value: not lowered before minute {LOWERED_FROM_MINUTE}"
        answer.keep_current(at, LimitCode.PAID_HOUR, sentence)
    elif not state.budget.allows(at.now + state.patience):
        sentence = (
            f"the day's decreases are used: the next is allowed at {state.budget.next_allowed(at.now):%H:%M:%S} UTC"
        )
        answer.keep_current(at, LimitCode.DECREASE_BUDGET, sentence)


STAGES: Final[tuple[Stage, ...]] = (
    ask_for_plan,
    hold_peak,
    leave_headroom,
    meet_yesterday,
    hold_busiest_minutes,
    meet_surge,
    limit_step,
    rest_on_bucket,
    keep_what_lasts,
    regret,
    tolerate,
    keep_on_missing_data,
    keep_plan,
    add_boosts,
    stay_below_ceiling,
    keep_paid_hour,
)


def decide(
    settings: ScalerSettings,
    state: TargetState,
    seen: Observation,
    *,
    now: datetime,
    fleet: FleetDemand | None = None,
) -> Decision:
    """The value that *state*'s target should have at the aware instant *now*: each of `STAGES` in turn.

    *fleet* is what `fleet_demand` returns for the same target; by default it is worked out here.

    In FLOOR mode capacity above the value is lowered to it at the end of an hour (`Decision.lowered_to`).

    Deciding again on the answer changes nothing. More throttles never give a lower answer.
    """
    if fleet is None and settings.mode.follows_demand:
        fleet = fleet_demand(seen, capacity_units=state.capacity_units, last_increase=state.last_increase)
    at = Facts(settings, state, seen, fleet, now.astimezone(UTC))
    answer = Answer()
    for stage in STAGES:
        stage(answer, at)
    return Decision(
        index=state.index,
        dimension=state.dimension,
        current=state.current,
        wanted=answer.wanted,
        granted=answer.units,
        limits=tuple(answer.limits),
        reason=answer.reason,
        has_hot_key=seen.hot_key_events > 0,
        boosted=answer.boosted,
        lowered_to=_lowered_to(answer, at),
    )


def per_second(units_per_minute: int, percent: int = 100) -> int:
    """Capacity, in units per second, of which *units_per_minute* are so many percent."""
    return -(-units_per_minute * 100 // (60 * percent))


def _raised_for(fleet: FleetDemand, *, is_refused: bool) -> int:
    """Capacity for what the fleet asks for, with a little room; more where requests are refused."""
    return -(-fleet.rate * (_REFUSED_PERCENT if is_refused else 100) // _RAISED_TARGET_PERCENT)


def _capacity_for_peak(at: Facts, minutes: int, percent: int) -> tuple[int, str]:
    """Capacity of which the highest demand of the last known *minutes* is *percent*, and the reason in a sentence."""
    # throttles of a minute may be known before its consumption is
    highest = peak(at.demand, minutes + at.seen.pending_minutes)
    time = "minute" if minutes == 1 else f"{minutes} minutes"
    reason = f"peak of {-(-highest // 60):,} units/s in the last {time}"
    return per_second(highest, percent), reason if percent == 100 else f"{reason} at {percent} %"


def _capacity_for_window(at: Facts, minutes: int, percent: int = 100) -> tuple[int, str]:
    """Capacity for the last known *minutes*: for their peak, or for what remains where the burst bucket serves it.

    The bucket serves a spike that came before and was over soon, if the table has shown so much burst and throttles
    nothing. Spikes of the last hour are expected again.
    """
    at_peak, reason = _capacity_for_peak(at, minutes, percent)
    consumed, burst = at.seen.known_units[:], at.seen.burst_seconds
    may_spare = burst > BELIEVED_SECONDS and not at.is_throttled
    calm = without_spikes(consumed, minutes) if may_spare else None
    if calm is not None:
        units = capacity_for_spikes(consumed, per_second(peak(calm, len(calm)), percent), burst)
        if units < at_peak and ((consumed[-1] or 0) <= 60 * units or is_expected(consumed, units, burst)):
            return units, f"{reason}, spikes served by {burst} s of burst"
    units = capacity_for_spikes(consumed, at_peak, burst)
    return units, reason if units == at_peak else f"spikes of the last hour, served with {burst} s of burst"


def _lowered_to(answer: Answer, at: Facts) -> int | None:
    """In FLOOR mode, the capacity to lower to at once; `None` to leave that to auto scaling, 15 minutes later.

    As in DIRECT mode it is lowered at the end of an hour only, where that is worth one of the day's decreases, and
    enough is known. Without the headroom of its target utilization, target tracking raises again, for what the last
    minute alone consumed. Where that minute is a spike, it would buy the whole spike for an hour, so the headroom stays
    after an hour with spikes.
    """
    state, seen = at.state, at.seen
    is_sure = not state.lacks_leases and not at.is_throttled and at.missing_data is None
    if at.settings.mode is not Mode.FLOOR or at.now.minute < LOWERED_FROM_MINUTE or not is_sure:
        return None
    if not state.budget.allows(at.now + state.patience):
        return None
    units = answer.units
    if state.tracked_percent is not None and has_spikes(seen.known_units):
        units = max(units, state.clamped(per_second(seen.known_units[-1] or 0, state.tracked_percent)))
    return units if units * 100 < state.capacity_units * (100 - _TOLERANCE_PERCENT) else None
