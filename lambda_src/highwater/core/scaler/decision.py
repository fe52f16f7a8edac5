"""A decision on one target: the value to set, and the limits that led to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from highwater.core.names import target_label
from highwater.core.plan.plan import TargetKey
from highwater.core.prices import COST_WEIGHT
from highwater.core.scaler.demand import DemandAlone
from highwater.core.units import Dimension


class LimitCode(StrEnum):
    """The stages that may change the wanted value; their order is that of `STAGES`."""

    STEP = "step"
    BUCKET = "bucket"
    REGRET = "regret"
    TOLERANCE = "tolerance"
    MISSING_DATA = "missing-data"
    BASELINE = "baseline"
    BOOST = "boost"
    CEILING = "ceiling"
    QUOTA = "quota"
    PAID_HOUR = "paid-hour"
    DECREASE_BUDGET = "decrease-budget"
    RAISE_FIRST = "raise-first"

    @property
    def is_most(self) -> bool:
        """Whether it means that no more is to be had, however much is asked for: a fleet then need not ask."""
        return self in (LimitCode.REGRET, LimitCode.CEILING, LimitCode.QUOTA)


@dataclass(frozen=True, slots=True)
class Limit:
    """A stage that changed the value from *before* to *after*, in units per second, and a sentence that says why."""

    code: LimitCode
    before: int
    after: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision for one target. All values are floors, or provisioned capacity in DIRECT mode, in units per second.

    Attributes:
        index: Name of the index, `None` for the table.
        dimension: READ or WRITE.
        current: The present value.
        wanted: The value that demand alone asks for.
        granted: The value to set.
        limits: The stages that changed `wanted` to `granted`, in order.
        reason: The origin of `wanted`, in a sentence.
        has_hot_key: Whether a single key's partition throttled requests. More capacity does not help then.
        boosted: The units of *granted* that boosts account for. The next decision is given them, as consumption says
            nothing of them: once the boosts have ended, the rest is what demand and plan account for.
        lowered_to: In FLOOR mode, the capacity to lower to now, in units per second, in place of waiting for auto
            scaling; `None` to leave it as it is.
        alone: The part of *granted* that demand requires by itself, while a boost of the target is live; `None`
            otherwise, and where it is not known.
    """

    index: str | None
    dimension: Dimension
    current: int
    wanted: int
    granted: int
    limits: tuple[Limit, ...]
    reason: str
    has_hot_key: bool = False
    boosted: int = 0
    lowered_to: int | None = None
    alone: DemandAlone | None = None

    @property
    def key(self) -> TargetKey:
        """The index and dimension, which identify the target within its table."""
        return self.index, self.dimension

    @property
    def changes(self) -> bool:
        """Whether the granted value differs from the current one."""
        return self.granted != self.current

    @property
    def label(self) -> str:
        """The target's name in messages: `table write`, `index 'by_status' read`."""
        return target_label(self.index, self.dimension)

    def limited_by(self, code: LimitCode) -> bool:
        """Whether the stage *code* changed the value."""
        return any(limit.code is code for limit in self.limits)


def decision_document(decision: Decision) -> dict[str, Any]:
    """Return the decision as JSON-ready values, for the scaler's log and for `highwater explain --json`."""
    return {
        "current": decision.current,
        "wanted": decision.wanted,
        "granted": decision.granted,
        "lowered_to": decision.lowered_to,
        "reason": decision.reason,
        "limits": [
            {"code": str(limit.code), "before": limit.before, "after": limit.after, "sentence": limit.sentence}
            for limit in decision.limits
        ],
        "hot_key": decision.has_hot_key,
    }


def in_one_call(decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """Return the decisions on one resource as a single call can apply them: if one raises, the other does not lower.

    A call that lowers reads and writes counts as one decrease. DynamoDB may refuse a decrease and would then refuse the
    increase in the same call, so an increase goes without one.
    """
    if not any(decision.granted > decision.current for decision in decisions):
        return tuple(decisions)
    return tuple(_kept(decision) if decision.granted < decision.current else decision for decision in decisions)


def one_lowered(decisions: Sequence[Decision], capacities: Mapping[Dimension, int]) -> tuple[Decision, ...]:
    """Return the decisions on one resource with at most one that lowers its capacity now: the one that saves most.

    Reads and writes share the day's decreases, and while one is being lowered DynamoDB does not accept the other.
    *capacities* are the resource's provisioned units per second.
    """
    saved = {
        each.dimension: COST_WEIGHT[each.dimension] * (capacities[each.dimension] - each.lowered_to)
        for each in decisions
        if each.lowered_to is not None
    }
    most = max(saved, key=saved.__getitem__, default=None)
    return tuple(
        replace(each, lowered_to=None) if each.dimension in saved and each.dimension != most else each
        for each in decisions
    )


def wanted_units(decisions: Sequence[Decision]) -> Mapping[Dimension, int]:
    """Return the units of the dimensions that change, from the result of `in_one_call`; empty if no call is needed."""
    return {decision.dimension: decision.granted for decision in decisions if decision.changes}


def _kept(decision: Decision) -> Decision:
    sentence = "the other dimension is raised first: the scaler never combines an increase and a decrease in one call"
    limit = Limit(LimitCode.RAISE_FIRST, decision.granted, decision.current, sentence)
    return replace(decision, granted=decision.current, limits=(*decision.limits, limit))
