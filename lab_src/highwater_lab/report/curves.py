"""The curves of a run, reduced to as many points as a screen can show."""

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
    """A step line: each value applies from its time to the next time; the last time ends the line.

    Attributes:
        times: The times at which the value changes, then the end of the run.
        values: One value per time; the last one repeats the one before.
    """

    times: tuple[datetime, ...]
    values: tuple[int, ...]

    def at_each(self, times: Sequence[datetime]) -> list[int]:
        """Return the line's value at each of *times*, which must be in ascending order."""
        values, position = [], 0
        for at in times:
            while position + 1 < len(self.times) and self.times[position + 1] <= at:
                position += 1
            values.append(self.values[position])
        return values


@dataclass(frozen=True, slots=True)
class Curves:
    """The curves of one target; rates and capacity in units per second.

    Attributes:
        minutes_per_point: The number of minutes that one point stands for.
        times: The time at which the minutes of each point begin.
        demand: For each point, the requested units per second of its busiest minute.
        consumed: For each point, the consumed units per second of its busiest minute.
        throttled: By cause, the number of units throttled in the minutes of each point: a count, not a rate.
        provisioned: The provisioned capacity; `None` on demand, as are floor and ceiling.
        floor: The floor, Application Auto Scaling's MinCapacity.
        ceiling: The ceiling, Application Auto Scaling's MaxCapacity.
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
    """Return the targets that have traffic, or the table's writes if there is no traffic at all."""
    busy = tuple(target for target in run.targets if target.demanded_units)
    return busy or run.targets[1:2]


def curves(run: Run, target: TargetRun, most_points: int = _MOST_POINTS) -> Curves:
    """Return the curves of one target of a run, with at most *most_points* points."""
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
