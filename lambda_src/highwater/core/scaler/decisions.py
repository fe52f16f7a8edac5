"""What the core answers for one target, and every limit that changed the answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from highwater.core.names import target_label
from highwater.core.plan.plan import TargetKey
from highwater.core.units import Dimension


class LimitCode(StrEnum):
    """The stages that may change an answer, in the order in which they do."""

    STEP = "step"
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
    """One stage that changed the answer, from what to what, and a sentence that says why."""

    code: LimitCode
    before: int
    after: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer for one target, in units per second.

    Attributes:
        index: Name of the index, `None` for the table.
        dimension: READ or WRITE.
        current: What it is: the floor, or the provisioned capacity in DIRECT mode.
        wanted: What demand alone asks for.
        granted: What it should be now.
        limits: What changed `wanted` to `granted`, in order.
        reason: What `wanted` comes from, in a sentence.
        has_hot_key: Whether requests were throttled by a key's partition: no capacity helps.
    """

    index: str | None
    dimension: Dimension
    current: int
    wanted: int
    granted: int
    limits: tuple[Limit, ...]
    reason: str
    has_hot_key: bool = False

    @property
    def key(self) -> TargetKey:
        """What tells its target from the others of the table."""
        return self.index, self.dimension

    @property
    def changes(self) -> bool:
        """Whether anything is to be done."""
        return self.granted != self.current

    @property
    def label(self) -> str:
        """`table write`, `index 'by_status' read`."""
        return target_label(self.index, self.dimension)

    def limited_by(self, code: LimitCode) -> bool:
        """Whether that stage changed the answer."""
        return any(limit.code is code for limit in self.limits)


def decision_document(decision: Decision) -> dict[str, Any]:
    """The decision as JSON-ready values, for the scaler's log and for `highwater explain --json`."""
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
