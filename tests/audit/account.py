"""A local cloud's account with tables that have known faults, and some that have none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import boto3

from highwater.core import Capacity, Plan
from highwater.core.scaler import Mode, ScaledPlan
from highwater_lab.local import LocalCloud

KEY: Final = [{"AttributeName": "pk", "KeyType": "HASH"}]
Rate = Callable[[int], float]


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A table, and what is asked of it.

    Attributes:
        read: Provisioned units, or floor, ceiling and target of auto scaling; `None` on demand.
        write: Likewise.
        rates: By index (`None` for the table) and dimension, units per second of each minute since the beginning.
        index: The capacity of an index `by_owner`, likewise; `None` for no index.
        throttled: Write throttle events of each minute.
        kind: The finding that is planted, `None` for none.
    """

    read: int | tuple[int, int, int] | None
    write: int | tuple[int, int, int] | None
    rates: Mapping[tuple[str | None, str], Rate]
    index: tuple[int, int] | None = None
    throttled: Rate | None = None
    kind: str | None = None


def flat(rate: float) -> Rate:
    """The same rate all day."""
    return lambda _: rate


def wave(low: float, high: float) -> Rate:
    """A rate that rises until noon and falls until midnight."""
    return lambda minute: low + (high - low) * (1 - abs(minute % 1440 / 720 - 1))


def hours(rate: float, first: int, last: int, base: float = 0.0) -> Rate:
    """A rate from one hour of the day until another, and a base rate otherwise."""
    return lambda minute: rate if first * 60 <= minute % 1440 < last * 60 else base


def bursts(rate: float) -> Rate:
    """A rate for ten minutes of each day, at another time every day."""
    return lambda minute: rate if minute % 1440 // 10 == minute // 1440 * 61 % 144 else 0.0


FAULTS: Final[dict[str, Planted]] = {
    "steady": Planted(read=None, write=None, rates={(None, "Write"): flat(400)}, kind="mode"),
    "bursty": Planted(read=9, write=300, rates={(None, "Write"): bursts(900)}, kind="mode"),
    "idle-but-paid": Planted(read=6, write=800, rates={}, kind="mode"),
    "oversized": Planted(
        read=7, write=2_000, rates={(None, "Write"): wave(150, 300), (None, "Read"): flat(4)}, kind="waste"
    ),
    "nightly": Planted(read=8, write=1_700, rates={(None, "Write"): hours(1_500, 2, 4, 230)}, kind="windows"),
    "starved": Planted(
        read=5, write=100, rates={(None, "Write"): hours(100, 8, 20, 30)}, throttled=hours(900, 8, 20), kind="throttles"
    ),
    "hot": Planted(read=5, write=40, rates={(None, "Write"): flat(15)}, throttled=flat(2), kind="throttles"),
    "half-scaled": Planted(
        read=(5, 50, 70),
        write=(20, 400, 70),
        rates={(None, "Write"): wave(10, 60), ("by_owner", "Write"): wave(10, 60)},
        index=(5, 60),
        kind="no scaling",
    ),
}
SOUND: Final[dict[str, Planted]] = {
    "scaled": Planted(
        read=(5, 300, 70), write=(70, 600, 70), rates={(None, "Write"): wave(60, 120), (None, "Read"): flat(20)}
    ),
    "small": Planted(read=5, write=11, rates={(None, "Write"): flat(1)}),
    "small-idle": Planted(read=5, write=5, rates={}),
    "seldom": Planted(read=None, write=None, rates={(None, "Write"): hours(300, 9, 10)}),
}


def put_alarm(cloudwatch: Any, table: str) -> None:
    """Create a scaler's alarm on the writes of a table, whether it is there or not."""
    cloudwatch.put_metric_alarm(
        AlarmName=f"Highwater {table} write",
        Namespace="AWS/DynamoDB",
        MetricName="ConsumedWriteCapacityUnits",
        Dimensions=[{"Name": "TableName", "Value": table}],
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=500,
        ComparisonOperator="GreaterThanThreshold",
    )


