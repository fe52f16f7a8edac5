"""What the scaler decides with: which targets to look at, what was seen of them, and what they should be now."""

from highwater.core.scaler.attention import alarm_threshold, due_targets, minutes_to_observe, needs_throttles
from highwater.core.scaler.decision import Decision, Limit, LimitCode, in_one_call, wanted_units
from highwater.core.scaler.inputs import Clock, Observation, SeenResource, SeenTable, SeenTarget, TargetState
from highwater.core.scaler.plan import ScaledPlan
from highwater.core.scaler.settings import Mode, ScalerSettings
from highwater.core.scaler.stages import decide
from highwater.core.scaler.turn import Skip, SkipReason, TableReview, TargetReview, review

__all__ = [
    "Clock",
    "Decision",
    "Limit",
    "LimitCode",
    "Mode",
    "Observation",
    "ScaledPlan",
    "ScalerSettings",
    "SeenResource",
    "SeenTable",
    "SeenTarget",
    "Skip",
    "SkipReason",
    "TableReview",
    "TargetReview",
    "TargetState",
    "alarm_threshold",
    "decide",
    "due_targets",
    "in_one_call",
    "minutes_to_observe",
    "needs_throttles",
    "review",
    "wanted_units",
]
