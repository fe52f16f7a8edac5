"""What the scaler decides with: which targets to look at, what was seen of them, and what they should be now."""

from highwater.core.scaler.decide import TargetState, decide
from highwater.core.scaler.decisions import Decision, Limit, LimitCode
from highwater.core.scaler.direct import in_one_call, wanted_units
from highwater.core.scaler.observations import Observation
from highwater.core.scaler.settings import Mode, ScalerSettings

__all__ = [
    "Decision",
    "Limit",
    "LimitCode",
    "Mode",
    "Observation",
    "ScalerSettings",
    "TargetState",
    "decide",
    "in_one_call",
    "wanted_units",
]
