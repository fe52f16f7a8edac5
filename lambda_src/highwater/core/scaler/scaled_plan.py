"""A plan with what the scaler moves for it, as the constructs leave it in a parameter."""

from __future__ import annotations

import json
from dataclasses import dataclass

from highwater.core.plan.plan import Plan
from highwater.core.scaler.settings import Mode


@dataclass(frozen=True, slots=True)
class ScaledPlan:
    """What is moved for a table, and the plan that is kept."""

    mode: Mode
    plan: Plan

    def to_json(self) -> str:
        """One line of JSON, which `from_json` reads back; what only a deploy knows is left to it."""
        return f'{{"mode":"{self.mode}","plan":{self.plan.to_json()}}}'

    @classmethod
    def from_json(cls, text: str) -> ScaledPlan:
        """Read what `to_json` wrote; raises `ValueError`, `KeyError` or `TypeError` for anything else."""
        document = json.loads(text)
        return cls(Mode(document["mode"]), Plan.from_document(document["plan"]))
