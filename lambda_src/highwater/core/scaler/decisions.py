"""What the core answers for one target, and every limit that changed the answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

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
    def changes(self) -> bool:
        """Whether anything is to be done."""
        return self.granted != self.current

    @property
    def label(self) -> str:
        """`table write`, `index 'by_status' read`."""
        return f"{'table' if self.index is None else f'index {self.index!r}'} {self.dimension}"

    def limited_by(self, code: LimitCode) -> bool:
        """Whether that stage changed the answer."""
        return any(limit.code is code for limit in self.limits)
