"""The burst bucket as the scaler believes in it: how full it is, and whether it lasts until help is there.

DynamoDB keeps up to 300 seconds of unused capacity for bursts, and may use it for work of its own (Amazon DynamoDB
Developer Guide, "Burst capacity"). So only a part of it is believed in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from highwater.core.pulses.slots import SLOT_SECONDS

# Chosen over the open traces: docs/decisions/0021.
BELIEVED_SECONDS: Final = 60


def level_after(level_units: int, capacity_units: int, asked_units: Iterable[int], seconds: int = SLOT_SECONDS) -> int:
    """Return the tokens left after slots in which so many units were asked for.

    Args:
        level_units: The tokens before them.
        capacity_units: Provisioned units per second.
        asked_units: The units asked for in each slot.
        seconds: How long each is.
    """
    most, fill = capacity_units * BELIEVED_SECONDS, capacity_units * seconds
    level = min(level_units, most)
    for asked in asked_units:
        level = min(most, max(0, level + fill - asked))
    return level


def outlasts(level_units: int, capacity_units: int, rate: int, seconds: int) -> bool:
    """Whether a bucket of *level_units* serves *rate* units per second for so many seconds."""
    return (rate - capacity_units) * seconds <= level_units
