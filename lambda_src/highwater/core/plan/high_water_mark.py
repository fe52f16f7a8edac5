"""The high-water mark (DynamoDB: warm throughput) that a table should have."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class MarkRule(StrEnum):
    """The rule that determines the mark."""

    WINDOWS = "windows"
    CEILING = "ceiling"
    UNITS = "units"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class HighWaterMark:
    """The throughput that a table should support at once, in units per second. A mark never falls.

    Create it with `to_windows` (the default), `to_ceiling`, `units` or `none`.
    """

    rule: MarkRule
    read: int | None = None
    write: int | None = None

    @classmethod
    def to_windows(cls) -> HighWaterMark:
        """Raise each mark to the highest floor declared for that resource and dimension, base floor or window."""
        return cls(MarkRule.WINDOWS)

    @classmethod
    def to_ceiling(cls) -> HighWaterMark:
        """Raise each mark to the highest ceiling declared, so that auto scaling never waits for partitions."""
        return cls(MarkRule.CEILING)

    @classmethod
    def units(cls, *, read: int | None = None, write: int | None = None) -> HighWaterMark:
        """Raise the marks of the table and every index to these units per second, at least their base floors.

        `None` leaves the marks of that dimension at the base floors.
        """
        return cls(MarkRule.UNITS, read, write)

    @classmethod
    def none(cls) -> HighWaterMark:
        """Do not raise the mark. The first rise to a window's floor may then take minutes."""
        return cls(MarkRule.NONE)

    @property
    def is_units(self) -> bool:
        """Whether the mark was declared in units."""
        return self.rule is MarkRule.UNITS

    def to_document(self) -> dict[str, Any]:
        """Return the mark as JSON-ready values."""
        return {"rule": str(self.rule)} | {
            name: units for name, units in (("read", self.read), ("write", self.write)) if units is not None
        }

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> HighWaterMark:
        """Return the mark that `to_document` wrote."""
        return cls(MarkRule(document["rule"]), document.get("read"), document.get("write"))
