"""The pure part: what a plan is, what it asks for at an instant, and what that compiles to.

Nothing in here reads a clock, an environment variable or a network; nothing logs.
"""

from highwater.core.actions import ScheduledAction
from highwater.core.budget import DecreaseBudget, refused_decreases
from highwater.core.capacity import Capacity, Dimension
from highwater.core.checks import check
from highwater.core.compiler import compile_actions
from highwater.core.decide import TargetState, decide
from highwater.core.decisions import Decision, Limit, LimitCode
from highwater.core.direct import in_one_call, wanted_units
from highwater.core.errors import HighwaterError, PlanError
from highwater.core.findings import Finding, Severity
from highwater.core.floors import Bounds, baseline, bounds_at, timeline
from highwater.core.marks import HighWaterMark, Mark, WarmUpCharge, marks_of, warm_up_charge
from highwater.core.observations import Observation
from highwater.core.plan import IndexPlan, Plan, Target
from highwater.core.scaler_settings import Mode, ScalerSettings
from highwater.core.windows import Window

__all__ = [
    "Bounds",
    "Capacity",
    "Decision",
    "DecreaseBudget",
    "Dimension",
    "Finding",
    "HighWaterMark",
    "HighwaterError",
    "IndexPlan",
    "Limit",
    "LimitCode",
    "Mark",
    "Mode",
    "Observation",
    "Plan",
    "PlanError",
    "ScalerSettings",
    "ScheduledAction",
    "Severity",
    "Target",
    "TargetState",
    "WarmUpCharge",
    "Window",
    "baseline",
    "bounds_at",
    "check",
    "compile_actions",
    "decide",
    "in_one_call",
    "marks_of",
    "refused_decreases",
    "timeline",
    "wanted_units",
    "warm_up_charge",
]
