"""Tables of a scaler in a local cloud, for the commands of tests/cli; the scaler itself runs on `tests.memory_aws`."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import boto3

from highwater.core import Dimension, Plan
from highwater.core.names import ALARM_PREFIX, TargetName, plan_parameter
from highwater.handlers.scaler.run import Options
from highwater_lab.local import LocalCloud
from tests.memory_aws.stage import MINUTE, PLAN

_numbers = itertools.count(1)
# 98 write units
_ITEM = "x" * 99_900


@dataclass
class Stage:
    """A cloud with tables that the scaler looks after, in one region; *home* is the scaler's, where plans are kept."""

    cloud: LocalCloud
    clients: dict[str, Any] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    region: str | None = None
    home: Stage | None = None

    def client(self, service: str) -> Any:
        if service not in self.clients:
            make: Any = boto3.client
            there = {} if self.region is None else {"region_name": self.region}
            self.clients[service] = make(service, **self.cloud.client_arguments() | there)
        return self.clients[service]

    def elsewhere(self, region: str) -> Stage:
        """The same cloud in another region."""
        return Stage(self.cloud, region=region, home=self)

    def table(self, plan: Plan | None = PLAN, mode: str = "floor", units: tuple[int, int] = (7, 12)) -> str:
        """A provisioned table; with a plan that is stored, its targets registered in FLOOR mode, its alarms put."""
        # metrics outlive their tables, so no name comes twice; all are of one width, as tables of a terminal are tested
        name = f"orders-{next(_numbers):03}"
        self.made.append(name)
        self.client("dynamodb").create_table(
            TableName=name,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            ProvisionedThroughput={"ReadCapacityUnits": units[0], "WriteCapacityUnits": units[1]},
        )
        if plan is None:
            return name
        self.store(name, json.dumps({"mode": mode, "plan": plan.to_document()}))
        for target in plan.targets():
            target_name = TargetName(name, target.index, target.dimension)
            if mode == "floor":
                self.register(target_name, int(target.capacity.min_capacity), int(target.capacity.max_capacity))
            self.client("cloudwatch").put_metric_alarm(
                AlarmName=target_name.alarm,
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
        (self.home or self).client("ssm").put_parameter(
            Name=plan_parameter(Options().name, table, self.region), Type="String", Value=value, Overwrite=True
        )

    def register(self, name: TargetName, low: int, high: int, **more: Any) -> None:
        self.client("application-autoscaling").register_scalable_target(
            ServiceNamespace="dynamodb",
            ResourceId=name.resource_id,
            ScalableDimension=name.scalable_dimension,
            MinCapacity=low,
            MaxCapacity=high,
            **more,
        )

    def add_index(self, table: str, name: str) -> None:
        """Add an index of 3 read and 4 write units to a table."""
        attribute = name.rpartition("-")[2]
        self.client("dynamodb").update_table(
            TableName=table,
            AttributeDefinitions=[{"AttributeName": each, "AttributeType": "S"} for each in ("pk", attribute)],
            GlobalSecondaryIndexUpdates=[
                {
                    "Create": {
                        "IndexName": name,
                        "KeySchema": [{"AttributeName": attribute, "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "ALL"},
                        "ProvisionedThroughput": {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4},
                    }
                }
            ],
        )

    def tag(self, table: str, **tags: str) -> None:
        """Put tags of the scaler on a table: `read_min` is `highwater:read-min`."""
        dynamodb = self.client("dynamodb")
        arn = dynamodb.describe_table(TableName=table)["Table"]["TableArn"]
        pairs = [{"Key": f"highwater:{key.replace('_', '-')}", "Value": value} for key, value in tags.items()]
        dynamodb.tag_resource(ResourceArn=arn, Tags=pairs)

    def bounds(self, table: str, dimension: Dimension = Dimension.WRITE, index: str | None = None) -> tuple[int, int]:
        name = TargetName(table, index, dimension)
        found = self.client("application-autoscaling").describe_scalable_targets(
            ServiceNamespace="dynamodb", ResourceIds=[name.resource_id], ScalableDimension=name.scalable_dimension
        )["ScalableTargets"][0]
        return found["MinCapacity"], found["MaxCapacity"]

    def capacity(self, table: str) -> tuple[int, int]:
        throughput = self.client("dynamodb").describe_table(TableName=table)["Table"]["ProvisionedThroughput"]
        return throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]

    def write(self, table: str, items: int) -> None:
        """Write so many items of 98 units in one minute of the cloud, one a second, which begins now."""
        now = self.cloud.status().now
        self.cloud.advance(now.replace(second=1, microsecond=0) + MINUTE - now)
        for number in range(items):
            self.client("dynamodb").put_item(TableName=table, Item={"pk": {"S": str(number)}, "x": {"S": _ITEM}})
            self.cloud.step(1)

    def now(self) -> datetime:
        return self.cloud.status().now

    def forget(self) -> None:
        """Delete what was made, and close the clients."""
        cloudwatch = self.client("cloudwatch")
        found = cloudwatch.describe_alarms(AlarmNamePrefix=ALARM_PREFIX)["MetricAlarms"]
        if found:
            cloudwatch.delete_alarms(AlarmNames=[alarm["AlarmName"] for alarm in found])
        autoscaling = self.client("application-autoscaling")
        for target in autoscaling.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"]:
            named = {key: target[key] for key in ("ServiceNamespace", "ResourceId", "ScalableDimension")}
            autoscaling.deregister_scalable_target(**named)
        stored = [plan_parameter(Options().name, name, self.region) for name in self.made]
        for start in range(0, len(stored), 10):
            (self.home or self).client("ssm").delete_parameters(Names=stored[start : start + 10])
        for name in self.made:
            self.client("dynamodb").delete_table(TableName=name)
        for one in self.clients.values():
            one.close()
