"""Background work in a simulation: what it wants, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from highwater.core import Dimension
from highwater.core.pacing import RateGoal


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work that keeps to a budget, as `highwater scan` and `highwater load` do.

    Attributes:
        name: For reports.
        index: The index that is read, `None` for the table. Writes are the table's.
        dimension: READ or WRITE.
        goal: The rate that it wants.
        units: What it has to consume until it is done, in units of the table.
        at: The aware instant at which it begins.
        allows_throttles: Whether it keeps its rate where it is refused.
    """

    name: str
    index: str | None = None
    dimension: Dimension
    goal: RateGoal
    units: int
    at: datetime
    allows_throttles: bool = False


@dataclass(frozen=True, slots=True)
class JobRun:
    """What became of a job; seconds count from the start of the traffic.

    Attributes:
        job: The job.
        start: When it began.
        end: When it was done; `None` for one that was not done when the traffic ended.
        full_at: When it first had the rate that it wanted; `None` if it never had.
        units: What it consumed.
        throttled_units: Its own units that were throttled, each attempt counted.
        others_throttled_units: Units of other traffic that were throttled while it ran.
    """

    job: Job
    start: int
    end: int | None
    full_at: int | None
    units: float
    throttled_units: float
    others_throttled_units: float
