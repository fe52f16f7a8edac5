"""Decisions: the capacity or floor for one target, with every limit that changed the wanted value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from highwater.core.names import target_label
from highwater.core.plan.plan import TargetKey
from highwater.core.units import Dimension


class LimitCode(StrEnum):
    """The stages that may change the wanted value, in the order in which they are applied."""

    STEP = "step"
    BUCKET = "bucket"
    TOLERANCE = "tolerance"
    MISSING_DATA = "missing-data"
    BASELINE = "baseline"
    BOOST = "boost"
    CEILING = "ceiling"
    QUOTA = "quota"
    PAID_HOUR = "paid-hour"
    DECREASE_BUDGET = "decrease-budget"
    RAISE_FIRST = "raise-first"


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
        "reason": decision.reason,
        "limits": [
            {"code": str(limit.code), "before": limit.before, "after": limit.after, "sentence": limit.sentence}
            for limit in decision.limits
        ],
        "hot_key": decision.has_hot_key,
    }
