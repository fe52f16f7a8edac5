"""A table that the scaler looks after: its plan, and what the scaler moves."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from highwater.core.names import names_of_parameter, plan_parameter, table_label
from highwater.core.plan.plan import Plan
from highwater.core.scaler.settings import Mode
from highwater.core.schedule.bounds import require_bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledPlan:
    """One table that the scaler looks after.

    The constructs write it into an SSM parameter; the function, the `highwater` command and the lab read it there.

    Attributes:
        table: The table's name.
        mode: What the scaler moves.
        plan: What is declared for the table.
        region: The table's region; `None` where that is the scaler's own.
        scaler: The name of the scaler that looks after the table; empty where tags on the table chose it.
        is_released: Whether the scaler no longer looks after the table; CloudFormation is about to delete the plan.
        is_tagged: Whether tags on the table chose it. Its plan then lists no indexes: they follow the table.
    """

    table: str
    mode: Mode
    plan: Plan
    region: str | None = None
    scaler: str = ""
    is_released: bool = False
    is_tagged: bool = False

    @property
    def label(self) -> str:
        """The table's name, after its region where that is another than the scaler's; unique among all plans."""
        return table_label(self.table, self.region)

    @property
    def parameter(self) -> str:
        """Name of the SSM parameter that the plan is kept in."""
        return plan_parameter(self.scaler, self.table, self.region)

    def to_json(self) -> str:
        """The parameter's value: one line of JSON."""
        return f'{{"mode":"{self.mode}","plan":{self.plan.to_json()}}}'

    @classmethod
    def from_parameter(cls, name: str, value: str) -> ScaledPlan:
        """Read a parameter that the constructs wrote.

        Raises:
            ValueError: The value is not such a plan, or has a window that never opens or closes. The message begins
                with the kind of the error.
        """
        try:
            scaled = cls._parsed(name, value)
            require_bounds(scaled.plan.targets())
        except Exception as error:  # a parameter may hold anything
            message = f"{type(error).__name__}: {error}"
            raise ValueError(message) from error
        return scaled

    @classmethod
    def _parsed(cls, name: str, value: str) -> ScaledPlan:
        document = json.loads(value)
        scaler, table, region = names_of_parameter(name)
        return cls(
            table=table,
            mode=Mode(document["mode"]),
            plan=Plan.from_document(document["plan"]),
            region=region,
            scaler=scaler,
            is_released=bool(document.get("released")),
        )

    def with_indexes(self, names: Iterable[str]) -> ScaledPlan:
        """The same, where the indexes of these names follow the table unless the plan lists them already."""
        return replace(self, plan=self.plan.with_indexes(names))
