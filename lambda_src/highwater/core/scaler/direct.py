"""DIRECT mode's calls: both dimensions of a resource in one UpdateTable, a decrease never beside an increase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from highwater.core.scaler.decisions import Decision, Limit, LimitCode
from highwater.core.units import Dimension


def in_one_call(decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """The decisions on one resource as one call can carry them out: where one raises, none lowers.

    A call that lowers reads and writes is one decrease. A raise cannot wait for a refused decrease, so it goes alone.
    """
    if not any(decision.granted > decision.current for decision in decisions):
        return tuple(decisions)
    return tuple(_kept(decision) if decision.granted < decision.current else decision for decision in decisions)


def wanted_units(decisions: Sequence[Decision]) -> Mapping[Dimension, int]:
    """The units of the dimensions that change, as `in_one_call` leaves them; empty for no call."""
    return {decision.dimension: decision.granted for decision in decisions if decision.changes}


def _kept(decision: Decision) -> Decision:
    sentence = "the other dimension is raised first: an increase and a decrease never go in one call"
    limit = Limit(LimitCode.RAISE_FIRST, decision.granted, decision.current, sentence)
    return replace(decision, granted=decision.current, limits=(*decision.limits, limit))
