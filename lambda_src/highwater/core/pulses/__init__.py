"""Pulses: what a fleet's processes say they asked of a table, within seconds."""

from highwater.core.pulses.bucket import BELIEVED_SECONDS, level_after, outlasts
from highwater.core.pulses.hint import Hint
from highwater.core.pulses.slots import SLOT_SECONDS, SLOTS_PER_MINUTE, Slots, slot_at

__all__ = [
    "BELIEVED_SECONDS",
    "SLOTS_PER_MINUTE",
    "SLOT_SECONDS",
    "Hint",
    "Slots",
    "level_after",
    "outlasts",
    "slot_at",
]
