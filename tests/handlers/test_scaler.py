"""The scaler's function against the local cloud: real boto3 over HTTP, real metrics of real writes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import boto3
import pytest

from highwater.aws.alarms import alarm_name
from highwater.aws.autoscaling import TargetName
from highwater.core import Capacity, Dimension, Plan, Window
from highwater.core.scaler_schedule import is_full_tick
from highwater.handlers import scaler
from highwater_lab.local import LocalCloud

pytestmark = pytest.mark.xdist_group("cloud-scaler")
_numbers = itertools.count(1)
MINUTE = timedelta(minutes=1)
# 98 write units
_ITEM = "x" * 99_900
_PLAN = Plan(read=Capacity.autoscaled(min=7, max=900), write=Capacity.autoscaled(min=12, max=400))


@dataclass
class Context:
    """What Lambda gives a function."""

    seconds: float = 300.0

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


@dataclass
class Stage:
    """A cloud with tables that the scaler looks after."""

    cloud: LocalCloud
    handed_on: list[dict[str, Any]]
    clients: dict[str, Any] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)

    def client(self, service: str) -> Any:
        if service not in self.clients:
            make: Any = boto3.client
            self.clients[service] = make(service, **self.cloud.client_arguments())
        return self.clients[service]

    def table(self, plan: Plan = _PLAN, mode: str = "floor", units: tuple[int, int] = (7, 12)) -> str:
        """A provisioned table with its plan stored, its targets registered in FLOOR mode, its alarms put."""
        # metrics outlive their tables: no name comes twice
        name = f"orders-{next(_numbers)}"
        self.made.append(name)
        self.client("dynamodb").create_table(
            TableName=name,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            ProvisionedThroughput={"ReadCapacityUnits": units[0], "WriteCapacityUnits": units[1]},
        )
        self.store(name, json.dumps({"mode": mode, "plan": plan.to_document()}))
        for target in plan.targets():
            target_name = TargetName(name, target.index, target.dimension)
            if mode == "floor":
                self.register(target_name, int(target.capacity.min), int(target.capacity.max))
            self.client("cloudwatch").put_metric_alarm(
                AlarmName=alarm_name(target_name),
                Namespace="AWS/DynamoDB",
                MetricName=f"Consumed{target.dimension.title()}CapacityUnits",
                Dimensions=[{"Name": "TableName", "Value": name}],
                Statistic="Sum",
                Period=60,
                EvaluationPeriods=1,
                Threshold=3.0,
                ComparisonOperator="GreaterThanThreshold",
                AlarmActions=["arn:aws:sns:us-east-1:000000000000:nobody"],
                TreatMissingData="ignore",
            )
        return name

    def store(self, table: str, value: str) -> None:
        self.client("ssm").put_parameter(Name=f"/highwater/plans/{table}", Type="String", Value=value, Overwrite=True)

    def register(self, name: TargetName, low: int, high: int, **more: Any) -> None:
        self.client("application-autoscaling").register_scalable_target(
            ServiceNamespace="dynamodb",
            ResourceId=name.resource_id,
            ScalableDimension=name.scalable_dimension,
            MinCapacity=low,
            MaxCapacity=high,
            **more,
        )

    def bounds(self, table: str, dimension: Dimension = Dimension.WRITE) -> tuple[int, int]:
        name = TargetName(table, None, dimension)
        found = self.client("application-autoscaling").describe_scalable_targets(
            ServiceNamespace="dynamodb", ResourceIds=[name.resource_id], ScalableDimension=name.scalable_dimension
        )["ScalableTargets"][0]
        return found["MinCapacity"], found["MaxCapacity"]

    def capacity(self, table: str) -> tuple[int, int]:
        throughput = self.client("dynamodb").describe_table(TableName=table)["Table"]["ProvisionedThroughput"]
        return throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]

    def write(self, table: str, items: int) -> None:
        """Write so many items of 98 units in one minute of the cloud, which begins now."""
        now = self.cloud.status().now
        self.cloud.advance(now.replace(second=1, microsecond=0) + MINUTE - now)
        for number in range(items):
            self.client("dynamodb").put_item(TableName=table, Item={"pk": {"S": str(number)}, "x": {"S": _ITEM}})

    def now(self) -> datetime:
        return self.cloud.status().now

    def run(self, *tables: str, context: Context | None = None, **more: Any) -> dict[str, Any]:
        """Run the function for these tables at the cloud's time."""
        event = {"highwater": "tables", "tables": list(tables), "time": self.now().isoformat()} | more
        return scaler.handler(event, context or Context())


@pytest.fixture(scope="module")
def running() -> Iterator[LocalCloud]:
    with LocalCloud(has_instant_updates=True) as cloud:
        yield cloud


