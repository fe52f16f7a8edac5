"""The one way in which tests run the scaler: over its own adapters, on tables of an account in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from highwater.aws.observe import NOTHING_KEPT, Kept
from highwater.core import Bounds, Capacity, Dimension, Plan, Units, Window
from highwater.core.names import TargetName, plan_parameter
from highwater.core.scaler import Mode, ScaledPlan
from highwater.handlers.scaler.gather import RunOutcome
from highwater.handlers.scaler.handler import Scaler
from highwater.handlers.scaler.run import Options
from highwater_lab.services.timing import Timing
from tests.memory_aws.account import Account, MemoryRegion
from tests.memory_aws.tables import Table
from tests.memory_aws.wire import Wire

NOW = datetime(2027, 3, 4, 10, 20, 40, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PLAN = Plan(
    read=Capacity.autoscaled(min_capacity=7, max_capacity=900),
    write=Capacity.autoscaled(min_capacity=12, max_capacity=400),
)
_ALWAYS = Window.daily("always", start="02:00", end="02:00", timezone="UTC", write_min=140, lead=timedelta(0))
# a plan whose window is always open
WITH_WINDOW = replace(PLAN, windows=(_ALWAYS,))
_ALARM_ARN = "arn:aws:cloudwatch:us-east-1:000000000000:alarm:Highwater"


@dataclass
class Stage:
    """Tables that a scaler looks after, in one region; changes of capacity take no time.

    Attributes:
        options: How the scaler is set up.
        kept: What it keeps in a coordinator's table.
        region: The region, `None` for the scaler's own.
        home: The stage of the scaler's own region, if this is another.
        account: What the region has.
        wire: The scaler's calls of this region's services.
        handed_on: Events that runs handed to other runs.
        others: The stages of other regions, by name.
    """

    options: Options = field(default_factory=Options)
    kept: Kept = NOTHING_KEPT
    region: str | None = None
    home: Stage | None = None
    account: Account = field(default_factory=lambda: Account(int(NOW.timestamp())))
    wire: Wire = field(default_factory=Wire)
    handed_on: list[dict[str, Any]] = field(default_factory=list)
    others: dict[str, Stage] = field(default_factory=dict)

    def elsewhere(self, region: str) -> Stage:
        """Another region of the same account, with a clock that goes like this one's."""
        account = Account(self.account.now, parameters=self.account.parameters)
        self.others[region] = Stage(region=region, home=self, account=account)
        return self.others[region]

    def table(
        self,
        name: str,
        plan: Plan | None = PLAN,
        mode: Mode = Mode.FLOOR,
        units: tuple[int, int] = (7, 12),
        floor: int | None = None,
    ) -> TargetName:
        """A table; with a plan that is stored, its targets registered where floors are moved, and an alarm each.

        Args:
            name: The table's name.
            plan: What its scaler knows of it, `None` for nothing.
            mode: What the scaler moves.
            units: Its read and write capacity, and that of each index.
            floor: The write floor that somebody has set, by default the plan's.

        Returns:
            The table's write target.
        """
        indexes = [None] if plan is None else [index for index, *_ in plan.resources()]
        wanted = dict.fromkeys(indexes, Units(*units))
        self.account.tables[name] = Table.provisioned(name, wanted, Timing.instant_updates())
        target_of_writes = TargetName(name, None, Dimension.WRITE)
        if plan is None:
            return target_of_writes
        self.store(name, ScaledPlan(table=name, mode=mode, plan=plan).to_json())
        if mode.moves_floors:
            self.account.register(name, plan)
        for target in plan.targets():
            self.put_alarm(TargetName(name, *target.key))
        if floor is not None:
            self.register(target_of_writes, floor, self.bounds(target_of_writes).max)
        return target_of_writes

    def store(self, table: str, plan: str) -> None:
        """Store a plan in the parameter of a table."""
        self.account.parameters[self.parameter(table)] = plan

    def parameter(self, table: str) -> str:
        """The name of the parameter with a table's plan."""
        return plan_parameter((self.home or self).options.name, table, self.region)

    def register(self, name: TargetName, low: int, high: int) -> None:
        """Set a target's floor and ceiling, as somebody else would."""
        self.account.autoscaling.register(name, Bounds(low, high), self.account.now)

    def pause(self, name: TargetName, *, is_paused: bool = True) -> None:
        """Suspend or resume a target's scaling."""
        self.account.autoscaling.targets[name].is_suspended = is_paused

    def put_alarm(self, name: TargetName, **more: Any) -> None:
        """The scaler's alarm of a target, at a threshold that no capacity has."""
        dimensions = [{"Name": "TableName", "Value": name.table}]
        dimensions += [{"Name": "GlobalSecondaryIndexName", "Value": name.index}] if name.index else []
        self.account.alarms[name.alarm] = {
            "AlarmName": name.alarm,
            "MetricName": f"Consumed{name.dimension.title()}CapacityUnits",
            "Dimensions": dimensions,
            "Threshold": 3.0,
            "TreatMissingData": "ignore",
        } | more

    def threshold(self, name: TargetName) -> int:
        """The threshold of a target's alarm."""
        return int(self.account.alarms[name.alarm]["Threshold"])

    def bounds(self, name: TargetName) -> Bounds:
        """A target's floor and ceiling."""
        return self.account.autoscaling.targets[name].bounds

    def capacity(self, table: str, index: str | None = None) -> Units:
        """What is provisioned, or on its way."""
        granted = self.account.tables[table].resources[index].granted
        return Units(granted[Dimension.READ], granted[Dimension.WRITE])

    def provision(self, table: str, units: Units, index: str | None = None) -> None:
        """Change capacity, as somebody else would."""
        wanted = {Dimension.READ: units.read, Dimension.WRITE: units.write}
        self.account.tables[table].change(index, wanted, self.account.now, by_autoscaling=False)

    def consume(self, name: TargetName, units: int) -> None:
        """Have a target consume so many units in each second of every minute so far."""
        self.account.units[name] = units

    def surge(self, name: TargetName, units: int, throttled: int = 0) -> None:
        """Have a target consume *units* in the minute that begins now; then wait until CloudWatch has its datapoint."""
        self.advance(MINUTE - timedelta(seconds=self.account.now % 60))
        minute = self.account.now // 60
        self.account.surges.setdefault(name, {})[minute] = units
        if throttled:
            self.account.throttles.setdefault(name, {})[minute] = throttled
        self.advance(3 * MINUTE)

    def now(self) -> datetime:
        """The time in all regions."""
        return self.account.at()

    def advance(self, time: timedelta) -> None:
        """Let time pass in all regions."""
        for stage in (self, *self.others.values()):
            stage.account.advance(int(time.total_seconds()))

    def wait_for_minute(self, minute: int) -> None:
        """Go on to that minute of an hour, which may be the next."""
        at = self.now().replace(minute=minute, second=1)
        self.advance((at if at > self.now() else at + 60 * MINUTE) - self.now())

    def region_of(self, name: str | None) -> MemoryRegion:
        """The scaler's adapter of a region; it may do everything."""
        stage = self if name is None else self.others.get(name) or self.elsewhere(name)
        return MemoryRegion(stage.account, lambda _action, _arn: True, name, stage.wire.around)

    def run(self, *labels: str, **more: Any) -> RunOutcome:
        """Serve these tables at the present time."""
        return self.serve({"highwater": "tables", "tables": list(labels)} | more)

    def tick(self) -> RunOutcome:
        """Serve a tick of the schedule at the present time."""
        return self.serve({"highwater": "tick"})

    def alarm(self, name: TargetName) -> RunOutcome:
        """Serve the alarm of a target."""
        metric = {"name": f"Consumed{name.dimension.title()}CapacityUnits", "dimensions": {"TableName": name.table}}
        metrics = [{"id": "m1", "metricStat": {"metric": metric}}]
        alarm = {"source": "aws.cloudwatch", "alarmArn": _ALARM_ARN}
        return self.serve(alarm | {"alarmData": {"configuration": {"metrics": metrics}}})

    def serve(
        self,
        event: dict[str, Any],
        seconds: float = 300.0,
        options: Options | None = None,
        region_of: Callable[[str | None], Any] | None = None,
    ) -> RunOutcome:
        """Serve an event, which is of the present time if it says no other, with so many seconds for it."""
        scaler = Scaler(
            options or self.options,
            region_of=region_of or self.region_of,
            hand_on=self.handed_on.append,
            kept=self.kept,
            pause=lambda seconds: self.advance(timedelta(seconds=math.ceil(seconds))),
        )
        return scaler.serve({"time": self.now().isoformat()} | event, lambda: seconds)

    def changes(self) -> list[str]:
        """The calls of this region that change something."""
        changing = ("RegisterScalableTarget", "UpdateTable", "PutMetricAlarm")
        return [operation for operation in self.wire.operations if operation in changing]
