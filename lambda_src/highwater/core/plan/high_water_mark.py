"""How high a table's high-water mark shall be: what DynamoDB calls warm throughput."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class MarkRule(StrEnum):
    """What the mark is derived from."""

    WINDOWS = "windows"
    CEILING = "ceiling"
    UNITS = "units"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class HighWaterMark:
    """The most a table shall be able to take at once, in units per second; it only ever rises.

    Made with `to_windows` (the default), `to_ceiling`, `units` or `none`.
    """

    rule: MarkRule
    read: int | None = None
    write: int | None = None

    @classmethod
    def to_windows(cls) -> HighWaterMark:
        """Up to the highest floor declared: base floor or window, of each resource and dimension."""
        return cls(MarkRule.WINDOWS)

    @classmethod
    def to_ceiling(cls) -> HighWaterMark:
        """Up to the highest ceiling declared, so that auto scaling never waits for partitions."""
        return cls(MarkRule.CEILING)

    @classmethod
    def units(cls, *, read: int | None = None, write: int | None = None) -> HighWaterMark:
        """Up to these units per second, at least the base floors, for the table and every index; `None` leaves one."""
        return cls(MarkRule.UNITS, read, write)

    @classmethod
    def none(cls) -> HighWaterMark:
        """Leave the mark to DynamoDB: the first rise to a window may take minutes."""
        return cls(MarkRule.NONE)

    @property
    def is_units(self) -> bool:
        """Whether the mark was given in units."""
        return self.rule is MarkRule.UNITS

    def to_document(self) -> dict[str, Any]:
        """The mark as JSON-ready values."""
        return {"rule": str(self.rule)} | {
            name: units for name, units in (("read", self.read), ("write", self.write)) if units is not None
        }

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> HighWaterMark:
        """The mark that `to_document` wrote."""
        return cls(MarkRule(document["rule"]), document.get("read"), document.get("write"))
