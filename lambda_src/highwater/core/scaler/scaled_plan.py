"""A table that the scaler looks after: its plan, and what the scaler moves."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from highwater.core.names import plan_parameter, table_label, table_of_plan
from highwater.core.plan.plan import Plan
from highwater.core.scaler.settings import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledPlan:
    """One table that the scaler looks after.

    The constructs write it into an SSM parameter; the function, the `highwater` command and the lab read it there.

    Attributes:
        table: The table's name.
        mode: What the scaler moves.
        plan: What is declared for the table.
        region: The table's region; `None` where that is the scaler's own.
        is_tagged: Whether tags on the table chose it. Its plan then lists no indexes: they follow the table.
    """

    table: str
    mode: Mode
    plan: Plan
    region: str | None = None
    is_tagged: bool = False

    @property
    def label(self) -> str:
        """The table's name, after its region where that is another than the scaler's; unique among all plans."""
        return table_label(self.table, self.region)

    @property
    def parameter(self) -> str:
        """Name of the SSM parameter that the plan is kept in."""
        return plan_parameter(self.table, self.region)

    def to_json(self) -> str:
        """The parameter's value: one line of JSON."""
        return f'{{"mode":"{self.mode}","plan":{self.plan.to_json()}}}'

    @classmethod
    def from_parameter(cls, name: str, value: str) -> ScaledPlan:
        """Read a parameter that the constructs wrote.

        Raises:
            ValueError: The value is not JSON, or has another version of the plan.
            KeyError: A member is missing.
            TypeError: The value is JSON of another shape.
        """
        document = json.loads(value)
        table, region = table_of_plan(name)
        mode, plan = Mode(document["mode"]), Plan.from_document(document["plan"])
        return cls(table=table, mode=mode, plan=plan, region=region)

    def with_indexes(self, names: Iterable[str]) -> ScaledPlan:
        """The same, where the indexes of these names follow the table unless the plan lists them already."""
        return replace(self, plan=self.plan.with_indexes(names))
