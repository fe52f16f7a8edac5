"""The scaler's one decision, stage by stage: what a target's floor, or in DIRECT mode its capacity, should be now.

In a sentence: *down once an hour, in minute 58, to what the next hour needs; up at any time, when more is asked for
than there is.* DynamoDB bills an hour at its highest value and allows few decreases a day, so nothing else saves.

`STAGES` is the order. The first ones say what is asked for, and the highest counts. Each later one may change that, and
then says so in the decision's limits. The list says for which targets a stage is. No stage needs another one: each
can be read, and switched off, alone.

`make benchmark NAME=rent` switches each stage and each constant off, over traces, random days and batches. A rule *pays
most* where that loses most; one that pays nowhere goes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from highwater.core.bucket import BELIEVED_SECONDS
from highwater.core.plan.zones import MINUTES_PER_DAY, MINUTES_PER_HOUR
from highwater.core.scaler.burst import (
    CAPACITY_MINUTES,
    SPIKE_MINUTES,
    capacity_for_spikes,
    capacity_to_carry,
    expected_drain,
    has_spikes,
    highest_average,
    is_expected,
    without_regular_spikes,
    without_spikes,
)
from highwater.core.scaler.decision import Decision, Limit, LimitCode
from highwater.core.scaler.demand import DemandAlone, peak
from highwater.core.scaler.facts import STEP_TIMES, Facts, History, Source, per_second
from highwater.core.scaler.fleet import FleetDemand, fleet_demand
from highwater.core.scaler.inputs import MINUTE, Observation, TargetState
from highwater.core.scaler.minutes import Minutes
from highwater.core.scaler.settings import FULL_PERCENT, HOLD_MINUTES, LOWERED_FROM_MINUTE, Mode, ScalerSettings
from highwater.core.tracking import NATIVE_TARGET_PERCENT

# Headroom is for tables that jump now and then. One that jumps more often, once an hour say, has its peaks held longer
# (pays most on tweets_cvs).
_MOST_JUMPS: Final = 4
# How far ahead yesterday is looked at: until help comes. So much of its demand is left to the burst bucket.
_SOON_MINUTES: Final = 18
_YESTERDAY_PERCENT: Final = 200
# Where requests are refused the bucket is empty, and what waits to be sent again comes on top of what is asked for
# (pays most on aws_ec2_diskwrite_kb).
_REFUSED_PERCENT: Final = 150
# What is lowered is not far below what the fleet asks for now, or it is raised again as soon as the bucket is empty
# (pays most on az_fn_bursty1).
_LOWERED_TARGET_PERCENT: Final = 120


@dataclass(slots=True)
class Answer:
    """The units so far, where they come from, and what changed them. What leaves them as they are is no limit."""

    units: int = -1  # below all that may be asked for
    wanted: int = 0
    reason: str = ""
    limits: list[Limit] = field(default_factory=list)
    without_boosts: int = 0
    boosted: int = 0
    lowered_to: int | None = None

    def ask(self, units: int, reason: str) -> None:
        """Ask for so many units: the highest that is asked for counts, the first of two that ask for the same."""
        if units > self.units:
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


_ANY: Final = frozenset(Source)
_DEMAND: Final = frozenset({Source.CLOUDWATCH, Source.PULSES})


@dataclass(frozen=True, slots=True)
class Stage:
    """One rule of the scaler, and where it applies.

    Attributes:
        change: What it does to the answer.
        sources: What a target is sized from, where the stage applies; by default anything.
        modes: The modes in which it applies; by default all.
    """

    change: Callable[[Answer, Facts], None]
    sources: frozenset[Source] = _ANY
    modes: frozenset[Mode] = frozenset(Mode)


def ask_for_plan(answer: Answer, at: Facts) -> None:
    """Ask for the plan's floor, where demand is left to target tracking."""
    answer.ask(at.state.baseline, "the plan's floor")


