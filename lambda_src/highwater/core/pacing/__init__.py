"""Pacing: what keeps requests within a budget of capacity units."""

from highwater.core.pacing.brake import Brake
from highwater.core.pacing.bucket import MILLIUNITS, NANOSECONDS, PacingBucket
from highwater.core.pacing.following import USUAL_TARGET_PERCENT, Follower, RateGoal, Shown, Start
from highwater.core.pacing.pages import PageSize, page_units
from highwater.core.pacing.segments import count_segments, scan_units

__all__ = [
    "MILLIUNITS",
    "NANOSECONDS",
    "USUAL_TARGET_PERCENT",
    "Brake",
    "Follower",
    "PacingBucket",
    "PageSize",
    "RateGoal",
    "Shown",
    "Start",
    "count_segments",
    "page_units",
    "scan_units",
]
