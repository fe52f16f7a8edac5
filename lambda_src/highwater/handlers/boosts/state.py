"""A table as the coordinator finds it: its plan, its floors and its capacity."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from highwater.aws.autoscaling import RegisteredTargets
from highwater.aws.tables import DescribedTable, TableBusyError, TableNotFoundError, TableRefusedError
from highwater.core.boosts import BoostRequest, Lease, boosted_floor, boosts_at, index_shares_percent
from highwater.core.names import TargetName
from highwater.core.plan.plan import Target, TargetKey
from highwater.core.scaler import ScaledPlan
from highwater.core.schedule.bounds import bounds_at
from highwater.core.units import Dimension
from highwater.handlers.boosts.refusal import RefusedError
from highwater.handlers.scaler.region import Region

# How far back the writes of a table and its indexes are compared
_SHARES_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class TableState:
    """A table that may be boosted.

    Attributes:
        scaled: Its plan.
        registered: What Application Auto Scaling has of its targets, with AWS's time.
        described: What DynamoDB has of it.
    """

    scaled: ScaledPlan
    registered: RegisteredTargets
    described: DescribedTable

    @classmethod
    def read(cls, scaled: ScaledPlan, region: Region) -> TableState:
        """Look at a table; raises `RefusedError` where it is gone or AWS does not answer."""
        try:
            described = region.describe_table(scaled.table)
        except TableNotFoundError:
            raise RefusedError(404, f"{scaled.label}: the table does not exist") from None
        except (TableBusyError, TableRefusedError) as error:
            raise RefusedError(503, f"{scaled.label}: DynamoDB does not answer: {error}") from error
        if scaled.is_tagged:
            scaled = scaled.with_indexes(index for index in described.capacities if index is not None)
        names = [TargetName(scaled.table, *target.key) for target in scaled.plan.targets()]
        return cls(scaled, region.read_targets(names), described)

    @property
    def now(self) -> datetime:
        """AWS's time when the table was looked at."""
        return self.registered.at

    def target(self, key: TargetKey) -> Target:
        """Return one target of the plan."""
        return next(each for each in self.scaled.plan.targets() if each.key == key)

    def provisioned(self, key: TargetKey) -> int:
        """Return the capacity of a target, in units per second; 0 where the table has no such index."""
        capacity = self.described.capacities.get(key[0])
        return 0 if capacity is None else capacity.of(key[1])

    def floor(self, key: TargetKey) -> int | None:
        """Return the floor of a target in units per second, `None` where none is registered."""
        bounds = self.registered.of(TargetName(self.scaled.table, *key))
        return None if bounds is None else bounds.min

    def is_paused(self, key: TargetKey) -> bool:
        """Whether scaling of a target is suspended, so that no floor is set."""
        return self.registered.is_suspended(TargetName(self.scaled.table, *key))

    def check_can_be_boosted(self, key: TargetKey) -> None:
        """Raise `RefusedError` for a target whose floor or capacity nobody can set."""
        label = f"{self.scaled.label}, {self.target(key).label}"
        if key[0] not in self.described.capacities:
            raise RefusedError(409, f"{label}: the table has no such index yet; boost it when it is built")
        if self.provisioned(key) == 0:
            raise RefusedError(409, f"{label}: the table is on demand, so it has no capacity to boost")
        if self.scaled.mode.moves_floors and self.floor(key) is None:
            raise RefusedError(409, f"{label}: no scalable target is registered; deploy the table's stack again")

    def demand(self, key: TargetKey, boosted: int) -> int:
        """Return what a target holds for demand alone, of which boosts account for *boosted*.

        Nothing where nobody follows demand: target tracking then raises capacity above the floor by itself.
        """
        if not self.scaled.mode.follows_demand:
            return 0
        floor = self.floor(key)
        return max((self.provisioned(key) if floor is None else floor) - boosted, 0)

    def wanted(self, key: TargetKey, leases: Iterable[Lease]) -> int:
        """Return the least that a target is to have now, by plan and boosts, in units per second."""
        bounds, boosts = bounds_at(self.target(key), self.now), boosts_at(leases, key, self.now)
        ceiling = self.target(key).capacity.max_with_boosts
        return boosted_floor(bounds, boosts, self.scaled.plan.table_quota_units, ceiling)

    def is_ready(self, key: TargetKey, leases: Iterable[Lease]) -> bool:
        """Whether a target has what plan and boosts ask for, and its table is not being changed."""
        wanted, floor = self.wanted(key, leases), self.floor(key)
        has_floor = floor is None or floor >= wanted
        return has_floor and self.provisioned(key) >= wanted and self.described.is_active

    def index_shares(self, request: BoostRequest, region: Region) -> dict[TargetKey, int] | None:
        """Return what each index consumed of the table's writes in the last day, in percent.

        `None` where the request does not ask for it, or CloudWatch does not answer: each index is then boosted like its
        table, which is enough for any load.
        """
        indexes = [index for index, *_ in self.scaled.plan.resources() if index is not None]
        if request.index is not None or Dimension.WRITE not in request.sizes or not indexes:
            return None
        names = {
            (index, Dimension.WRITE): TargetName(self.scaled.table, index, Dimension.WRITE)
            for index in (None, *indexes)
        }
        try:
            consumed = region.read_consumption(names.values(), _SHARES_MINUTES, self.now)
        except Exception:
            return None
        return index_shares_percent(
            {key: sum(units or 0 for units in consumed[name].consumed_units) for key, name in names.items()}
        )
