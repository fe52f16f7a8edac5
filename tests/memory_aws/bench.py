"""Tables in memory for the handlers of deploys, which reach them over wires on which any answer can be lost."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from highwater.aws import tables
from highwater.core import Bounds, Dimension
from highwater.core.names import TargetName
from highwater.core.units import Units
from highwater_lab.services.timing import Timing
from tests.memory_aws.account import Account
from tests.memory_aws.clients import Metrics, Stacks
from tests.memory_aws.stage import NOW
from tests.memory_aws.tables import Table
from tests.memory_aws.wire import Wire

_HOME = Units(5, 7)


def _everything(_action: str, _arn: str) -> bool:
    return True


@dataclass
class Bench:
    """An account with plain clients, and the wires that the code under test speaks over; changes take no time.

    Attributes:
        wire: DynamoDB's, as the code under test reaches it.
        targets_wire: Likewise of Application Auto Scaling.
    """

    account: Account = field(default_factory=lambda: Account(int(NOW.timestamp())))
    wire: Wire = field(default_factory=Wire)
    targets_wire: Wire = field(default_factory=Wire)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.dynamodb: Any = self.account.tables_client(_everything)
        self.cloudwatch: Any = Metrics(self.account, _everything)
        self.stacks: Any = Stacks(self.account, _everything)
        self.wired_dynamodb: Any = self.wire.around(self.dynamodb)
        self.wired_autoscaling: Any = self.targets_wire.around(self.account.targets_client(_everything))

    def make_table(self, units: Units = _HOME, *, on_demand: bool = False, **indexes: Units) -> str:
        """A table with a unique name and the named indexes."""
        name = f"orders-{next(self._numbers)}"
        wanted: dict[str | None, Units] = {None: units}
        wanted.update(indexes.items())
        self.account.tables[name] = Table.provisioned(name, wanted, Timing.instant_updates())
        if on_demand:
            self.account.tables[name].put_on_demand()
        return name

    def capacities(self, table: str) -> dict[str | None, Units]:
        """What is provisioned."""
        return tables.describe_table(self.dynamodb, table).capacities

    def marks(self, table: str) -> dict[str | None, Units]:
        """The live marks."""
        return tables.describe_table(self.dynamodb, table).marks

    def provision(self, table: str, units: Units, index: str | None = None) -> None:
        """Provision, as somebody else would."""
        tables.set_capacity(self.dynamodb, table, index, units)

    def register(
        self, table: str, read: tuple[int, int] | None, write: tuple[int, int] | None, index: str | None = None
    ) -> None:
        """Register targets with these floors and ceilings; `None` leaves one out."""
        for dimension, bounds in zip(Dimension, (read, write), strict=True):
            if bounds is not None:
                name = TargetName(table, index, dimension)
                self.account.autoscaling.register(name, Bounds(*bounds), self.account.now)

    def bounds(self, table: str, index: str | None = None) -> tuple[tuple[int, int], ...]:
        """The floors and ceilings of the registered targets: those of reads, then those of writes."""
        targets = self.account.autoscaling.targets
        names = [TargetName(table, index, dimension) for dimension in Dimension]
        return tuple((targets[name].bounds.min, targets[name].bounds.max) for name in names if name in targets)

    def now(self) -> datetime:
        """The account's time."""
        return self.account.at()

    def advance(self, time: timedelta) -> None:
        """Let time pass."""
        self.account.advance(int(time.total_seconds()))
