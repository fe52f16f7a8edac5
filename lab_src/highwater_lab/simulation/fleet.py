"""The processes that send a table's traffic, where they tell every ten seconds what they asked for."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass

from highwater.core.pulses import CALM_SLOTS, SLOT_SECONDS, SLOTS_PER_MINUTE, Slots
from highwater.core.throttles import ThrottleCause
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.simulation.table import SimulatedTable
from highwater_lab.simulation.targets import SimulatedTarget


@dataclass(frozen=True, slots=True)
class Pulses:
    """How a fleet tells what it asks for.

    Attributes:
        coverage_percent: The share of its requests that it tells of.
        delay_seconds: From the end of a slot until what was asked in it is known, and acted on.
        silent_minutes: The minutes, counted from the start of the traffic, in which no process tells anything.
    """

    coverage_percent: int = 100
    delay_seconds: int = 5
    silent_minutes: frozenset[int] = frozenset()


class ToldSlots:
    """What was asked of one target in each slot so far.

    Slots of minutes in which nothing could be refused share the minute's amount evenly, so that the simulation need not
    stop in them. Before such a minute ends, its first half is known from its half minute on, as a calm process tells
    every half minute: each slot then counts as the minute's highest.
    """

    def __init__(self, state: SimulatedTarget, bin_seconds: int, pulses: Pulses) -> None:
        self.state = state
        self._coverage = pulses.coverage_percent
        self._silent = pulses.silent_minutes
        self._consumed: list[int | None] = []
        self._refused: list[int] = []
        self._served_before = self._refused_before = 0
        self._peaks = _slot_peaks(state, bin_seconds)

    def is_hot(self, minute: int) -> bool:
        """Whether any slot of the minute asks for more than the capacity of now."""
        return self._peaks[minute] > self.state.throughput.units * QUANTA_PER_UNIT

    def end_slot(self) -> None:
        """Record a slot that ends within a minute."""
        served, refused = self.state.served, self.state.throughput.refused.get(ThrottleCause.PROVISIONED, 0)
        self._add(served - self._served_before, refused - self._refused_before)
        self._served_before, self._refused_before = served, refused

    def end_minute(self, slots: int) -> None:
        """Record the slots of a minute that are left at its end."""
        served = self.state.served - self._served_before
        refused = self.state.throughput.refused.get(ThrottleCause.PROVISIONED, 0) - self._refused_before
        for slot in range(slots):
            part = slots - slot
            self._add(served // part, refused // part)
            served -= served // part
            refused -= refused // part
        self._served_before = self._refused_before = 0

    def slots(self, most: int, newest: int, base_slot: int) -> Slots:
        """Up to so many slots, the newest of which is *newest*, counted from the start."""
        recorded = len(self._consumed)
        has_halves = bool(self._peaks) and recorded // SLOTS_PER_MINUTE not in self._silent
        halves = max(0, newest + 1 - recorded) // CALM_SLOTS if has_halves else 0
        end = min(newest + 1, recorded + halves * CALM_SLOTS)
        first = max(0, end - most)
        consumed, refused = self._consumed[first:end], self._refused[first:end]
        later = end - first - len(consumed)
        if later:
            consumed += [self._told(self._peaks[recorded // SLOTS_PER_MINUTE] * SLOT_SECONDS)] * later
            refused += [0] * later
        return Slots(base_slot + end - 1, tuple(consumed), tuple(refused))

    def _add(self, served: int, refused: int) -> None:
        is_silent = len(self._consumed) // SLOTS_PER_MINUTE in self._silent
        self._consumed.append(None if is_silent else self._told(served))
        self._refused.append(0 if is_silent or not refused else self._told(refused))

    def _told(self, quanta: int) -> int:
        """The units that the fleet tells of, rounded up."""
        return -(-(quanta * self._coverage // 100) // QUANTA_PER_UNIT)


class Fleet:
    """The fleet of one table: records its slots, and wakes the policy when they ask for help.

    Args:
        table: The table.
        pulses: How the fleet tells.
        wake: Called with the second at which something new is known.
    """

    def __init__(self, table: SimulatedTable, pulses: Pulses, wake: Callable[[int], None]) -> None:
        self._table = table
        self._delay = pulses.delay_seconds
        self._wake = wake
        self.told = [ToldSlots(target, table.bin_seconds, pulses) for target in table.targets]
        self._asked = [told for told in self.told if told.state.rates is not None]
        self._is_hot = False

    def plan_minute(self, minute: int) -> None:
        """Stop at each slot of a minute in which something may be refused."""
        # what jobs will ask for is not known before
        self._is_hot = bool(self._table.setup.jobs) or any(told.is_hot(minute) for told in self._asked)
        if not self._is_hot:
            return
        start = minute * 60
        for slot in range(1, SLOTS_PER_MINUTE):
            self._table.at(start + slot * SLOT_SECONDS, self._end_slot)
        for slot in range(1, SLOTS_PER_MINUTE + 1):
            self._table.at(start + slot * SLOT_SECONDS + self._delay, self._wake)

    def end_minute(self) -> None:
        """Record what is left of the minute."""
        for told in self.told:
            told.end_minute(1 if self._is_hot else SLOTS_PER_MINUTE)

    def _end_slot(self, _at: int) -> None:
        for told in self.told:
            told.end_slot()


def _slot_peaks(state: SimulatedTarget, bin_seconds: int) -> array[int]:
    """The highest rate of any slot of each minute, in quanta per second."""
    rates = state.rates
    if rates is None or bin_seconds == 60:
        return rates or array("q")
    sums = [sum(rates[at : at + SLOT_SECONDS]) for at in range(0, len(rates), SLOT_SECONDS)]
    tops = (max(sums[at : at + SLOTS_PER_MINUTE]) for at in range(0, len(sums), SLOTS_PER_MINUTE))
    return array("q", (-(-top // SLOT_SECONDS) for top in tops))