@pytest.fixture
def stage(running: LocalCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    for name, value in running.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "the-scaler")
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    handed_on: list[dict[str, Any]] = []
    monkeypatch.setattr(scaler, "_hand_on", handed_on.append)
    made = Stage(running, handed_on)
    yield made
    for name in made.made:
        made.client("ssm").delete_parameter(Name=f"/highwater/plans/{name}")
        for dimension in Dimension:
            target = TargetName(name, None, dimension)
            if made.client("application-autoscaling").describe_scalable_targets(
                ServiceNamespace="dynamodb",
                ResourceIds=[target.resource_id],
                ScalableDimension=target.scalable_dimension,
            )["ScalableTargets"]:
                made.client("application-autoscaling").deregister_scalable_target(
                    ServiceNamespace="dynamodb",
                    ResourceId=target.resource_id,
                    ScalableDimension=target.scalable_dimension,
                )
        made.client("dynamodb").delete_table(TableName=name)
    for one in made.clients.values():
        one.close()


def test_surge_raises_the_floor_holds_it_and_lets_it_fall_to_the_plan(stage: Stage) -> None:
    table = stage.table()
    stage.cloud.advance(40 * MINUTE)
    stage.write(table, 30)
    stage.cloud.advance(4 * MINUTE)
    answer = stage.run(table)
    assert stage.bounds(table) == (49, 400), "30 x 98 units in a minute"
    assert stage.capacity(table) == (7, 49)
    assert [(d["target"], d["current"], d["granted"]) for d in answer["decisions"]] == [("table write", 12, 49)]
    assert answer["decisions"][0]["reason"] == "peak of 49 units/s in the last 30 minutes at 100 %"
    stage.cloud.advance(20 * MINUTE)
    stage.run(table)
    assert stage.bounds(table) == (49, 400)
    stage.cloud.advance(15 * MINUTE)
    stage.run(table)
    assert stage.bounds(table) == (12, 400)


def test_run_again_changes_nothing(stage: Stage) -> None:
    table = stage.table()
    stage.cloud.advance(40 * MINUTE)
    stage.write(table, 20)
    stage.cloud.advance(4 * MINUTE)
    first, second = stage.run(table), stage.run(table)
    assert first["counts"]["FloorsSet"] == 1
    assert "FloorsSet" not in second["counts"]
    assert [told for told in second["decisions"] if told["current"] != told["granted"]] == []


def test_floor_and_ceiling_that_somebody_changed_by_hand_are_healed(stage: Stage) -> None:
    table = stage.table()
    stage.register(TargetName(table, None, Dimension.WRITE), 2, 77)
    stage.run(table)
    assert stage.bounds(table) == (12, 400)


def test_open_window_is_the_baseline(stage: Stage) -> None:
    begun = stage.now() - 10 * MINUTE
    window = Window.once(
        "load",
        start=f"{begun:%Y-%m-%dT%H:%M}",
        end=f"{begun + 60 * MINUTE:%Y-%m-%dT%H:%M}",
        timezone="UTC",
        write_min=333,
    )
    plan = Plan(read=_PLAN.read, write=_PLAN.write, windows=(window,))
    table = stage.table(plan)
    stage.run(table)
    assert stage.bounds(table) == (333, 400)
    assert stage.capacity(table) == (7, 333)


def test_paused_target_is_left_alone(stage: Stage) -> None:
    table = stage.table()
    state = {"DynamicScalingInSuspended": True, "DynamicScalingOutSuspended": True, "ScheduledScalingSuspended": True}
    stage.register(TargetName(table, None, Dimension.WRITE), 2, 400, SuspendedState=state)
    answer = stage.run(table)
    assert stage.bounds(table) == (2, 400)
    assert answer["counts"]["Paused"] == 1


def test_alarm_follows_the_capacity_and_keeps_all_else(stage: Stage) -> None:
    table = stage.table()
    before = _alarm(stage, table)
    stage.run(table)
    after = _alarm(stage, table)
    assert after["Threshold"] == 12 * 60 * 97 // 100
    changing = ("Threshold", "AlarmConfigurationUpdatedTimestamp", "StateUpdatedTimestamp", "StateReason", "StateValue")
    assert {k: v for k, v in after.items() if k not in changing} == {
        k: v for k, v in before.items() if k not in changing
    }


def _alarm(stage: Stage, table: str) -> dict[str, Any]:
    name = alarm_name(TargetName(table, None, Dimension.WRITE))
    found = stage.client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return dict(found[0])


def test_alarm_event_looks_at_its_table_alone(stage: Stage) -> None:
    one, other = stage.table(), stage.table()
    for table in (one, other):
        stage.register(TargetName(table, None, Dimension.WRITE), 2, 400)
    metric = {
        "namespace": "AWS/DynamoDB",
        "name": "ConsumedWriteCapacityUnits",
        "dimensions": {"TableName": one},
    }
    event = {
        "source": "aws.cloudwatch",
        "alarmArn": "arn:aws:cloudwatch:us-east-1:000000000000:alarm:Highwater",
        "time": stage.now().strftime("%Y-%m-%dT%H:%M:%S.000+0000"),
        "alarmData": {"configuration": {"metrics": [{"id": "m1", "metricStat": {"metric": metric}}]}},
    }
    scaler.handler(event, Context())
    assert (stage.bounds(one), stage.bounds(other)) == ((12, 400), (2, 400))


