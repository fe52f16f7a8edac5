"""Candidates: plans that were tried, and the best of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from highwater.core import Capacity, HighWaterMark, IndexCapacity, Plan, Window
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was tried for one dimension.

    Attributes:
        capacity: Floor, ceiling, target.
        windows: Windows for that dimension.
        cost: USD a month.
        throttled_units: Units that it throttles.
    """

    capacity: Capacity
    windows: tuple[Window, ...]
    cost: float
    throttled_units: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A whole plan that was simulated.

    Attributes:
        plan: The plan, `None` for on-demand.
        cost_per_month: USD a month, without what is paid once.
        throttled_percent: Percent of the units asked for.
        utilization_percent: Achieved, `None` on demand.
    """

    plan: Plan | None
    cost_per_month: float
    throttled_percent: float
    utilization_percent: float | None

    @property
    def summary(self) -> str:
        """What it is, in a few words."""
        if self.plan is None:
            return "on-demand"
        parts = []
        for name, capacity in (("read", self.plan.read), ("write", self.plan.write)):
            if capacity.is_autoscaled:
                parts.append(
                    f"{name} {capacity.min_capacity:,}-{capacity.max_capacity:,} at "
                    f"{capacity.target_utilization_percent} %"
                )
        windows = len(self.plan.windows)
        if windows:
            parts.append(f"{windows} window{'s' if windows > 1 else ''}")
        return ", ".join(parts) or "fixed"


def plan_of(
    read: Choice | None,
    write: Choice | None,
    indexes: Sequence[str],
    table_quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
) -> Plan:
    """The plan of one choice per dimension; one without traffic gets a single unit."""
    idle = Capacity.fixed(1)
    return Plan(
        read=read.capacity if read else idle,
        write=write.capacity if write else idle,
        windows=(*(read.windows if read else ()), *(write.windows if write else ())),
        indexes=tuple(IndexCapacity(index_name=name) for name in indexes),
        # so that no rise waits for partitions: it costs once what an hour of the units costs
        mark=HighWaterMark.to_ceiling(),
        table_quota_units=table_quota_units,
    )


def frontier(choices: Iterable[Choice]) -> list[Choice]:
    """The choices that no other beats in both cost and throttles, the cheapest first."""
    kept: list[Choice] = []
    for choice in sorted(choices, key=lambda choice: (choice.cost, choice.throttled_units)):
        if not kept or choice.throttled_units < kept[-1].throttled_units:
            kept.append(choice)
    return kept
