"""The curves of a run, thinned to what a screen can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from highwater_lab.physics import Cause
from highwater_lab.simulation import Run, TargetRun

_MOST_POINTS: Final = 3_000


@dataclass(frozen=True, slots=True)
class Step:
    """A step line: the times at which it changes and what it is from then on; the last time repeats the last value."""

    times: tuple[datetime, ...]
    values: tuple[int, ...]

    def at_each(self, times: Sequence[datetime]) -> list[int]:
        """Its value at each of *times*, which are in order."""
        found, position = [], 0
        for at in times:
            while position + 1 < len(self.times) and self.times[position + 1] <= at:
                position += 1
            found.append(self.values[position])
        return found


@dataclass(frozen=True, slots=True)
class Curves:
    """One target, in units per second.

    Attributes:
        minutes_per_point: How many minutes a point stands for.
        times: The beginning of each point.
        demand: The busiest minute of each point, asked for.
        consumed: The busiest minute of each point, consumed.
        throttled: The units throttled in each point, by cause: counts, not rates.
        provisioned: Capacity; `None` on demand.
        floor: The floor.
        ceiling: The ceiling.
    """

    minutes_per_point: int
    times: tuple[datetime, ...]
    demand: tuple[float, ...]
    consumed: tuple[float, ...]
    throttled: Mapping[Cause, tuple[float, ...]]
    provisioned: Step | None
    floor: Step | None
    ceiling: Step | None


def shown_targets(run: Run) -> tuple[TargetRun, ...]:
    """The targets worth showing: those with traffic, or the table's writes where none has any."""
    busy = tuple(target for target in run.targets if target.demanded_units)
    return busy or run.targets[1:2]


def curves(run: Run, target: TargetRun, most_points: int = _MOST_POINTS) -> Curves:
    """The curves of one target of a run, in at most so many points."""
    step = -(-run.minutes // most_points)
    firsts = range(0, run.minutes, step)
    demand, consumed = [], []
    for first in firsts:
        minutes = range(first, min(first + step, run.minutes))
        demand.append(max(target.demand_quanta(minute) for minute in minutes) / 3600)
        consumed.append(max(target.consumed[minute] for minute in minutes) / 3600)
    throttled = {cause: [0.0] * len(firsts) for cause in target.throttled_by_cause()}
    for minute, causes in target.throttled.items():
        for cause, quanta in causes.items():
            throttled[cause][minute // step] += quanta / 60
    is_on_demand = target.capacity[0][1] == 0
    return Curves(
        step,
        tuple(run.start + timedelta(minutes=first) for first in firsts),
        tuple(demand),
        tuple(consumed),
        {cause: tuple(values) for cause, values in throttled.items()},
        None if is_on_demand else _steps(run, [(at, units) for at, units in target.capacity]),
        None if is_on_demand else _steps(run, [(at, floor) for at, floor, _ in target.bounds]),
        None if is_on_demand else _steps(run, [(at, ceiling) for at, _, ceiling in target.bounds]),
    )


def _steps(run: Run, changes: list[tuple[int, int]]) -> Step:
    times = [run.start + timedelta(seconds=at) for at, _ in changes] + [run.start + timedelta(minutes=run.minutes)]
    values = [units for _, units in changes] + [changes[-1][1]]
    return Step(tuple(times), tuple(values))
