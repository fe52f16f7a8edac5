"""The floor of a target without a scaler that knows of demand: the plan's, and what boosts add."""

from __future__ import annotations

from highwater.core.scaler.answer import Answer
from highwater.core.scaler.decisions import Decision
from highwater.core.scaler.state import TargetState


def decide_by_plan(state: TargetState) -> Decision:
    """Return the floor that plan and boosts ask for now; demand is left to target tracking."""
    answer = Answer(state.baseline)
    without_boosts = state.clamped(state.baseline)
    answer.clamp_demand(state)
    answer.add_boosts(state)
    answer.mind_missing_leases(state)
    answer.clamp(state)
    return Decision(
        index=state.index,
        dimension=state.dimension,
        current=state.current,
        wanted=state.baseline,
        granted=answer.units,
        limits=tuple(answer.limits),
        reason="the plan's floor",
        boosted=answer.units - without_boosts,
    )