def hold_peak(answer: Answer, at: Facts) -> None:
    """Hold the highest demand of the last half hour, or hour where the table jumps often, and back to minute 58.

    A spike is left to the burst bucket if it came before and the bucket serves it. What DIRECT mode raises leaves a
    little room.
    """
    units, reason = _capacity_for_window(at, at.minutes_that_count(_hold_minutes(at)))
    has_room = at.settings.mode is Mode.FLOOR  # target tracking adds it
    if not has_room and units > max(at.state.capacity_units, at.state.current_without_boosts, at.state.baseline):
        units, reason = -(-units * 100 // FULL_PERCENT), f"{reason} at {FULL_PERCENT} %"
    answer.ask(units, f"{reason}, after {at.jumps} jumps" if at.jumps > _MOST_JUMPS else reason)


def leave_headroom(answer: Answer, at: Facts) -> None:
    """Leave room for the next jump of a table that jumped lately, or of which less than an hour is known.

    Headroom stays for the rest of an hour, as it is paid for; it is not bought for a peak that is over. Pays most on
    az_fn_bursty1.
    """
    percent = at.settings.cautious_percent
    if 0 < at.jumps <= _MOST_JUMPS:
        units, reason = _capacity_for_window(at, at.minutes_that_count(1), percent)
        newest, _ = _capacity_for_peak(at, 1, percent)
        units = min(units, max(newest, at.state.current_without_boosts))
        answer.ask(units, f"{reason}, headroom after {at.jumps} {'jump' if at.jumps == 1 else 'jumps'}")
    elif _is_young(at):
        average = _newest_average(at)
        reason = f"average of {average:,} units/s at {percent} %, headroom as less than an hour is known"
        answer.ask(-(-average * 100 // percent), reason)


def meet_yesterday(answer: Answer, at: Facts) -> None:
    """Have half of what the coming minutes brought a day ago; in minute 58, of what the hour brought.

    If it comes again, the burst bucket serves the other half for five minutes, and its own datapoints raise capacity
    within four. Pays most on aws_ec2_diskwrite_kb.
    """
    if len(at.demand) < MINUTES_PER_DAY or at.seen.is_empty:
        return
    # a day before the newest minute that is known is some minutes earlier than a day before now
    since_newest = min(max(0, at.seen.age(at.now) // MINUTE - at.seen.pending_minutes), MINUTES_PER_HOUR)
    ahead = since_newest + (MINUTES_PER_HOUR if at.now.minute >= LOWERED_FROM_MINUTE else _SOON_MINUTES)
    start = len(at.demand) - MINUTES_PER_DAY
    highest = max(filter(None, at.demand[start : start + ahead]), default=0)
    reason = f"yesterday's next minutes: {-(-highest // 60):,} units/s at {_YESTERDAY_PERCENT} %"
    answer.ask(per_second(highest, _YESTERDAY_PERCENT), reason)


def hold_busiest_minutes(answer: Answer, at: Facts) -> None:
    """Hold the highest average of ten minutes, and what serves the peaks above it by burst.

    Pulses tell of the next surge within seconds, so there is neither headroom nor a longer hold. Spikes that come again
    and again as they were are no part of the average. One that came only once is sized for too: pulses would otherwise
    buy its whole peak when it comes again.
    """
    burst = at.seen.burst_seconds
    recent = calm = at.newest_demand(at.minutes_that_count(SPIKE_MINUTES))
    if has_spikes(recent):
        calm = without_regular_spikes(at.newest_demand(len(at.seen.known_units)), len(recent))
    average = highest_average(calm)
    base = max(average, capacity_to_carry(recent, burst))
    units = capacity_for_spikes(at.seen.known_units[:], base, burst, times_before=0)
    reason = f"busiest ten minutes of {average:,} units/s"
    answer.ask(units, f"{reason}, and peaks above them with {burst} s of burst" if units > average + 1 else reason)


def meet_surge(answer: Answer, at: Facts) -> None:
    """Raise to what the fleet asks for now, where the burst bucket would not last until help is there.

    Pays most on aws_ec2_diskwrite_kb.
    """
    fleet = at.fleet
    if at.bucket_lasts:
        return
    lasts = f"the burst bucket does not last {at.help_seconds} s"
    why = "requests were refused" if fleet.is_refused else lasts
    sentence = f"the fleet asks for {fleet.rate:,} units/s and {why}"
    answer.become(max(answer.units, _raised_for(fleet, is_refused=fleet.is_refused)), LimitCode.BUCKET, sentence)


def limit_step(answer: Answer, at: Facts) -> None:
    """Ask for at most twenty times what was consumed.

    It pays nowhere, and stays for clients that count wrongly: a fleet that tells of a thousand times what it asks for
    would be given that much, and the hour be billed for it.
    """
    sentence = f"at most {STEP_TIMES} times what was consumed"
    answer.become(min(answer.units, at.step_units), LimitCode.STEP, sentence)


def rest_on_bucket(answer: Answer, at: Facts) -> None:
    """Raise nothing above the last hour's average while the burst bucket lasts.

    Less than the average would empty it in the end, and the raise that is then necessary is larger. Pays most on
    tweets_cvs.
    """
    if at.is_throttled or not at.bucket_lasts:
        return
    average = -(-sum(units or 0 for units in at.seen.known_units[-MINUTES_PER_HOUR:]) // (60 * MINUTES_PER_HOUR))
    not_above = max(at.state.capacity_units, at.state.current_without_boosts, average)
    sentence = f"the burst bucket outlasts the {at.fleet.rate:,} units/s that the fleet asks for"
    answer.become(min(answer.units, not_above), LimitCode.BUCKET, sentence)


def keep_what_lasts(answer: Answer, at: Facts) -> None:
    """Lower only as far as the burst bucket outlasts what the fleet asks for now. Pays most on az_fn_cron10m."""
    fleet = at.fleet
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
    Pays most on batches of half a minute at ten times the base, once an hour.
    """
    past = at.seen.regret
    if past is None:
        return
    # the day ends with the last datapoint of provisioned capacity, up to five minutes before that of consumption
    newest = at.newest_demand(CAPACITY_MINUTES + 1)
    most = past.most_units(at.settings.throttle_price_requests, [units or 0 for units in newest])
    if most is None or answer.units <= most:
        return
    is_met = at.fleet.lasts(most, at.help_seconds)
    if not is_met and expected_drain(at.seen.known_units[:], at.fleet.minutes, most) is None:
        return
    if at.now.minute < LOWERED_FROM_MINUTE:
        # an hour is billed at its highest value
        most = max(most, at.state.current_without_boosts)
    sentence = (
        f"the last day cost {past.over_percent} % more than target tracking at {NATIVE_TARGET_PERCENT} %, which "
        f"would have throttled {past.native_throttled_units:,} units: more is not worth its price"
    )
    answer.become(min(answer.units, most), LimitCode.REGRET, sentence)


def tolerate(answer: Answer, at: Facts) -> None:
    """Leave a value that would fall by little; one that falls to the plan's own floor falls all the way.

    Pays most on az_fn_cron10m.
    """
    current = at.state.current_without_boosts
    # one unit more is tolerated, as both are rounded
    if answer.units > at.state.baseline and (answer.units + 1) * 100 >= current * FULL_PERCENT:
        sentence = f"within {100 - FULL_PERCENT} % of the current value"
        answer.become(max(answer.units, current), LimitCode.TOLERANCE, sentence)


def keep_on_missing_data(answer: Answer, at: Facts) -> None:
    """Lower nothing without fresh data, as missing data is not zero. Pays most on the random day 19."""
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
    """Lower only late in an hour, which is billed at its highest value, and if a decrease is left.

    Capacity above its ceiling is lowered at any minute. A decrease that DynamoDB refuses is the one case of capacity
    that stays above it. Pays most on aws_ec2_diskwrite_kb.
    """
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


def lower_capacity(answer: Answer, at: Facts) -> None:
    """Lower capacity to the floor at the end of an hour, in place of leaving that to auto scaling, 15 minutes later.

    It is lowered where that is worth one of the day's decreases, and enough is known. Without the headroom of its
    target utilization, target tracking raises again, for what the last minute alone consumed. Where that minute is a
    spike, it would buy the whole spike for an hour, so the headroom stays after an hour with spikes. Pays most on
    aws_ec2_diskwrite_kb.
    """
    state, consumed = at.state, at.seen.known_units
    is_unsure = state.lacks_leases or at.is_throttled or at.missing_data is not None
    if at.now.minute < LOWERED_FROM_MINUTE or is_unsure or not state.budget.allows(at.now + state.patience):
        return
    units = answer.units
    if has_spikes(consumed):
        units = max(units, state.clamped(per_second(consumed[-1] or 0, state.tracked_percent)))
    if units * 100 < state.capacity_units * FULL_PERCENT:
        answer.lowered_to = units


STAGES: Final[tuple[Stage, ...]] = (
    Stage(ask_for_plan, sources=frozenset({Source.PLAN})),
    Stage(hold_peak, sources=frozenset({Source.CLOUDWATCH})),
    Stage(leave_headroom, sources=frozenset({Source.CLOUDWATCH})),
    Stage(meet_yesterday, sources=frozenset({Source.CLOUDWATCH}), modes=frozenset({Mode.DIRECT})),
    Stage(hold_busiest_minutes, sources=frozenset({Source.PULSES})),
    Stage(meet_surge, sources=_DEMAND),
    Stage(limit_step, sources=_DEMAND),
    Stage(rest_on_bucket, sources=frozenset({Source.PULSES})),
    Stage(keep_what_lasts, sources=_DEMAND),
    Stage(regret, sources=_DEMAND),
    Stage(tolerate),
    Stage(keep_on_missing_data, sources=_DEMAND),
    Stage(keep_plan),
    Stage(add_boosts),
    Stage(stay_below_ceiling),
    Stage(keep_paid_hour, modes=frozenset({Mode.DIRECT})),
    Stage(lower_capacity, modes=frozenset({Mode.FLOOR})),
)


def decide(
    settings: ScalerSettings,
    state: TargetState,
    seen: Observation,
    *,
    now: datetime,
    fleet: FleetDemand | None = None,
) -> Decision:
    """The value that *state*'s target should have at the aware instant *now*: each of `STAGES` that applies, in turn.

    *fleet* is what `fleet_demand` returns for the same target; by default it is worked out here.

    In FLOOR mode capacity above the value is lowered to it at the end of an hour (`Decision.lowered_to`).

    Deciding again on the answer changes nothing. More throttles never give a lower answer.
    """
    if fleet is None:
        fleet = fleet_demand(seen, capacity_units=state.capacity_units, last_increase=state.last_increase)
    at = Facts(seen, settings, state, fleet, now.astimezone(UTC))
    answer = Answer()
    for stage in STAGES:
        if at.source in stage.sources and settings.mode in stage.modes:
            stage.change(answer, at)
    has_boost = state.boosts > 0 or state.boosted_total > 0
    alone = demand_alone(settings, seen) if has_boost and settings.mode.follows_demand else None
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
        lowered_to=answer.lowered_to,
        # pulses, the bucket and regret may have it served with less
        alone=None if alone is None else replace(alone, units=min(alone.units, answer.without_boosts)),
    )


def demand_alone(settings: ScalerSettings, seen: Observation) -> DemandAlone | None:
    """Return the capacity that demand requires by itself, as `hold_peak` and `leave_headroom` size it.

    It is for the last 30 minutes that have a datapoint, or 60 where the table jumps often, and for the newest of them
    with headroom. The scaler may keep more: until minute 58, as the hour is paid, by tolerance, and on missing data.
    `None` where no minute is known, or throttles are likely and not known.
    """
    if seen.is_empty or seen.lacks_throttles:
        return None
    at, percent = History(seen), settings.cautious_percent
    minutes = _minutes_back(seen.known_units, _hold_minutes(at))
    units, _ = _capacity_for_window(at, minutes)
    if 0 < at.jumps <= _MOST_JUMPS:
        units = max(units, _capacity_for_peak(at, 1, percent)[0])
    elif _is_young(at):
        units = max(units, -(-_newest_average(at) * 100 // percent))
    newest_first = at.demand[: -1 - minutes - seen.pending_minutes : -1]
    since = newest_first.index(max(newest_first, key=lambda each: each or 0)) - seen.pending_minutes
    return DemandAlone(units, minutes - max(since, 0))


def _hold_minutes(at: History) -> int:
    """Return for how many minutes a peak counts: an hour where the table jumps often."""
    return MINUTES_PER_HOUR if at.jumps > _MOST_JUMPS else HOLD_MINUTES


def _minutes_back(known: Minutes, datapoints: int) -> int:
    """Return how many of the newest minutes have so many datapoints; all minutes where there are fewer."""
    for minutes, units in enumerate(reversed(known), 1):
        datapoints -= units is not None
        if not datapoints:
            return minutes
    return len(known)


def _is_young(at: History) -> bool:
    """Whether less than an hour of the table is known."""
    return all(units is None for units in at.seen.known_units[: 1 - MINUTES_PER_HOUR])


def _newest_average(at: History) -> int:
    """Return the average demand of the newest ten minutes in units per second, to which a spike adds little."""
    # minutes whose consumption is still to come are no minutes without any
    return highest_average(at.demand[: len(at.demand) - at.seen.pending_minutes][-SPIKE_MINUTES:])


def _raised_for(fleet: FleetDemand, *, is_refused: bool) -> int:
    """Capacity for what the fleet asks for, with a little room; more where requests are refused."""
    return -(-fleet.rate * (_REFUSED_PERCENT if is_refused else 100) // FULL_PERCENT)


def _capacity_for_peak(at: History, minutes: int, percent: int) -> tuple[int, str]:
    """Capacity of which the highest demand of the last known *minutes* is *percent*, and the reason in a sentence."""
    # throttles of a minute may be known before its consumption is
    highest = peak(at.demand, minutes + at.seen.pending_minutes)
    time = "minute" if minutes == 1 else f"{minutes} minutes"
    reason = f"peak of {-(-highest // 60):,} units/s in the last {time}"
    return per_second(highest, percent), reason if percent == 100 else f"{reason} at {percent} %"


def _capacity_for_window(at: History, minutes: int, percent: int = 100) -> tuple[int, str]:
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
