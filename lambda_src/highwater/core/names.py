"""How targets are named: by Application Auto Scaling, in the scaler's alarms, and where plans are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from highwater.core.units import Dimension

# What names of the scaler's alarms begin with; a table's name has no blank
ALARM_PREFIX: Final = "Highwater "
# The SSM parameters that hold plans, one a table
PLANS_PATH: Final = "/highwater/plans/"


# What names of the scalers' log groups begin with
LOG_GROUPS_PREFIX: Final = "/highwater/scaler/"


@dataclass(frozen=True, slots=True)
class TargetName:
    """How Application Auto Scaling names a target of DynamoDB."""

    table: str
    index: str | None
    dimension: Dimension

    @property
    def resource_id(self) -> str:
        """`table/T` or `table/T/index/I`."""
        return f"table/{self.table}" + (f"/index/{self.index}" if self.index else "")

    @property
    def scalable_dimension(self) -> str:
        """`dynamodb:table:WriteCapacityUnits` and its three kin."""
        return f"dynamodb:{'index' if self.index else 'table'}:{self.dimension.title()}CapacityUnits"

    def __str__(self) -> str:
        """`table/T/index/I write`."""
        return f"{self.resource_id} {self.dimension}"

    @property
    def alarm(self) -> str:
        """The scaler's alarm: `Highwater orders write`, `Highwater orders/by_status read`."""
        resource = self.table if self.index is None else f"{self.table}/{self.index}"
        return f"{ALARM_PREFIX}{resource} {self.dimension}"


def target_label(index: str | None, dimension: Dimension) -> str:
    """How people are told of a target of a table: `table write`, `index 'by_status' read`."""
    return f"{resource_label(index)} {dimension}"


def resource_label(index: str | None) -> str:
    """How people are told of the table itself or one of its indexes: `table`, `index 'by_status'`."""
    return "table" if index is None else f"index {index!r}"


def table_label(table: str, region: str | None) -> str:
    """How the scaler names a table: as it is where the scaler runs, with its region ahead where it is elsewhere."""
    return table if region is None else f"{region}/{table}"


def table_of_plan(parameter: str) -> tuple[str, str | None]:
    """The table and region that `plan_parameter` made a parameter's name of."""
    *region, table = parameter.removeprefix(PLANS_PATH).split("/")
    return table, region[0] if region else None


def plan_parameter(table: str, region: str | None = None) -> str:
    """The name of the SSM parameter that holds a table's plan; *region* is where the table is, if not with it."""
    return f"{PLANS_PATH}{table_label(table, region)}"
