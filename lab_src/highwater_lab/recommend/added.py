"""What `manage_capacity` will add to a stack, and a scaler beside it: resources and alarms, before a synth.

At synth, `cdk_highwater.support.quotas` counts the same in what was made; a test holds one against the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from highwater.core import Dimension
from highwater_lab.simulation import TableSetup, TargetSetup

# The function that runs during deploys: itself, its bound for events, its role, log group, two policies
_OF_STACK: Final = 6
# The custom resource on which the tables depend; a global table does not
_BEFORE_TABLES: Final = 1
# Two custom resources and the policy for the table
_OF_TABLE: Final = 3
_SCALER_ALARMS: Final = 12
# Beside its alarms: function, its bound for events, role, log group, two policies, dead-letter queue with its policy,
# schedule with its role, the permission for alarms, and the deploy function's permissions to hand tables over and to
# wait for marks
_OF_SCALER: Final = 13
# The plan, the custom resource that runs the scaler after deploys, and the one that raises the marks to the ceilings
_OF_SCALED_TABLE: Final = 3
# CloudFormation scales a global table itself; only a scaler's deploys and its marks need the permission for it
_OF_SCALED_GLOBAL_TABLE: Final = 4


@dataclass(frozen=True, slots=True)
class AddedResources:
    """What comes to a stack with the managed capacity of some of its tables.

    Attributes:
        stack: The stack's name in the app.
        tables: How many tables come under `manage_capacity`.
        resources: Resources that come.
        leaving: Scalable targets and policies of the app that leave.
        scaler_resources: Resources that come besides if a `ThrottleAwareScaler` looks after those of the tables whose
            capacity is not fixed; 0 if all is fixed.
        scaler_alarms: How many of those are alarms.
    """

    stack: str
    tables: int
    resources: int
    leaving: int
    scaler_resources: int
    scaler_alarms: int

    def text(self) -> str:
        """Return it as a sentence."""
        tables = f"{self.tables:,} managed table{'' if self.tables == 1 else 's'}"
        leaving = f", and {self.leaving:,} leave" if self.leaving else ""
        scaler = (
            f"; with a ThrottleAwareScaler {self.scaler_resources:,} more, {self.scaler_alarms:,} of them alarms at "
            "0.10 USD a month"
        )
        said = f"{self.stack}: {self.resources:,} resources come with {tables}{leaving}"
        return said + scaler if self.scaler_resources else said

    def document(self) -> dict[str, Any]:
        """Return it as JSON-ready values."""
        return {
            "stack": self.stack,
            "tables": self.tables,
            "resources": self.resources,
            "leaving": self.leaving,
            "scaler_resources": self.scaler_resources,
            "scaler_alarms": self.scaler_alarms,
        }


@dataclass(frozen=True, slots=True)
class ComingTable:
    """A table that comes under `manage_capacity`.

    Attributes:
        before: What it has now.
        after: What the code declares.
        is_global: Whether CloudFormation itself scales it, as a global table.
    """

    before: TableSetup
    after: TableSetup
    is_global: bool

    @property
    def autoscaled(self) -> int:
        """How many of its targets have a policy afterwards."""
        return sum(target.tracking is not None for target in _targets(self.after))

    @property
    def resources(self) -> int:
        """What comes with it."""
        return 0 if self.is_global else _OF_TABLE + len(_targets(self.after)) + self.autoscaled

    @property
    def leaving(self) -> int:
        """The scalable targets and policies of the app that go."""
        targets = () if self.is_global else _targets(self.before)
        return sum(1 + (target.tracking is not None) for target in targets if target.has_target)

    @property
    def scaler_resources(self) -> int:
        """What a scaler adds for it; nothing for a table whose capacity is fixed, which a scaler refuses."""
        if not self.autoscaled:
            return 0
        return (_OF_SCALED_GLOBAL_TABLE if self.is_global else _OF_SCALED_TABLE) + self.autoscaled


def added_to(stack: str, tables: Sequence[ComingTable], *, has_function: bool) -> AddedResources:
    """Return what *tables* add to their stack.

    Args:
        stack: The stack's name in the app.
        tables: The tables that come under `manage_capacity`.
        has_function: Whether the stack has the function that runs during deploys, with a table that is managed already.
    """
    function = 0 if has_function else _OF_STACK
    is_for_scaler = all(table.is_global for table in tables)
    function_comes = 0 if is_for_scaler else function
    before_tables = 0 if is_for_scaler or has_function else _BEFORE_TABLES
    autoscaled = sum(table.autoscaled for table in tables)
    scaler = function - function_comes + _OF_SCALER + _SCALER_ALARMS
    return AddedResources(
        stack=stack,
        tables=len(tables),
        resources=function_comes + before_tables + sum(table.resources for table in tables),
        leaving=sum(table.leaving for table in tables),
        scaler_resources=scaler + sum(table.scaler_resources for table in tables) if autoscaled else 0,
        scaler_alarms=_SCALER_ALARMS + autoscaled if autoscaled else 0,
    )


def _targets(table: TableSetup) -> list[TargetSetup]:
    return [resource.target(dimension) for resource in table.resources for dimension in Dimension]
