"""What the scaler tells the fleet's processes, so that each can see when to ask for help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from highwater.core.pulses.bucket import level_after, outlasts
from highwater.core.pulses.slots import SLOT_SECONDS, Slots

# The rate is that of the highest of so many last slots, as a slot may be told late by some processes.
RATE_SLOTS: Final = 2


@dataclass(frozen=True, slots=True)
class Hint:
    """One target as the last turn left it.

    Attributes:
        slot: The newest slot that the turn knew, counted since 1970.
        capacity_units: Provisioned units per second, with the raise that the turn asked for.
        level_units: The tokens that it believed to be in the burst bucket.
        coverage_percent: The share of requests that pulses tell of.
        help_seconds: How long help takes.
    """

    slot: int
    capacity_units: int
    level_units: int
    coverage_percent: int
    help_seconds: int

    def needs_help(self, slots: Slots) -> bool:
        """Whether the bucket will not last until help is there, or requests are refused when it should be."""
        later = slots.since(self.slot + 1)
        asked = later.asked_units(self.coverage_percent)
        if not asked:
            return False
        if any(slots.since(self.slot + 1 + -(-self.help_seconds // SLOT_SECONDS)).refused_units):
            return True
        level = level_after(self.level_units, self.capacity_units, asked)
        return not outlasts(level, self.capacity_units, rate_of(asked), self.help_seconds)

    def is_near(self, slots: Slots) -> bool:
        """Whether the fleet asks for so much that its pulses should come often."""
        asked = slots.since(self.slot + 1).asked_units(self.coverage_percent)
        return bool(asked) and rate_of(asked) * 100 >= self.capacity_units * _NEAR_PERCENT


_NEAR_PERCENT: Final = 80


def rate_of(asked_units: list[int]) -> int:
    """Units per second asked for in the highest of the last slots."""
    return -(-max(asked_units[-RATE_SLOTS:]) // SLOT_SECONDS)
