"""High-water marks: what DynamoDB calls warm throughput, and what raising it costs once."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from highwater.core.plan.high_water_mark import HighWaterMark, MarkRule
from highwater.core.plan.plan import Plan, Target
from highwater.core.units import Dimension

# Prices of one provisioned unit for an hour, us-east-1, DynamoDB Standard, November 2026. A warm-up is charged once
# at provisioned rates (Amazon DynamoDB Developer Guide, "Warm throughput"); the rate taken, an hour of each unit
# added, is how the pricing page's examples read and is not confirmed elsewhere: hence "about" wherever it is shown.
READ_UNIT_HOUR_USD: Final = Decimal("0.00013")
WRITE_UNIT_HOUR_USD: Final = Decimal("0.00065")


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of one resource, beside the base floors, which auto scaling lifts it to by itself.

    Attributes:
        index: Name of the index, `None` for the table.
        read: Wanted read units per second.
        write: Wanted write units per second.
        base_read: The base floor of reads.
        base_write: Likewise for writes.
    """

    index: str | None
    read: int
    write: int
    base_read: int
    base_write: int

    @property
    def is_above_base(self) -> bool:
        """Whether the mark asks for more than reaching the base floors gives by itself."""
        return self.read > self.base_read or self.write > self.base_write


def marks_of(plan: Plan) -> tuple[Mark, ...]:
    """The mark of the table and of each index; none where the plan leaves marks alone."""
    if plan.mark.rule is MarkRule.NONE:
        return ()
    return tuple(
        Mark(index, _wanted(plan.mark, read), _wanted(plan.mark, write), _base(read), _base(write))
        for index, read, write in plan.resources()
    )


def _wanted(mark: HighWaterMark, target: Target) -> int:
    floors = [w.min for w in target.windows if w.min is not None]
    if mark.rule is MarkRule.UNITS:
        given = mark.read if target.dimension is Dimension.READ else mark.write
        return _base(target) if given is None else given
    if target.capacity.is_deploy_time:
        return _base(target)
    if mark.rule is MarkRule.WINDOWS:
        return max([_base(target), *floors])
    # fixed capacity has no ceiling apart from its floors
    return max([int(target.capacity.max_capacity), *(w.max for w in target.windows if w.max is not None), *floors])


def _base(target: Target) -> int:
    """The base floor; 1, the least there is, where only CloudFormation knows it."""
    return 1 if target.capacity.is_deploy_time else int(target.capacity.min_capacity)


@dataclass(frozen=True, slots=True)
class WarmUpCharge:
    """The one-time charge of raising marks from the base floors.

    Attributes:
        read_units: Read units added, over all resources.
        write_units: Write units added, over all resources.
    """

    read_units: int
    write_units: int

    @property
    def usd(self) -> Decimal:
        """About what it costs, in US dollars, to the cent."""
        exact = self.read_units * READ_UNIT_HOUR_USD + self.write_units * WRITE_UNIT_HOUR_USD
        return exact.quantize(Decimal("0.01"), ROUND_HALF_UP)

    @property
    def arithmetic(self) -> str:
        """How `usd` comes about."""
        parts = []
        if self.write_units:
            parts.append(f"{self.write_units:,} WCU x ${WRITE_UNIT_HOUR_USD}")
        if self.read_units:
            parts.append(f"{self.read_units:,} RCU x ${READ_UNIT_HOUR_USD}")
        return f"{' + '.join(parts)} = ${self.usd}"


def warm_up_charge(marks: tuple[Mark, ...]) -> WarmUpCharge | None:
    """The charge for reaching the marks from the base floors, `None` where there is none."""
    read = sum(max(0, mark.read - mark.base_read) for mark in marks)
    write = sum(max(0, mark.write - mark.base_write) for mark in marks)
    return WarmUpCharge(read, write) if read or write else None
