"""UpdateTable calls of DIRECT mode: both dimensions of a resource in one call, never an increase with a decrease."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from highwater.core.scaler.decisions import Decision, Limit, LimitCode
from highwater.core.units import Dimension


def in_one_call(decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """Return the decisions on one resource as a single call can apply them: if one raises, the other does not lower.

    A call that lowers reads and writes counts as one decrease. DynamoDB may refuse a decrease and would then refuse the
    increase in the same call, so an increase goes without one.
    """
    if not any(decision.granted > decision.current for decision in decisions):
        return tuple(decisions)
    return tuple(_kept(decision) if decision.granted < decision.current else decision for decision in decisions)


def wanted_units(decisions: Sequence[Decision]) -> Mapping[Dimension, int]:
    """Return the units of the dimensions that change, from the result of `in_one_call`; empty if no call is needed."""
    return {decision.dimension: decision.granted for decision in decisions if decision.changes}


def _kept(decision: Decision) -> Decision:
    sentence = "the other dimension is raised first: the scaler never combines an increase and a decrease in one call"
    limit = Limit(LimitCode.RAISE_FIRST, decision.granted, decision.current, sentence)
    return replace(decision, granted=decision.current, limits=(*decision.limits, limit))
