"""What a fleet's pulses add to what CloudWatch has: demand of the last seconds, and the burst bucket as it is now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

from highwater.core.bucket import level_after, outlasts
from highwater.core.plan.zones import MINUTES_PER_HOUR
from highwater.core.pulses import SLOT_SECONDS, SLOTS_PER_MINUTE, Slots, rate_of
from highwater.core.scaler.burst import SPIKE_MINUTES
from highwater.core.scaler.demand import demand_by_minute
from highwater.core.scaler.inputs import Observation
from highwater.core.scaler.settings import Mode

T = TypeVar("T")

# Pulses are compared with CloudWatch over so many minutes that both have.
COVERAGE_MINUTES: Final = 15
# One that tells of more than this share of what CloudWatch counts is wrong, and an alarm reports it.
MOST_TOLD_PERCENT: Final = 150
# Below this coverage, pulses are too incomplete to size capacity from.
LEAST_COVERAGE_PERCENT: Final = 25
# From the end of one slot until the capacity is there that is asked for after the next: the next slot itself, about
# five for pulses and the wake-up, two for UpdateTable, minutes for new partitions (docs/model.md); and one more, as a
# full bucket keeps nothing of what its first second adds. For auto scaling, 35: its activities last about as long,
# though capacity was there after five in small tables (decision 41).
HELP_SECONDS: Final = {Mode.FLOOR: SLOT_SECONDS + 40, Mode.DIRECT: SLOT_SECONDS + 8}
HELP_ABOVE_MARK_SECONDS: Final = SLOT_SECONDS + 300

# Noise is measured over as long as a spike takes. What is above so many percent of demand counts, and the highest slot
# is taken to be so many times that above the demand to come: chosen over traces with noise (decision 21; pays most
# on the random day 19).
_NOISE_SLOTS: Final = SPIKE_MINUTES * SLOTS_PER_MINUTE
_CALM_PERCENT, _NOISE_TIMES = 10, 6


@dataclass(frozen=True, slots=True)
class FleetDemand:
    """The fleet's last slots, in what they mean for one target.

    Attributes:
        coverage_percent: Pulses over CloudWatch for minutes that both have, from 25 to 100; 0 where pulses cannot be
            compared, or say less, or where the fleet told nothing in the last minute.
        rate: Units per second asked for in the highest of the last slots, less what is noise; at least the average of
            the last minute.
        newest_rate: Units per second asked for in the highest of the last slots, noise included. It is below *rate*
            where a spike of the last minute is over.
        level_units: The tokens that are believed to be in the burst bucket.
        minutes: Units asked for in each minute that CloudWatch does not have yet, oldest first.
        was_refused: Whether requests were refused in the last minute for want of capacity.
        is_refused: Whether they were since capacity was last raised.
        burst_seconds: How many seconds of capacity the burst bucket is believed to hold.
    """

    coverage_percent: int
    rate: int
    newest_rate: int
    level_units: int
    minutes: tuple[int, ...]
    was_refused: bool
    is_refused: bool
    burst_seconds: int

    def lasts(self, capacity_units: int, help_seconds: int) -> bool:
        """Whether the bucket outlasts the time that help takes, and nothing was refused."""
        level = min(self.level_units, capacity_units * self.burst_seconds)
        return not self.is_refused and outlasts(level, capacity_units, self.rate, help_seconds)

    @property
    def least_rate(self) -> int:
        """The units per second that lowered capacity must still meet: a spike that is over does not count."""
        return min(self.rate, self.newest_rate)

    def least_that_lasts(self, seconds: int) -> int:
        """The least capacity, in units per second, at which the bucket outlasts so many seconds of `least_rate`."""
        asked = self.least_rate * seconds
        return max(-(-(asked - self.level_units) // seconds), -(-asked // (seconds + self.burst_seconds)))


def _minutes_with_slots(series: Sequence[T], newest: int, slots: Slots) -> Iterator[tuple[int, T]]:
    """Yield the minutes of a series that ends with the minute *newest* since 1970, as far as the slots go back."""
    skipped = max(0, -(-slots.first // SLOTS_PER_MINUTE) - (newest + 1 - len(series)))
    yield from enumerate(series[skipped:], newest + 1 - len(series) + skipped)


def coverage_percent(slots: Slots, seen: Observation) -> int:
    """Return what pulses said over what CloudWatch counted, in percent; 0 without minutes that both have.

    Minutes in which the fleet told nothing say that it was silent then, and nothing of how much it tells when it does.
    """
    told = counted = 0
    known = seen.known_units[-COVERAGE_MINUTES:]
    for minute, units in _minutes_with_slots(known, seen.newest - seen.pending_minutes, slots):
        consumed = slots.consumed_in(minute)
        if units and consumed:
            told += consumed
            counted += units
    return told * 100 // max(counted, 1)


def disagrees(slots: Slots, seen: Observation) -> bool:
    """Whether pulses report more than one and a half times what CloudWatch counts, consumed and throttled.

    Also of a target of which CloudWatch has minutes without consumption; up to a unit per second is rounding.
    """
    told = counted = 0
    known = seen.known_units[-COVERAGE_MINUTES:]
    demand = demand_by_minute(seen, COVERAGE_MINUTES + seen.pending_minutes)
    both = list(zip(known, demand, strict=False))
    for minute, (units, asked) in _minutes_with_slots(both, seen.newest - seen.pending_minutes, slots):
        if units is not None:
            at = minute * SLOTS_PER_MINUTE - slots.first
            told += slots.consumed_in(minute) + sum(slots.refused_units[at : at + SLOTS_PER_MINUTE])
            counted += max(asked or 0, 60)
    return told * 100 > counted * MOST_TOLD_PERCENT


def fleet_demand(seen: Observation, *, capacity_units: int, last_increase: datetime | None) -> FleetDemand:
    """Return what the fleet's pulses add to what CloudWatch has; a fleet that told nothing asks for nothing.

    Args:
        seen: What CloudWatch has, and the pulses.
        capacity_units: Provisioned units per second.
        last_increase: When capacity was last raised: the bucket is taken as empty then. `None` for never.
    """
    slots = seen.pulses
    burst = seen.burst_seconds
    if slots is None or slots.is_empty:
        return FleetDemand(0, 0, 0, 0, (), was_refused=False, is_refused=False, burst_seconds=burst)
    found = coverage_percent(slots, seen)
    # a fleet that told nothing for a minute has fallen silent, whatever it told before
    is_silent = all(units is None for units in slots.consumed_units[-SLOTS_PER_MINUTE:])
    coverage = 0 if is_silent or found < LEAST_COVERAGE_PERCENT else min(found, 100)
    # one that tells of much more than there was is believed as far as CloudWatch bears it out
    asked = slots.asked_units(found if found > MOST_TOLD_PERCENT else coverage or 100)
    # of a fleet that tells little, most is untold; then CloudWatch's minutes count as they are
    if coverage:
        _add_untold(asked, slots, seen)
    since = 0 if last_increase is None else -(-int(last_increase.astimezone(UTC).timestamp()) // SLOT_SECONDS)
    after = min(max(since - slots.first, 0), len(asked))
    level = 0 if since else capacity_units * burst
    if not after:
        level = level_after(level, capacity_units, _before(slots, seen, since), 60, burst)
    # the first slot after what CloudWatch has
    first = min(max((seen.newest - seen.pending_minutes + 1) * SLOTS_PER_MINUTE - slots.first, 0), len(asked))
    return FleetDemand(
        coverage,
        _rate_within_noise(asked, first),
        rate_of(asked),
        level_after(level, capacity_units, asked[after:], SLOT_SECONDS, burst),
        _minutes(asked, slots, seen),
        any(slots.refused_units[-SLOTS_PER_MINUTE:]),
        any(slots.refused_units[max(after, len(asked) - SLOTS_PER_MINUTE) :]),
        burst,
    )


def _rate_within_noise(asked: list[int], first: int) -> int:
    """Return the rate to expect, in units per second: that of the higher of the last slots, reduced by usual noise.

    Where demand is noisy, the highest slot says little about the next minute: its peak is over at once, and the burst
    bucket serves it. Noise is how much each slot differs from the mean of itself and its two neighbours, in the ten
    minutes before the slot *first*, the first that CloudWatch does not have; a surge or a climb hardly counts as noise.
    The rate is at least the average of the last minute, and the highest slot's own where there is too little to measure
    noise.
    """
    highest, earlier = rate_of(asked), asked[max(0, first - _NOISE_SLOTS) : first]
    total = off = 0
    for before, units, after in zip(earlier, earlier[1:], earlier[2:], strict=False):
        near = before + units + after
        total += near
        off += abs(3 * units - near)
    if not total or len(earlier) < _NOISE_SLOTS // 2:
        return highest
    noise_percent = max(0, off * 100 // total - _CALM_PERCENT)
    average = -(-sum(asked[-SLOTS_PER_MINUTE:]) // (SLOTS_PER_MINUTE * SLOT_SECONDS))
    return max(average, -(-highest * 100 // (100 + _NOISE_TIMES * noise_percent)))


def _add_untold(asked: list[int], slots: Slots, seen: Observation) -> None:
    """Add to the slots of *asked* what CloudWatch counted and nobody told of, as a job does that is not metered.

    What was untold in the newest minute that CloudWatch has is taken to go on. No world of the benchmarks has such a
    job, so this pays nowhere there. Without it, capacity would follow a job only as the average of CloudWatch's last
    ten minutes does.
    """
    newest, untold = seen.newest - seen.pending_minutes, 0
    known = seen.known_units[-(len(asked) // SLOTS_PER_MINUTE + 1) :]
    for minute, units in _minutes_with_slots(known, newest, slots):
        at, counted = minute * SLOTS_PER_MINUTE - slots.first, units or 0
        untold = max(0, -(-(counted - sum(asked[at : at + SLOTS_PER_MINUTE])) // SLOTS_PER_MINUTE))
        if untold:
            asked[at : at + SLOTS_PER_MINUTE] = [slot + untold for slot in asked[at : at + SLOTS_PER_MINUTE]]
    later = (newest + 1) * SLOTS_PER_MINUTE - slots.first
    asked[later:] = [slot + untold for slot in asked[later:]]


def _before(slots: Slots, seen: Observation, since: int) -> list[int]:
    """What was asked for in each minute that CloudWatch has between the slot *since* and the first of *slots*."""
    first = seen.newest + 1 - len(seen.consumed_units)
    end = min(slots.first // SLOTS_PER_MINUTE - first, len(seen.consumed_units))
    start = max(-(-since // SLOTS_PER_MINUTE) - first, end - MINUTES_PER_HOUR, 0)
    return [units or 0 for units in demand_by_minute(seen)[start:end]]


def _minutes(asked: Sequence[int], slots: Slots, seen: Observation) -> tuple[int, ...]:
    """Each minute after the newest that CloudWatch has, at the rate of its highest slot."""
    first = slots.first
    known = seen.newest + 1 - seen.pending_minutes if not seen.is_empty else first // SLOTS_PER_MINUTE
    start = max(known, first // SLOTS_PER_MINUTE) * SLOTS_PER_MINUTE - first
    starts = range(start, len(asked), SLOTS_PER_MINUTE)
    return tuple(sum(asked[max(at, 0) : at + SLOTS_PER_MINUTE]) for at in starts)


def help_seconds(mode: Mode, rate: int, mark_units: int | None) -> int:
    """Return how long help takes: longer above the high-water mark, where partitions have to be added."""
    if mark_units is not None and rate > mark_units:
        return HELP_ABOVE_MARK_SECONDS
    return HELP_SECONDS[mode]