def plant_deviations(cloud: LocalCloud, region: str) -> None:
    """Plant in a region what table `gone` left, and what of `kept` its scaler's plan does not say; nothing else."""
    arguments: Any = cloud.client_arguments() | {"region_name": region}
    make: Any = boto3.client
    services = ("dynamodb", "application-autoscaling", "cloudwatch", "ssm", "sqs")
    clients = {name: make(name, **arguments) for name in services}
    autoscaling = clients["application-autoscaling"]
    for name in ("gone", "kept"):
        create_table(
            clients["dynamodb"], name, ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 60}
        )
    for name, kind, least, most in (("gone", "Write", 7, 70), ("kept", "Write", 60, 64), ("kept", "Read", 5, 50)):
        target = {
            "ServiceNamespace": "dynamodb",
            "ResourceId": f"table/{name}",
            "ScalableDimension": f"dynamodb:table:{kind}CapacityUnits",
        }
        autoscaling.register_scalable_target(**target, MinCapacity=least, MaxCapacity=most)
        metric = {"PredefinedMetricType": f"DynamoDB{kind}CapacityUtilization"}
        autoscaling.put_scaling_policy(
            **target,
            PolicyName="target-tracking",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={"TargetValue": 70.0, "PredefinedMetricSpecification": metric},
        )
    capacity = Capacity.autoscaled(min_capacity=5, max_capacity=50)
    for name in ("gone", "kept"):
        put_alarm(clients["cloudwatch"], name)
        plan = ScaledPlan(table=name, mode=Mode.FLOOR, plan=Plan(read=capacity, write=capacity))
        clients["ssm"].put_parameter(Name=f"/highwater/plans/Shop/{name}", Value=plan.to_json(), Type="String")
    clients["sqs"].create_queue(QueueName="gone-writes", tags={"highwater:buffers": "gone"})
    clients["dynamodb"].delete_table(TableName="gone")
    for client in clients.values():
        client.close()


def plant(cloud: LocalCloud, tables: Mapping[str, Planted], days: int) -> None:
    """Create the tables, let *days* pass, and put what they consumed and throttled meanwhile into CloudWatch."""
    clients = [cloud.client(name) for name in ("dynamodb", "application-autoscaling", "cloudwatch")]
    dynamodb, autoscaling, cloudwatch = clients
    begun = cloud.status().now
    for name, table in tables.items():
        _create(dynamodb, autoscaling, name, table)
    cloud.advance(timedelta(days=days, minutes=10))
    for name, table in tables.items():
        _fill(cloudwatch, name, table, begun, days)
    for client in clients:
        client.close()


def create_table(dynamodb: Any, name: str, **more: Any) -> None:
    """Create a table with a key `pk`."""
    attributes = [{"AttributeName": "pk", "AttributeType": "S"}]
    dynamodb.create_table(TableName=name, KeySchema=KEY, AttributeDefinitions=attributes, **more)


def _create(dynamodb: Any, autoscaling: Any, name: str, table: Planted) -> None:
    more: dict[str, Any] = {"BillingMode": "PAY_PER_REQUEST"}
    if table.read is not None and table.write is not None:
        units = [each if isinstance(each, int) else each[0] for each in (table.read, table.write)]
        more = {"ProvisionedThroughput": dict(zip(("ReadCapacityUnits", "WriteCapacityUnits"), units, strict=True))}
    if table.index is not None:
        throughput = dict(zip(("ReadCapacityUnits", "WriteCapacityUnits"), table.index, strict=True))
        index = {"IndexName": "by_owner", "KeySchema": KEY, "Projection": {"ProjectionType": "ALL"}}
        more["GlobalSecondaryIndexes"] = [{**index, "ProvisionedThroughput": throughput}]
    create_table(dynamodb, name, **more)
    for kind, bounds in (("Read", table.read), ("Write", table.write)):
        if not isinstance(bounds, tuple):
            continue
        target = {
            "ServiceNamespace": "dynamodb",
            "ResourceId": f"table/{name}",
            "ScalableDimension": f"dynamodb:table:{kind}CapacityUnits",
        }
        autoscaling.register_scalable_target(**target, MinCapacity=bounds[0], MaxCapacity=bounds[1])
        metric = {"PredefinedMetricType": f"DynamoDB{kind}CapacityUtilization"}
        autoscaling.put_scaling_policy(
            **target,
            PolicyName="follow",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": bounds[2],
                "PredefinedMetricSpecification": metric,
            },
        )


def _fill(cloudwatch: Any, name: str, table: Planted, begun: datetime, days: int) -> None:
    series = {(index, f"Consumed{kind}CapacityUnits"): (rate, 60) for (index, kind), rate in table.rates.items()}
    if table.throttled is not None:
        series[None, "WriteThrottleEvents"] = (table.throttled, 1)
    for (index, metric), (rate, factor) in series.items():
        dimensions = [{"Name": "TableName", "Value": name}]
        if index is not None:
            dimensions.append({"Name": "GlobalSecondaryIndexName", "Value": index})
        data = [
            {
                "MetricName": metric,
                "Dimensions": dimensions,
                "Timestamp": begun + timedelta(minutes=minute),
                "Value": value * factor,
            }
            for minute in range(days * 1440 + 10)
            if (value := rate(minute))
        ]
        for start in range(0, len(data), 1_000):
            cloudwatch.put_metric_data(Namespace="AWS/DynamoDB", MetricData=data[start : start + 1_000])