def test_tick_looks_at_targets_in_their_minute_and_at_those_in_alarm(stage: Stage) -> None:
    table = stage.table()
    name = TargetName(table, None, Dimension.WRITE)
    stage.run(table)
    stage.cloud.advance(10 * MINUTE)
    minute = next(
        at
        for at in (stage.now() + number * MINUTE for number in range(10))
        if not is_full_tick(f"{name.resource_id} {name.dimension}", int(at.timestamp()) // 60)
    )
    stage.register(name, 2, 400)
    scaler.handler({"highwater": "tick", "time": minute.isoformat()}, Context())
    assert stage.bounds(table) == (2, 400), "it is not its minute"
    stage.client("cloudwatch").set_alarm_state(AlarmName=alarm_name(name), StateValue="ALARM", StateReason="a test")
    scaler.handler({"highwater": "tick", "time": minute.isoformat()}, Context())
    assert stage.bounds(table) == (12, 400)


def test_direct_mode_moves_capacity_itself_and_never_beside_auto_scaling(stage: Stage) -> None:
    table = stage.table(mode="direct", units=(7, 500))
    stage.cloud.advance(40 * MINUTE)
    now = stage.now()
    stage.cloud.advance((now + 60 * MINUTE).replace(minute=53, second=0) - now)
    stage.run(table)
    assert stage.capacity(table) == (7, 12)
    stage.register(TargetName(table, None, Dimension.WRITE), 2, 900)
    stage.client("dynamodb").update_table(
        TableName=table, ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 450}
    )
    stage.run(table)
    assert stage.capacity(table) == (7, 450)


def test_failing_table_goes_alone_into_another_run_and_then_to_the_queue(stage: Stage) -> None:
    whole, gone = stage.table(), stage.table()
    stage.register(TargetName(whole, None, Dimension.WRITE), 2, 400)
    stage.client("dynamodb").delete_table(TableName=gone)
    answer = stage.run(whole, gone)
    assert stage.bounds(whole) == (12, 400)
    assert answer["failed"] == {gone: f"TableNotFoundError: Requested resource not found: Table: {gone} not found"}
    again = stage.handed_on.pop()
    assert (again["tables"], again["attempt"]) == ([gone], 1)
    scaler.handler(again, Context())
    last = stage.handed_on.pop()
    with pytest.raises(scaler.TargetsFailedError, match=f"^{gone}: TableNotFoundError: Requested resource not found"):
        scaler.handler(last, Context())
    stage.client("dynamodb").create_table(
        TableName=gone,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def test_what_does_not_fit_into_the_time_is_handed_on(stage: Stage) -> None:
    table = stage.table()
    stage.register(TargetName(table, None, Dimension.WRITE), 2, 400)
    answer = stage.run(table, context=Context(seconds=14.0))
    assert (answer["left"], stage.bounds(table)) == ([table], (2, 400))
    scaler.handler(stage.handed_on.pop(), Context())
    assert stage.bounds(table) == (12, 400)


def test_dry_run_says_what_it_would_do(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIGHWATER_DRY_RUN", "true")
    table = stage.table()
    stage.register(TargetName(table, None, Dimension.WRITE), 2, 400)
    answer = stage.run(table)
    assert stage.bounds(table) == (2, 400)
    assert [(d["granted"], d["dry_run"]) for d in answer["decisions"]] == [(12, True)]


def test_plan_that_cannot_be_read_hides_no_other(stage: Stage) -> None:
    table, broken = stage.table(), stage.table()
    stage.store(broken, '{"mode": "sideways"}')
    stage.register(TargetName(table, None, Dimension.WRITE), 2, 400)
    answer = stage.run(table)
    assert answer["counts"]["UnreadablePlans"] == 1
    assert stage.bounds(table) == (12, 400)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({}, "event must be an alarm or say highwater: tick or tables, got {}"),
        ({"highwater": "tick", "time": "noon"}, "time must be an instant such as 2027-03-04T05:06:07Z, got 'noon'"),
        ({"highwater": "tick", "time": "2027-03-04T05:06:07"}, "time must have a zone, got '2027-03-04T05:06:07'"),
        ({"highwater": "tables", "tables": "orders"}, "tables must be a list of names, got 'orders'"),
        ({"highwater": "tables", "attempt": "1"}, "attempt must be a whole number, got '1'"),
        (
            {"source": "aws.cloudwatch", "alarmArn": "arn:of-another"},
            "alarm 'arn:of-another' is on no consumption of a table or index",
        ),
    ],
)
def test_event_that_is_none_is_refused(event: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole message is below
        scaler.handler(event, Context())
    assert str(refused.value) == message
