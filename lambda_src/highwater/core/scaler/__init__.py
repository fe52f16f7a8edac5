"""What the scaler decides with: which targets to look at, what was seen of them, and what they should be now."""

from highwater.core.scaler.attention import alarm_threshold, due_targets, minutes_to_observe, needs_throttles
from highwater.core.scaler.decide import decide
from highwater.core.scaler.decisions import Decision, Limit, LimitCode
from highwater.core.scaler.direct import in_one_call, wanted_units
from highwater.core.scaler.observations import Observation
from highwater.core.scaler.proposals import Proposal
from highwater.core.scaler.review import Skip, SkipReason, TableReview, TargetReview, review
from highwater.core.scaler.scaled_plan import ScaledPlan
from highwater.core.scaler.seen import Clock, SeenResource, SeenTable, SeenTarget
from highwater.core.scaler.settings import Mode, ScalerSettings
from highwater.core.scaler.state import TargetState

__all__ = [
    "Clock",
    "Decision",
    "Limit",
    "LimitCode",
    "Mode",
    "Observation",
    "Proposal",
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
