"""Units of capacity, their two dimensions, and lengths of time as callers may give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, Protocol

# thousandths of a unit, and of a second the billionths, in which budgets are counted
MILLIUNITS: Final = 1_000
NANOSECONDS: Final = 1_000_000_000


class Dimension(StrEnum):
    """The two kinds of capacity units; each is provisioned, scaled and throttled separately."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Units:
    """Read and write units per second of one table or index.

    Attributes:
        read: Read capacity units per second.
        write: Write capacity units per second.
    """

    read: int
    write: int

    def at_least(self, other: Units) -> Units:
        """Return the higher of the two in each dimension."""
        return Units(max(self.read, other.read), max(self.write, other.write))

    def of(self, dimension: Dimension) -> int:
        """Return the units of one dimension."""
        return self.read if dimension is Dimension.READ else self.write

    def with_units(self, units: Mapping[Dimension, int]) -> Units:
        """Return a copy with *units* in the given dimensions."""
        return Units(units.get(Dimension.READ, self.read), units.get(Dimension.WRITE, self.write))

    def covers(self, other: Units) -> bool:
        """Whether neither dimension is below the other's."""
        return self.read >= other.read and self.write >= other.write


class Duration(Protocol):
    """A length of time such as `aws_cdk.Duration`, which the core does not import."""

    def to_seconds(self) -> int | float:
        """The length in seconds."""


def as_timedelta(length: timedelta | Duration) -> timedelta:
    """Return *length* as a `timedelta`; anything but a length of time is returned unchanged, for `check` to report."""
    to_seconds: Any = getattr(length, "to_seconds", None)
    return length if to_seconds is None else timedelta(seconds=to_seconds())  # type: ignore[return-value]
