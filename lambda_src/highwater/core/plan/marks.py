"""High-water marks (DynamoDB: warm throughput) of a plan's resources, and the one-time charge for raising them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from highwater.core.plan.high_water_mark import HighWaterMark, MarkRule
from highwater.core.plan.plan import Plan, Target
from highwater.core.units import Dimension

# Prices of one provisioned unit for an hour, us-east-1, DynamoDB Standard, November 2026. Raising warm throughput is
# charged once at provisioned rates (Amazon DynamoDB Developer Guide, "Warm throughput"). The examples on the pricing
# page suggest one hour of each added unit; no other source confirms this, so every message says "about".
READ_UNIT_HOUR_USD: Final = Decimal("0.00013")
WRITE_UNIT_HOUR_USD: Final = Decimal("0.00065")


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of one resource, together with its base floors. Auto scaling reaches the base floors by itself.

    Attributes:
        index: Name of the index, `None` for the table.
        read: Wanted mark for reads, in units per second.
        write: Wanted mark for writes, in units per second.
        base_read: The base floor of reads, in units per second.
        base_write: The base floor of writes, in units per second.
    """

    index: str | None
    read: int
    write: int
    base_read: int
    base_write: int

    @property
    def is_above_base(self) -> bool:
        """Whether the mark is higher than a base floor, so that reaching the base floors does not reach the mark."""
        return self.read > self.base_read or self.write > self.base_write


def marks_of(plan: Plan) -> tuple[Mark, ...]:
    """Return the marks of the table and of each index, or none if the plan does not raise marks."""
    if plan.mark.rule is MarkRule.NONE:
        return ()
    return tuple(
        Mark(index, _wanted(plan.mark, read), _wanted(plan.mark, write), _base(read), _base(write))
        for index, read, write in plan.resources()
    )


def _wanted(mark: HighWaterMark, target: Target) -> int:
    floors = [w.min for w in target.windows if w.min is not None]
    if mark.rule is MarkRule.UNITS:
        declared_units = mark.read if target.dimension is Dimension.READ else mark.write
        return _base(target) if declared_units is None else declared_units
    if target.capacity.is_deploy_time:
        return _base(target)
    if mark.rule is MarkRule.WINDOWS:
        return max([_base(target), *floors])
    # the ceiling of fixed capacity is always equal to its floor, so the floors count as ceilings
    return max([int(target.capacity.max_capacity), *(w.max for w in target.windows if w.max is not None), *floors])


def _base(target: Target) -> int:
    """The base floor. If only CloudFormation knows it, 1, which is the lowest capacity."""
    return 1 if target.capacity.is_deploy_time else int(target.capacity.min_capacity)


@dataclass(frozen=True, slots=True)
class WarmUpCharge:
    """The one-time charge of raising marks from the base floors.

    Attributes:
        read_units: Read units added, summed over all resources.
        write_units: Write units added, summed over all resources.
    """

    read_units: int
    write_units: int

    @property
    def usd(self) -> Decimal:
        """The approximate charge in US dollars, rounded to the cent."""
        exact = self.read_units * READ_UNIT_HOUR_USD + self.write_units * WRITE_UNIT_HOUR_USD
        return exact.quantize(Decimal("0.01"), ROUND_HALF_UP)

    @property
    def arithmetic(self) -> str:
        """The calculation of `usd` as text, such as `500 WCU x $0.00065 = $0.33`."""
        parts = []
        if self.write_units:
            parts.append(f"{self.write_units:,} WCU x ${WRITE_UNIT_HOUR_USD}")
        if self.read_units:
            parts.append(f"{self.read_units:,} RCU x ${READ_UNIT_HOUR_USD}")
        return f"{' + '.join(parts)} = ${self.usd}"


def warm_up_charge(marks: tuple[Mark, ...]) -> WarmUpCharge | None:
    """Return the charge for raising the marks from the base floors, `None` if no mark is above its base floor."""
    read = sum(max(0, mark.read - mark.base_read) for mark in marks)
    write = sum(max(0, mark.write - mark.base_write) for mark in marks)
    return WarmUpCharge(read, write) if read or write else None
