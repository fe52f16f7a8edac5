"""The pure core: plans, their validation, the bounds that they ask for, and their compilation to scheduled actions.

Nothing in this package reads a clock, an environment variable or a network, and nothing logs. The scaler's decisions
are in `highwater.core.scaler`.
"""

from highwater.core.budget import DecreaseBudget, refused_decreases
from highwater.core.checks import check
from highwater.core.errors import HighwaterError, PlanError
from highwater.core.findings import Finding, Severity
from highwater.core.plan.capacity import Capacity, HighWaterMark, OnDemand
from highwater.core.plan.plan import IndexCapacity, Mark, Plan, Target, WarmUpCharge, marks_of, warm_up_charge
from highwater.core.plan.windows import Window
from highwater.core.schedule.bounds import Bounds, baseline, bounds_at, timeline
from highwater.core.schedule.compiler import ScheduledAction, compile_actions
from highwater.core.units import Dimension, Units

__all__ = [
    "Bounds",
    "Capacity",
    "DecreaseBudget",
    "Dimension",
    "Finding",
    "HighWaterMark",
    "HighwaterError",
    "IndexCapacity",
    "Mark",
    "OnDemand",
    "Plan",
    "PlanError",
    "ScheduledAction",
    "Severity",
    "Target",
    "Units",
    "WarmUpCharge",
    "Window",
    "baseline",
    "bounds_at",
    "check",
    "compile_actions",
    "marks_of",
    "refused_decreases",
    "timeline",
    "warm_up_charge",
]
