"""What a fleet asked of one target, in slots of ten seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

SLOT_SECONDS: Final = 10
SLOTS_PER_MINUTE: Final = 60 // SLOT_SECONDS
# A calm process tells every half minute.
_LATE_SLOTS: Final = 3


def slot_at(now: datetime) -> int:
    """Return the slot that the aware instant *now* is in, counted since 1970."""
    return int(now.astimezone(UTC).timestamp()) // SLOT_SECONDS


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots up to the newest that may be known, oldest first; both series have the same length.

    Attributes:
        newest: The last slot, counted since 1970.
        consumed_units: Capacity units that the fleet's requests consumed in each slot, rounded up; `None` where no
            process told anything.
        refused_units: Units that it estimates for requests refused for want of provisioned capacity, attempts to send
            a request again not counted twice.
    """

    newest: int
    consumed_units: Sequence[int | None]
    refused_units: Sequence[int]

    def __post_init__(self) -> None:
        """Raises `ValueError` for series of two lengths, and for amounts below zero."""
        if len(self.consumed_units) != len(self.refused_units):
            message = f"{len(self.consumed_units)} slots consumed and {len(self.refused_units)} refused"
            raise ValueError(message)
        if any(u is not None and u < 0 for u in self.consumed_units) or min(self.refused_units, default=0) < 0:
            message = "units below zero"
            raise ValueError(message)

    @property
    def first(self) -> int:
        """The oldest slot, counted since 1970."""
        return self.newest + 1 - len(self.consumed_units)

    @property
    def is_empty(self) -> bool:
        """Whether no process told anything."""
        return all(units is None for units in self.consumed_units) and not any(self.refused_units)

    def since(self, slot: int) -> Slots:
        """The slots from *slot* on."""
        skipped = min(max(slot - self.first, 0), len(self.consumed_units))
        return replace(self, consumed_units=self.consumed_units[skipped:], refused_units=self.refused_units[skipped:])

    def consumed_in(self, minute: int) -> int | None:
        """Units consumed in a minute since 1970; `None` unless something was told and all its slots are here."""
        at = minute * SLOTS_PER_MINUTE - self.first
        if at < 0 or at + SLOTS_PER_MINUTE > len(self.consumed_units):
            return None
        told = [units for units in self.consumed_units[at : at + SLOTS_PER_MINUTE] if units is not None]
        return sum(told) if told else None

    def asked_units(self, coverage_percent: int = 100) -> list[int]:
        """Units asked for in each slot, consumed and refused, by a fleet of which so many percent tell.

        The last slots may not be told yet: up to three of them count as the newest that was.
        """
        asked = [
            -(-((consumed or 0) + refused) * 100 // coverage_percent)
            for consumed, refused in zip(self.consumed_units, self.refused_units, strict=True)
        ]
        untold = 0
        while untold < min(_LATE_SLOTS, len(asked) - 1) and self._is_untold(len(asked) - 1 - untold):
            untold += 1
        for place in range(len(asked) - untold, len(asked)):
            asked[place] = asked[place - 1]
        return asked

    def _is_untold(self, place: int) -> bool:
        return self.consumed_units[place] is None and not self.refused_units[place]
