"""What a search simulates: a choice of capacity and windows for one dimension, and a complete plan with its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from highwater.core import Capacity, Dimension, HighWaterMark, IndexCapacity, Plan, Units, Window
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.prices import HOURS_PER_MONTH
from highwater_lab.services.commitments import CapacityHours
from highwater_lab.simulation import Run

_Item = TypeVar("_Item")
MINUTES_PER_MONTH: Final = HOURS_PER_MONTH * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A capacity and windows that the search simulated for one dimension.

    Attributes:
        capacity: Floor, ceiling and target utilization.
        windows: The windows of that dimension.
        cost: The cost in USD a month.
        throttled_units: The units throttled in the simulation.
    """

    capacity: Capacity
    windows: tuple[Window, ...]
    cost: float
    throttled_units: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A complete plan with the result of its simulation.

    Attributes:
        plan: The plan, `None` for on-demand.
        cost_per_month: The cost in USD a month, without one-time charges.
        throttled_percent: The percentage of requested units that were throttled.
        utilization_percent: The utilization of the provisioned capacity, `None` for on-demand.
        hours: Its capacity in each clock hour; `None` if it was not simulated.
        parts: The percentages of throttled units in the days that the plan was chosen on, and in the days that it was
            judged on; `None` if it was not judged.
        throttled_units: By dimension the units throttled in a month.
        mark: On demand, the high-water mark that is raised for it, in units per second of each resource and dimension;
            empty for none.
        once_usd: The one-time charge for raising high-water marks, in USD.
    """

    plan: Plan | None
    cost_per_month: float
    throttled_percent: float
    utilization_percent: float | None
    hours: CapacityHours | None = field(default=None, compare=False, repr=False)
    parts: tuple[float, float] | None = None
    throttled_units: Mapping[Dimension, float] = field(default_factory=dict, compare=False, repr=False)
    mark: Mapping[str | None, Units] = field(default_factory=dict)
    once_usd: float = field(default=0.0, compare=False)

    @classmethod
    def of_run(cls, plan: Plan | None, run: Run, cut: int | None = None) -> Candidate:
        """Return a plan, `None` for on-demand, with the result of its simulation; *cut* is the first minute judged."""
        months = run.minutes / MINUTES_PER_MONTH
        throttled = dict.fromkeys(Dimension, 0.0)
        for target in run.arriving:
            throttled[target.dimension] += target.throttled_units / months
        return cls(
            plan=plan,
            cost_per_month=run.bill.per_month,
            throttled_percent=run.throttled_percent,
            utilization_percent=run.utilization_percent,
            hours=run.capacity_hours,
            parts=None if cut is None else (_percent(run, 0, cut), _percent(run, cut, run.minutes)),
            throttled_units=throttled,
        )

    def keeps(self, limit_percent: float) -> bool:
        """Return whether it throttles at most this percentage, in each part of the days."""
        return max(self.throttled_percent, *(self.parts or (0.0,))) <= limit_percent

    def with_throttles(self, usd_per_unit: Mapping[Dimension, float]) -> float:
        """Return the bill of a month with the price of the throttled units, in USD."""
        return self.cost_per_month + sum(usd_per_unit[each] * units for each, units in self.throttled_units.items())

    @property
    def summary(self) -> str:
        """The plan in a few words, such as `write 20-400 at 70 %, 1 window`."""
        if self.plan is None and self.mark:
            marks = ", ".join(
                f"{f'index {index} ' if index else ''}{mark.read:,}/{mark.write:,}" for index, mark in self.mark.items()
            )
            return f"on-demand, high-water mark {marks}"
        if self.plan is None:
            return "on-demand"
        parts = []
        for name, capacity in (("read", self.plan.read), ("write", self.plan.write)):
            if capacity.is_autoscaled:
                parts.append(
                    f"{name} {capacity.min_capacity:,}-{capacity.max_capacity:,} at "
                    f"{capacity.target_utilization_percent} %"
                )
        windows = self.plan.windows
        if windows:
            text = f"{len(windows)} window{'s' if len(windows) > 1 else ''}"
            raised = {
                kind for w in windows for kind, units in (("reads", w.read_min), ("writes", w.write_min)) if units
            }
            # else two plans of a trade-off could read alike
            is_of_one = len(raised) == 1 and len(parts) == 2
            parts.append(f"{text} of {raised.pop()}" if is_of_one else text)
        return ", ".join(parts) or "fixed"


def _percent(run: Run, start: int, end: int) -> float:
    """Return the percentage of units that were throttled in the minutes from *start* to before *end*."""
    throttled = requested = 0
    for target in run.arriving:
        units = sum(sum(causes.values()) for minute, causes in target.throttled.items() if start <= minute < end)
        throttled += units
        requested += units + sum(target.consumed[start:end])
    return 100 * throttled / requested if requested else 0.0


def plan_of(
    read: Choice | None,
    write: Choice | None,
    indexes: Sequence[str],
    table_quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
) -> Plan:
    """Return the plan with these choices; a dimension without a choice, because it has no traffic, gets one unit."""
    idle = Capacity.fixed(1)
    return Plan(
        read=read.capacity if read else idle,
        write=write.capacity if write else idle,
        windows=merged_windows((*(read.windows if read else ()), *(write.windows if write else ()))),
        indexes=tuple(IndexCapacity(index_name=name) for name in indexes),
        # so that no increase has to wait until DynamoDB adds partitions; AWS charges once for raising the mark, at the
        # price of one hour of the same units
        mark=HighWaterMark.to_ceiling(),
        table_quota_units=table_quota_units,
    )


def merged_windows(windows: Sequence[Window]) -> tuple[Window, ...]:
    """Return windows, those of reads and of writes at the same hours as one."""
    merged: dict[tuple[object, ...], Window] = {}
    for window in windows:
        hours: tuple[object, ...] = (window.days, window.month_day, window.start, window.end, window.timezone)
        other = merged.get(hours)
        if other is not None and (other.read_min is None) != (window.read_min is None):
            window = replace(
                other,
                name=f"surge-{other.name.rpartition('-')[2]}",
                read_min=other.read_min or window.read_min,
                write_min=other.write_min or window.write_min,
            )
        elif other is not None:
            hours = (*hours, window.name)
        merged[hours] = window
    return tuple(merged.values())


def frontier(items: Iterable[_Item], of: Callable[[_Item], tuple[float, float]]) -> list[_Item]:
    """Return the items for which no other is both cheaper and less throttled, the cheapest first.

    *of* returns an item's cost and throttling.
    """
    best: list[_Item] = []
    for item in sorted(items, key=of):
        if not best or of(item)[1] < of(best[-1])[1]:
            best.append(item)
    return best


def units_for(demand: int, target_percent: int) -> int:
    """Return the capacity at which a demand, in units per second, uses a target utilization, at least 1."""
    return max(1, -(-demand * 100 // target_percent))
