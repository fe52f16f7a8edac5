"""Small tables to simulate."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from highwater.core import Dimension
from highwater.core.tracking import TargetTracking
from highwater_lab.simulation import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.traffic import Stream, Traffic

READ, WRITE = Dimension.READ, Dimension.WRITE
START = datetime(2026, 11, 3, 10, tzinfo=UTC)


def table(write: TargetSetup | None = None, *, indexes: tuple[ResourceSetup, ...] = (), **more: Any) -> TableSetup:
    """A table with a mark at the quota, fixed reads of 5, and writes as given or scaled between 1 and 40,000."""
    own = ResourceSetup(
        index=None,
        read=TargetSetup.fixed(5),
        write=write or TargetSetup(units=1, min=1, max=40_000),
        warm_read_units=40_000,
        warm_write_units=40_000,
    )
    return TableSetup(name="Orders", resources=(own, *indexes), **more)


def tracked(low: int = 1, high: int = 40_000, target: int = 70, units: int = 1, **more: Any) -> TargetSetup:
    """A target with target tracking."""
    return TargetSetup(units=units, min=low, max=high, tracking=TargetTracking(target_percent=target), **more)


def writes(*units_per_second: int, start: datetime = START) -> Traffic:
    """A minute of each rate, written to the table."""
    counts = {Stream(None, WRITE): [units * 60 for units in units_per_second]}
    return Traffic.from_counts("made", counts, bin_seconds=60, start=start)
