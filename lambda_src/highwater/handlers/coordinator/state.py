"""The state of a table that may be boosted: its plan, its targets and its capacity; read once for many polls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from highwater.aws.autoscaling import RegisteredTargets
from highwater.aws.observe import Region
from highwater.aws.parameters import ScaledPlans
from highwater.aws.tables import DescribedTable, TableBusyError, TableNotFoundError, TableRefusedError
from highwater.core.boosts import BoostRequest, Lease, boosted_floor, boosts_at, index_shares_percent
from highwater.core.names import TargetName
from highwater.core.plan.plan import Target, TargetKey
from highwater.core.scaler import ScaledPlan
from highwater.core.schedule.bounds import bounds_at
from highwater.core.units import Dimension
from highwater.handlers.coordinator.call import RefusedError

# Cached as long as the grants. Every job that waits for its capacity sends a request every two seconds, and an account
# may read parameters 40 times a second in total (AWS General Reference, Systems Manager quotas, read 2026-11).
_PLANS_SECONDS = 30.0
# A plan that was read this lately is new enough for a grant too, and a state for a poll.
_ANEW_SECONDS = 2.0
# Shares of the last day change little within it.
_SHARES_SECONDS = 60.0


@dataclass(slots=True)
class KeptPlans:
    """What a warm function caches of single tables: plans, states for polls, and the shares of indexes.

    Attributes:
        clock: Monotonic clock, in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _read: dict[str, tuple[float, ScaledPlans]] = field(default_factory=dict)
    _states: dict[str, tuple[float, TableState]] = field(default_factory=dict)
    _shares: dict[str, tuple[float, dict[TargetKey, int]]] = field(default_factory=dict)
    _labels: tuple[float, tuple[str, ...]] | None = None

    def read(self, home: Region, scaler: str, label: str, *, is_anew: bool) -> ScaledPlans:
        """Return the plan of one table of *scaler*, read again after half a minute, or after two seconds if *is_anew*.

        New grants must follow the plan of a deploy that has just ended. Only a readable plan is cached: a table that
        was just added to the scaler, or whose plan was just repaired, is found at the next request.
        """
        now = self.clock()
        read_at, plans = self._read.get(label, (now, None))
        if plans is None or now - read_at >= (_ANEW_SECONDS if is_anew else _PLANS_SECONDS):
            self._read.pop(label, None)
            plans = home.read_plans_of(scaler, [label])
            # by another name, such as that of one of its versions, a parameter is not cached
            if any(plan.label == label and not plan.is_released for plan in plans.plans):
                self._read[label] = (now, plans)
        return plans

    def labels(self, home: Region, scaler: str) -> tuple[str, ...]:
        """Return the labels of the tables of *scaler*, read again after half a minute."""
        now = self.clock()
        if self._labels is None or now - self._labels[0] >= _PLANS_SECONDS:
            found = home.read_plans(scaler)
            self._labels = now, tuple(sorted(plan.label for plan in found.plans if not plan.is_released))
        return self._labels[1]

    def state(self, scaled: ScaledPlan, region: Region, *, for_poll: bool = False) -> TableState:
        """Return a table's state; one of the last two seconds is new enough for a poll.

        Raises `RefusedError` if the table does not exist or AWS does not answer.
        """
        if not for_poll:
            return TableState.read(scaled, region)
        now = self.clock()
        read_at, state = self._states.get(scaled.label, (now, None))
        if state is None or now - read_at >= _ANEW_SECONDS:
            state = TableState.read(scaled, region)
            self._states[scaled.label] = now, state
        return state

    def shares(self, request: BoostRequest, state: TableState, region: Region) -> dict[TargetKey, int] | None:
        """Return `TableState.index_shares`, read again after a minute."""
        now = self.clock()
        read_at, shares = self._shares.get(request.table, (now, None))
        if shares is None or now - read_at >= _SHARES_SECONDS or request.index is not None:
            shares = state.index_shares(request, region)
            if shares is not None:
                self._shares[request.table] = now, shares
        return shares


# The time over which the writes of a table and its indexes are compared
_SHARES_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class TableState:
    """A table that may be boosted.

    Attributes:
        scaled: Its plan.
        registered: Its targets in Application Auto Scaling, with AWS's time.
        described: The answer of DescribeTable.
    """

    scaled: ScaledPlan
    registered: RegisteredTargets
    described: DescribedTable

    @classmethod
    def read(cls, scaled: ScaledPlan, region: Region) -> TableState:
        """Read a table's state; raises `RefusedError` if the table does not exist or AWS does not answer."""
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
        """AWS's time at which the state was read."""
        return self.registered.at

    def has_target(self, key: TargetKey) -> bool:
        """Whether the plan has a target: an index may have left it since a boost began."""
        return any(each.key == key for each in self.scaled.plan.targets())

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
        """Raise `RefusedError` for a target whose floor or capacity cannot be set."""
        label = f"{self.scaled.label}, {self.target(key).label}"
        if key[0] not in self.described.capacities:
            raise RefusedError(409, f"{label}: the table has no such index yet; boost it when it is built")
        if self.provisioned(key) == 0:
            raise RefusedError(409, f"{label}: the table is on demand, so it has no capacity to boost")
        if self.scaled.mode.moves_floors and self.floor(key) is None:
            raise RefusedError(409, f"{label}: no scalable target is registered; deploy the table's stack again")

    def demand(self, key: TargetKey, boosted: int) -> int:
        """Return the floor that demand alone asks for: the present floor less *boosted*, the units for boosts.

        0 if the scaler does not follow demand: target tracking then raises capacity above the floor by itself.
        """
        if not self.scaled.mode.follows_demand:
            return 0
        floor = self.floor(key)
        return max((self.provisioned(key) if floor is None else floor) - boosted, 0)

    def wanted(self, key: TargetKey, leases: Iterable[Lease]) -> int:
        """Return the floor of a target that plan and boosts ask for now, in units per second."""
        bounds, boosts = bounds_at(self.target(key), self.now), boosts_at(leases, key, self.now)
        ceiling = self.target(key).capacity.max_with_boosts
        return boosted_floor(bounds, boosts, self.scaled.plan.table_quota_units, ceiling)

    def is_ready(self, key: TargetKey, leases: Iterable[Lease]) -> bool:
        """Whether a target's floor and capacity have reached `wanted`, and its table is ACTIVE."""
        wanted, floor = self.wanted(key, leases), self.floor(key)
        has_floor = floor is None or floor >= wanted
        return has_floor and self.provisioned(key) >= wanted and self.described.is_active

    def index_shares(self, request: BoostRequest, region: Region) -> dict[TargetKey, int] | None:
        """Return each index's share of the table's consumed write units in the last day, in percent.

        `None` if the request does not need shares, or CloudWatch does not answer: each index is then boosted like its
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
