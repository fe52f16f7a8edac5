"""What the fleet's pulses say that CloudWatch does not know yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from highwater.core.pulses import BELIEVED_SECONDS, SLOT_SECONDS, SLOTS_PER_MINUTE, Slots, level_after, outlasts
from highwater.core.pulses.hint import rate_of
from highwater.core.scaler.observations import Observation
from highwater.core.scaler.settings import Mode

# Pulses are compared with CloudWatch over so many minutes that both have.
COVERAGE_MINUTES: Final = 15
# One that tells of more than this share of what CloudWatch counts has a client that lies or is broken.
MOST_TOLD_PERCENT: Final = 150
# A fleet of which less carries the meter says too little.
LEAST_COVERAGE_PERCENT: Final = 25
# Requests refused so many slots ago count, whatever the bucket should hold.
_REFUSED_SLOTS: Final = 6
# A bucket of a minute is full again, or empty, after less than this at any rate that matters.
_BEFORE_MINUTES: Final = 60
# From the end of one slot until the capacity is there that is asked for after the next: ten seconds for the slot, about
# five for pulses and the wake-up, two for UpdateTable, 35 for auto scaling (docs/model.md), minutes for new partitions.
HELP_SECONDS: Final = {Mode.FLOOR: 50, Mode.DIRECT: 17}
HELP_ABOVE_MARK_SECONDS: Final = 310


@dataclass(frozen=True, slots=True)
class Fresh:
    """The fleet's last slots, in what they mean for one target.

    Attributes:
        coverage_percent: Pulses over CloudWatch for minutes that both have, from 25 to 100; `None` where pulses cannot
            be compared, or say less.
        rate: Units per second asked for in the highest of the last slots.
        level_units: The tokens that are believed to be in the burst bucket.
        minutes: Units asked for in each minute that CloudWatch does not have yet, oldest first.
        was_refused: Whether requests were refused in the last minute for want of capacity.
        is_refused: Whether they were since capacity was last raised.
    """

    coverage_percent: int | None
    rate: int
    level_units: int
    minutes: tuple[int, ...]
    was_refused: bool
    is_refused: bool

    def lasts(self, capacity_units: int, help_seconds: int) -> bool:
        """Whether the bucket outlasts the time that help takes, and nothing was refused."""
        level = min(self.level_units, capacity_units * BELIEVED_SECONDS)
        return not self.is_refused and outlasts(level, capacity_units, self.rate, help_seconds)


def coverage_percent(slots: Slots, seen: Observation) -> int | None:
    """Return what pulses said over what CloudWatch counted, in percent; `None` without minutes that both have."""
    told = counted = 0
    newest = seen.newest - seen.pending_minutes
    known = seen.known_units[-COVERAGE_MINUTES:]
    for minute, units in zip(range(newest - len(known) + 1, newest + 1), known, strict=True):
        of_pulses = slots.consumed_in(minute)
        if units and minute * SLOTS_PER_MINUTE >= slots.first:
            told += of_pulses or 0
            counted += units
    return told * 100 // counted if counted else None


def fresh_of(
    seen: Observation, slots: Slots | None, *, capacity_units: int, last_increase: datetime | None
) -> Fresh | None:
    """Return what *slots* add to *seen*; `None` where the fleet told nothing.

    Args:
        seen: What CloudWatch has.
        slots: What the fleet told.
        capacity_units: Provisioned units per second.
        last_increase: When capacity was last raised: the bucket is taken as empty then. `None` for never.
    """
    if slots is None or slots.is_empty:
        return None
    found = coverage_percent(slots, seen)
    coverage = None if found is None or found < LEAST_COVERAGE_PERCENT else min(found, 100)
    asked = slots.asked_units(coverage or 100)
    since = 0 if last_increase is None else -(-int(last_increase.astimezone(UTC).timestamp()) // SLOT_SECONDS)
    after = min(max(since - slots.first, 0), len(asked))
    level = 0 if since else capacity_units * BELIEVED_SECONDS
    if not after:
        level = level_after(level, capacity_units, _before(slots, seen, since), 60)
    level = level_after(level, capacity_units, asked[after:])
    return Fresh(
        coverage,
        rate_of(asked),
        level,
        _minutes(asked, slots, seen),
        any(slots.refused_units[-_REFUSED_SLOTS:]),
        any(slots.refused_units[max(after, len(asked) - _REFUSED_SLOTS) :]),
    )


def _before(slots: Slots, seen: Observation, since: int) -> list[int]:
    """What was asked for in each minute that CloudWatch has between the slot *since* and the first of *slots*."""
    first = seen.newest + 1 - len(seen.consumed_units)
    end = min(slots.first // SLOTS_PER_MINUTE - first, len(seen.consumed_units))
    start = max(-(-since // SLOTS_PER_MINUTE) - first, end - _BEFORE_MINUTES, 0)
    return [
        (consumed or 0) + throttled
        for consumed, throttled in zip(seen.consumed_units[start:end], seen.throttled_units[start:end], strict=True)
    ]


def _minutes(asked: Sequence[int], slots: Slots, seen: Observation) -> tuple[int, ...]:
    """Each minute after the newest that CloudWatch has, at the rate of its highest slot."""
    first = slots.first
    known = seen.newest + 1 - seen.pending_minutes if not seen.is_empty else first // SLOTS_PER_MINUTE
    by_minute: dict[int, int] = {}
    for slot, units in enumerate(asked, first):
        minute = slot // SLOTS_PER_MINUTE
        if minute >= known:
            by_minute[minute] = max(by_minute.get(minute, 0), units * SLOTS_PER_MINUTE)
    return tuple(by_minute.values())


def help_seconds(mode: Mode, rate: int, mark_units: int | None) -> int:
    """Return how long help takes: longer above the high-water mark, where partitions have to be added."""
    if mark_units is not None and rate > mark_units:
        return HELP_ABOVE_MARK_SECONDS
    return HELP_SECONDS[mode]
