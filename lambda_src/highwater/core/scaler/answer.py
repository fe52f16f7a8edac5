"""An answer in the making: the units so far, and each stage that changed them."""

from __future__ import annotations

from dataclasses import dataclass, field

from highwater.core.scaler.decisions import Limit, LimitCode
from highwater.core.scaler.state import TargetState


@dataclass(slots=True)
class Answer:
    """The units so far, and what changed them. A stage that leaves the units as they are is no limit."""

    units: int
    limits: list[Limit] = field(default_factory=list)

    def become(self, units: int, code: LimitCode, sentence: str) -> None:
        """Take the units that a stage answers, and note why."""
        if units != self.units:
            self.limits.append(Limit(code, self.units, units, sentence))
            self.units = units

    def add_boosts(self, state: TargetState) -> None:
        """Add what live boosts ask for."""
        self.become(self.units + state.boosts, LimitCode.BOOST, f"boosts of {state.boosts:,} units/s")
        sentence = f"a boost to {state.boosted_total:,} units/s in total"
        self.become(max(self.units, state.boosted_total), LimitCode.BOOST, sentence)

    def mind_missing_leases(self, state: TargetState) -> None:
        """Lower nothing while nobody knows which boosts are live."""
        if state.lacks_leases:
            sentence = "the boosts could not be read: nothing is lowered"
            self.become(max(self.units, state.current), LimitCode.MISSING_DATA, sentence)

    def clamp_demand(self, state: TargetState) -> None:
        """Keep what demand asks for from the room that the plan leaves to boosts alone."""
        if state.ceiling_with_boosts > state.ceiling:
            self.become(min(self.units, state.ceiling), LimitCode.CEILING, "the plan's ceiling")

    def clamp(self, state: TargetState) -> None:
        """Stay within ceiling and quota, and at least at one unit."""
        ceiling = max(state.ceiling, state.ceiling_with_boosts)
        self.become(min(self.units, ceiling), LimitCode.CEILING, "the plan's ceiling")
        self.become(min(self.units, state.quota_units), LimitCode.QUOTA, "the account's quota per table and index")
        self.become(max(self.units, 1), LimitCode.BASELINE, "capacity is at least 1")
