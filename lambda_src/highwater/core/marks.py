"""High-water marks: what DynamoDB calls warm throughput, and what raising it costs once."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from highwater.core.capacity import Dimension

if TYPE_CHECKING:
    from highwater.core.plan import Plan, Target

# Prices of one provisioned unit for an hour, us-east-1, DynamoDB Standard, November 2026. A warm-up is charged once
# at provisioned rates (Amazon DynamoDB Developer Guide, "Warm throughput"); the rate taken, an hour of each unit
# added, is how the pricing page's examples read and is not confirmed elsewhere: hence "about" wherever it is shown.
READ_UNIT_HOUR_USD: Final = Decimal("0.00013")
WRITE_UNIT_HOUR_USD: Final = Decimal("0.00065")


class _Rule(StrEnum):
    WINDOWS = "windows"
    CEILING = "ceiling"
    UNITS = "units"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class HighWaterMark:
    """The most a table shall be able to take at once, in units per second; it only ever rises.

    Made with `to_windows` (the default), `to_ceiling`, `units` or `none`.
    """

    rule: _Rule
    read: int | None = None
    write: int | None = None

    @classmethod
    def to_windows(cls) -> HighWaterMark:
        """Up to the highest floor declared: base floor or window, of each resource and dimension."""
        return cls(_Rule.WINDOWS)

    @classmethod
    def to_ceiling(cls) -> HighWaterMark:
        """Up to the highest ceiling declared, so that auto scaling never waits for partitions."""
        return cls(_Rule.CEILING)

    @classmethod
    def units(cls, *, read: int | None = None, write: int | None = None) -> HighWaterMark:
        """Up to these units per second, at least the base floors, for the table and every index; `None` leaves one."""
        return cls(_Rule.UNITS, read, write)

    @classmethod
    def none(cls) -> HighWaterMark:
        """Leave the mark to DynamoDB: the first rise to a window may take minutes."""
        return cls(_Rule.NONE)

    @property
    def is_units(self) -> bool:
        """Whether the mark was given in units."""
        return self.rule is _Rule.UNITS

    def to_document(self) -> dict[str, Any]:
        """The mark as JSON-ready values."""
        return {"rule": str(self.rule)} | {
            name: units for name, units in (("read", self.read), ("write", self.write)) if units is not None
        }

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> HighWaterMark:
        """The mark that `to_document` wrote."""
        return cls(_Rule(document["rule"]), document.get("read"), document.get("write"))


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
    if plan.mark.rule is _Rule.NONE:
        return ()
    targets = plan.targets()
    return tuple(
        Mark(read.index, _wanted(plan.mark, read), _wanted(plan.mark, write), _base(read), _base(write))
        for read, write in zip(targets[::2], targets[1::2], strict=True)
    )


def _wanted(mark: HighWaterMark, target: Target) -> int:
    floors = [w.min for w in target.windows if w.min is not None]
    if mark.rule is _Rule.UNITS:
        given = mark.read if target.dimension is Dimension.READ else mark.write
        return _base(target) if given is None else given
    if target.capacity.is_deploy_time:
        return _base(target)
    if mark.rule is _Rule.WINDOWS:
        return max([_base(target), *floors])
    # fixed capacity has no ceiling apart from its floors
    return max([int(target.capacity.max), *(w.max for w in target.windows if w.max is not None), *floors])


def _base(target: Target) -> int:
    """The base floor; 1, the least there is, where only CloudFormation knows it."""
    return 1 if target.capacity.is_deploy_time else int(target.capacity.min)


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
