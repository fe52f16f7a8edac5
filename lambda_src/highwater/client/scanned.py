"""What a paced scan says before it begins, while it runs, and of each page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boto3.dynamodb.types import TypeDeserializer


@dataclass(frozen=True, slots=True)
class ScanPage:
    """One page of a scan.

    Attributes:
        raw: The items as DynamoDB sends them, with their types.
        segment: The segment that the page is of.
        scanned: How many items were read; more than `raw` has where a filter left some out.
        units: The read units that the page consumed.
    """

    raw: tuple[Mapping[str, Any], ...]
    segment: int
    scanned: int
    units: float

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items as boto3's resources give them: numbers are `decimal.Decimal`."""
        read = TypeDeserializer().deserialize
        return [{name: read(value) for name, value in item.items()} for item in self.raw]


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """What a scan is going to cost.

    Attributes:
        table: The table's name.
        index: The index that is scanned, `None` for the table.
        size_bytes: How large it is, by DynamoDB's own count of some hours ago.
        items: How many items it has, by the same count.
        units: The read units that the scan consumes.
        seconds: How long it takes at least.
        segments: Into how many segments it is divided.
    """

    table: str
    index: str | None
    size_bytes: int
    items: int
    units: int
    seconds: int
    segments: int


@dataclass(frozen=True, slots=True)
class ScanProgress:
    """How far a scan is.

    Attributes:
        scanned: Items read so far, in earlier runs too.
        units: Read units consumed so far, in earlier runs too.
        plan: What it was expected to take.
        segments_done: How many segments are read to their end.
    """

    scanned: int
    units: float
    plan: ScanPlan
    segments_done: int

    @property
    def percent(self) -> float:
        """The share that is done, by items, or by segments where the number of items is not known."""
        if self.segments_done == self.plan.segments:
            return 100.0
        if self.plan.items:
            return min(100.0 * self.scanned / self.plan.items, 99.9)
        return 100.0 * self.segments_done / self.plan.segments
