"""The rules for a fleet that tells what it asks for: docs/decisions/0021."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from highwater.core.scaler.answer import Answer
from highwater.core.scaler.decisions import LimitCode
from highwater.core.scaler.demand import demand_by_minute, peak
from highwater.core.scaler.fresh import Fresh, help_seconds
from highwater.core.scaler.observations import Observation
from highwater.core.scaler.proposals import STEP_PERCENT, Proposal, capacity_for_peak, minutes_that_count, per_second
from highwater.core.scaler.settings import ScalerSettings
from highwater.core.scaler.state import TargetState

# What is raised leaves room for a little more, so that the bucket fills again.
_RAISED_TARGET_PERCENT: Final = 97
_LEAST_MOST: Final = 1_000
# Clients whose requests are refused wait before they ask again, so what they ask for is more than what they tell.
_REFUSED_PERCENT: Final = 150
# What is lowered is to last as it is for so long.
_LOWERED_SECONDS: Final = 60
# Throttles of so many newest minutes say that the burst bucket is emptier than pulses let believe.
_THROTTLED_MINUTES: Final = 8


def propose_with_pulses(settings: ScalerSettings, seen: Observation, fresh: Fresh, now: datetime) -> Proposal:
    """Capacity for the highest demand of the last minutes, those that only the fleet's pulses tell of included.

    Surges are met as they come, so there is neither caution nor forecast.
    """
    percent = settings.pulsed_target_percent
    held = capacity_for_peak(demand_by_minute(seen), seen, minutes_that_count(settings, settings.hold, now), percent)
    highest = max(fresh.minutes, default=0)
    reason = f"{-(-highest // 60):,} units/s asked for by the fleet at {percent} %"
    return held.or_higher(Proposal(per_second(highest, percent), _most(seen), reason))


def _most(seen: Observation) -> int:
    """The most that pulses can ask for: a hundred times what CloudWatch has of the last hours, and for an idle table
    a thousand units per second. A client that counts wrongly gets no further.
    """
    highest = peak(seen.consumed_units, len(seen.consumed_units))
    return max(per_second(highest * STEP_PERCENT // 100, 100), _LEAST_MOST)


def heed_bucket(answer: Answer, settings: ScalerSettings, state: TargetState, seen: Observation, fresh: Fresh) -> None:
    """Raise to what the fleet asks for where the burst bucket would not last until help is there, and only there."""
    seconds = help_seconds(settings.mode, fresh.rate, state.mark_units)
    capacity, now_at = state.capacity_units, f"{fresh.rate:,} units/s"
    enough = _enough(fresh.rate, seen, is_refused=fresh.is_refused)
    if not fresh.lasts(capacity, seconds):
        why = "requests were refused" if fresh.is_refused else f"the burst bucket does not last {seconds} s"
        if fresh.is_refused or answer.units < fresh.rate:
            answer.become(max(answer.units, enough), LimitCode.BUCKET, f"the fleet asks for {now_at} and {why}")
    elif fresh.coverage_percent is not None and not any(seen.throttled_units[-_THROTTLED_MINUTES:]):
        not_above = max(capacity, state.current_without_boosts)
        sentence = f"the burst bucket outlasts the {now_at} that the fleet asks for"
        answer.become(min(answer.units, not_above), LimitCode.BUCKET, sentence)
    was_refused = fresh.was_refused
    if answer.units < capacity and (was_refused or not fresh.lasts(answer.units, seconds + _LOWERED_SECONDS)):
        sentence = f"with less, the burst bucket would not outlast the {now_at} that the fleet asks for"
        enough = _enough(fresh.rate, seen, is_refused=was_refused)
        answer.become(min(capacity, max(answer.units, enough)), LimitCode.BUCKET, sentence)


def _enough(rate: int, seen: Observation, *, is_refused: bool) -> int:
    asked = rate * (_REFUSED_PERCENT if is_refused else 100)
    return min(-(-asked // _RAISED_TARGET_PERCENT), _most(seen))
