"""What one process asked of its tables since its last pulse."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from highwater.core.plan.plan import TargetKey

# (slot since 1970, target, whether refused): units
Amounts = dict[tuple[int, TargetKey, bool], float]


@dataclass(slots=True)
class Counts:
    """Units by table; may be added to from several threads."""

    _by_table: dict[str, Amounts] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, table: str, slot: int, key: TargetKey, units: float, *, refused: bool = False) -> None:
        """Count units consumed, or refused, in a slot."""
        at = (slot, key, refused)
        with self._lock:
            amounts = self._by_table.setdefault(table, {})
            amounts[at] = amounts.get(at, 0.0) + units

    def tables(self) -> list[str]:
        """The tables with anything to tell."""
        with self._lock:
            return list(self._by_table)

    def peek(self, table: str) -> Mapping[tuple[int, TargetKey, bool], float]:
        """What there is to tell of a table, without taking it."""
        with self._lock:
            return dict(self._by_table.get(table, {}))

    def take(self, table: str, before_slot: int | None = None) -> Amounts:
        """Take all that there is to tell of a table, or of the slots before one; it is not told again."""
        with self._lock:
            found = self._by_table.pop(table, {})
            if before_slot is None:
                return found
            left = {at: units for at, units in found.items() if at[0] >= before_slot}
            if left:
                self._by_table[table] = left
            return {at: units for at, units in found.items() if at[0] < before_slot}

    def put_back(self, table: str, amounts: Amounts) -> None:
        """Keep what certainly was not told for the next pulse."""
        for (slot, key, refused), units in amounts.items():
            self.add(table, slot, key, units, refused=refused)

    def forget(self) -> None:
        """Start anew, as a process does that was forked: its parent tells what it counted."""
        self._lock = threading.Lock()
        self._by_table = {}
