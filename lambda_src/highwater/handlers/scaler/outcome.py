"""What a run of the scaler did: decisions for the log, counts for CloudWatch, failures and notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from highwater.aws.alarms import TargetAlarm
from highwater.handlers.scaler.region import Region


@dataclass(frozen=True, slots=True)
class ThresholdChange:
    """An alarm in *region* whose threshold should become *threshold*, in units consumed in a minute."""

    region: Region
    alarm: TargetAlarm
    threshold: int


@dataclass(slots=True)
class Outcome:
    """What a run did.

    Attributes:
        decisions: Every decision that changes something or was limited, as documents for the log.
        failed: Labels of the tables that failed, and why.
        left: Labels of the tables that there was no time for.
        notes: Sentences for the log that somebody should read.
        counts: Figures for CloudWatch, by the names of its metrics.
        thresholds: The alarms whose thresholds are still to be moved.
    """

    decisions: list[dict[str, Any]] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    thresholds: list[ThresholdChange] = field(default_factory=list)

    @property
    def summary(self) -> dict[str, Any]:
        """The answer to whoever invoked the function."""
        return {"counts": self.counts, "failed": self.failed, "left": self.left, "decisions": self.decisions}

    def count(self, name: str, by: int = 1) -> None:
        """Add to a figure."""
        self.counts[name] = self.counts.get(name, 0) + by

    def add(self, other: Outcome) -> None:
        """Add what was done for one table."""
        self.decisions += other.decisions
        self.notes += other.notes
        self.thresholds += other.thresholds
        for name, value in other.counts.items():
            self.count(name, value)
