"""A region in memory: what the scaler needs of AWS, as plain values that tests set and read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from highwater.aws.alarms import TargetAlarm
from highwater.aws.autoscaling import RegisteredTargets
from highwater.aws.plans import ScaledPlans
from highwater.aws.tables import DescribedTable, TableNotFoundError
from highwater.core import Bounds, Plan, Units
from highwater.core.names import TargetName
from highwater.core.scaler import Mode, Observation, ScaledPlan
from highwater.handlers.scaler.region import Region


@dataclass
class FakeRegion:
    """Tables, targets and alarms in dictionaries.

    Attributes:
        now: The time that Application Auto Scaling answers with.
        units: Units per second that each target consumed in every minute so far; 0 where it is not set.
        tagged_scalers: The functions of scalers that manage tagged tables.
        busy: Tables that are being changed.
        before: Called with the name of each method before it answers; may change things, or raise.
        calls: The methods that were called, in order.
    """

    now: datetime
    plans: list[ScaledPlan] = field(default_factory=list)
    tables: dict[str, dict[str | None, Units]] = field(default_factory=dict)
    bounds: dict[TargetName, Bounds] = field(default_factory=dict)
    alarms: dict[TargetName, TargetAlarm] = field(default_factory=dict)
    units: dict[TargetName, int] = field(default_factory=dict)
    busy: set[str] = field(default_factory=set)
    suspended: set[TargetName] = field(default_factory=set)
    tagged_scalers: tuple[str, ...] = ()
    before: Callable[[str], None] = lambda _: None
    calls: list[str] = field(default_factory=list)

    def add_table(self, name: str, plan: Plan, units: Units, mode: Mode = Mode.FLOOR) -> None:
        """A table without indexes, its plan, and in FLOOR mode its targets at the plan's bounds; each has an alarm."""
        self.plans.append(ScaledPlan(table=name, mode=mode, plan=plan))
        self.tables[name] = {None: units}
        for target in plan.targets():
            target_name = TargetName(name, *target.key)
            self.alarms[target_name] = TargetAlarm(is_in_alarm=False, threshold=7, document={})
            if mode is Mode.FLOOR:
                capacity = target.capacity
                self.bounds[target_name] = Bounds(int(capacity.min_capacity), int(capacity.max_capacity))

    def read_plans(self, scaler: str | None = None) -> ScaledPlans:
        self._called(f"read_plans {scaler}")
        return ScaledPlans(tuple(self.plans), ())

    def read_plans_of(self, scaler: str, labels: Iterable[str]) -> ScaledPlans:
        wanted = list(labels)
        self._called(f"read_plans_of {scaler} {' '.join(wanted)}")
        return ScaledPlans(tuple(plan for plan in self.plans if plan.label in wanted), ())

    def read_tagged_plans(self) -> ScaledPlans:
        self._called("read_tagged_plans")
        return ScaledPlans((), ())

    def read_tagged_scalers(self) -> tuple[str, ...]:
        self._called("read_tagged_scalers")
        return self.tagged_scalers

    def read_alarms(self, names: Iterable[TargetName] | None = None) -> Mapping[TargetName, TargetAlarm]:
        wanted = None if names is None else list(names)
        self._called("read_alarms" if wanted is None else f"read_alarms of {len(wanted)}")
        return {name: alarm for name, alarm in self.alarms.items() if wanted is None or name in wanted}

    def read_targets(self, names: Iterable[TargetName]) -> RegisteredTargets:
        wanted = list(names)
        self._called("read_targets")
        bounds = {
            (name.resource_id, name.scalable_dimension): self.bounds[name] for name in wanted if name in self.bounds
        }
        suspended = frozenset((name.resource_id, name.scalable_dimension) for name in self.suspended)
        return RegisteredTargets(self.now, bounds, suspended)

    def read_consumption(
        self, names: Iterable[TargetName], minutes: int, now: datetime
    ) -> Mapping[TargetName, Observation]:
        self._called("read_consumption")
        newest = int(now.timestamp()) // 60 - 4
        none = (0,) * minutes
        return {name: Observation(newest, (self.units.get(name, 0) * 60,) * minutes, none) for name in names}

    def with_throttles(
        self, consumed: Mapping[TargetName, Observation], minutes: int, now: datetime
    ) -> Mapping[TargetName, Observation]:
        self._called("with_throttles")
        assert minutes > 0
        assert now >= self.now
        return dict(consumed)

    def describe_table(self, table: str) -> DescribedTable:
        self._called(f"describe_table {table}")
        if table not in self.tables:
            raise TableNotFoundError(f"no {table}")
        return DescribedTable(arn=f"arn:{table}", is_active=table not in self.busy, capacities=dict(self.tables[table]))

    def set_bounds(self, name: TargetName, bounds: Bounds) -> None:
        self._called(f"set_bounds {name}")
        self.bounds[name] = bounds

    def set_capacity(self, table: str, index: str | None, units: Units) -> None:
        self._called(f"set_capacity {table}")
        self.tables[table][index] = units

    def move_threshold(self, alarm: TargetAlarm, threshold: int) -> None:
        self._called("move_threshold")
        (name,) = [name for name, known in self.alarms.items() if known is alarm]
        self.alarms[name] = TargetAlarm(alarm.is_in_alarm, threshold, alarm.document)

    def _called(self, method: str) -> None:
        self.calls.append(method)
        self.before(method)


def as_region(fake: FakeRegion) -> Region:
    """The fake as what it stands for: a type checker compares each method with the protocol's."""
    return fake
