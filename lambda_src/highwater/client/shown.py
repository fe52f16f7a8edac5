"""What a table shows to background work: its capacity, how it is scaled, and what it and its indexes consumed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from highwater.client.paced_work import PacedWorkError, describe_table
from highwater.core.names import TargetName
from highwater.core.units import Dimension

_LOG: Final = logging.getLogger("highwater.pace")
_MINUTES: Final = 10


@dataclass(frozen=True, slots=True)
class Scaling:
    """How auto scaling keeps a table or index; `None` for what it does not, or nobody may ask.

    Attributes:
        ceiling: The most units per second that it provisions.
        target_percent: The utilization that it aims at.
    """

    ceiling: int | None = None
    target_percent: int | None = None


@dataclass(slots=True, kw_only=True)
class TableShows:
    """Asks DynamoDB, Application Auto Scaling and CloudWatch about one dimension of a table and its indexes.

    Whatever the caller may not ask is left out, and told once.

    Attributes:
        table: The table's name.
        dimension: READ or WRITE.
        client: A DynamoDB client.
        session: The boto3 session that makes the other clients. By default a new one.
    """

    table: str
    dimension: Dimension
    client: Any
    session: Any = None
    _untold: set[str] = field(default_factory=lambda: {"application-autoscaling", "cloudwatch"})
    _clients: dict[str, Any] = field(default_factory=dict)

    def provisioned(self, index: str | None = None) -> dict[str | None, int]:
        """Units per second of the targets that requests draw on: writes of the table on its indexes too.

        Reads draw on the table, or on *index* alone. Raises `PacedWorkError` for a table that is on demand, or cannot
        be described.
        """
        described = describe_table(self.client, self.table, "pace")
        name = f"{self.dimension.title()}CapacityUnits"
        found: dict[str | None, int] = {None: int(described["ProvisionedThroughput"][name])}
        found |= {
            each["IndexName"]: int(each["ProvisionedThroughput"][name])
            for each in described.get("GlobalSecondaryIndexes", ())
        }
        if not found[None]:
            raise PacedWorkError(
                f"pace: table {self.table!r} is on demand and has no provisioned capacity to go by; give units per "
                "second, and begin with them"
            )
        if self.dimension is Dimension.WRITE:
            # an index that is being built may have none yet
            return {key: units for key, units in found.items() if units}
        # a local index reads from the table's capacity
        return {index: found[index]} if index in found else {None: found[None]}

    def scaling(self, index: str | None) -> Scaling:
        """How auto scaling keeps a target."""
        name = TargetName(self.table, index, self.dimension)
        asked: Any = {"ServiceNamespace": "dynamodb", "ScalableDimension": name.scalable_dimension}
        try:
            client = self._client("application-autoscaling")
            targets = client.describe_scalable_targets(ResourceIds=[name.resource_id], **asked)["ScalableTargets"]
            policies = client.describe_scaling_policies(ResourceId=name.resource_id, **asked)["ScalingPolicies"]
        except (ClientError, BotoCoreError) as error:
            self._tell("application-autoscaling", "how it is scaled is not known", error)
            return Scaling()
        tracking = [each["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] for each in policies]
        return Scaling(
            int(targets[0]["MaxCapacity"]) if targets else None, round(float(tracking[0])) if tracking else None
        )

    def consumed(self, index: str | None, now: float) -> Mapping[int, float] | None:
        """Units that a target consumed in each of the last ten minutes that CloudWatch has, by minutes since 1970.

        `None` where nobody may ask.
        """
        dimensions = [{"Name": "TableName", "Value": self.table}]
        if index is not None:
            dimensions.append({"Name": "GlobalSecondaryIndexName", "Value": index})
        metric = {
            "Namespace": "AWS/DynamoDB",
            "MetricName": f"Consumed{self.dimension.title()}CapacityUnits",
            "Dimensions": dimensions,
        }
        end = int(now) // 60 * 60
        query: Any = {"Id": "consumed", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}
        try:
            answer = self._client("cloudwatch").get_metric_data(
                MetricDataQueries=[query],
                StartTime=datetime.fromtimestamp(end - _MINUTES * 60, UTC),
                EndTime=datetime.fromtimestamp(end, UTC),
            )
        except (ClientError, BotoCoreError) as error:
            self._tell("cloudwatch", "what others consume is not known", error)
            return None
        (found,) = answer["MetricDataResults"]
        return {
            int(at.timestamp()) // 60: float(value)
            for at, value in zip(found["Timestamps"], found["Values"], strict=False)
        }

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            region = self.client.meta.region_name
            session: Any = self.session or boto3.Session()
            self._clients[service] = session.client(service, region_name=region)
        return self._clients[service]

    def _tell(self, service: str, what: str, error: Exception) -> None:
        if service in self._untold:
            self._untold.discard(service)
            _LOG.info("%s: %s: %s", self.table, what, error)
