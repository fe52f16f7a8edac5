"""The AWS services of one region that the scaler and deploys read and change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import boto3

from highwater.aws import autoscaling, cloudwatch, parameters, tables, tags
from highwater.aws.autoscaling import RegisteredTargets
from highwater.aws.cloudwatch import DatapointRate, TargetAlarm
from highwater.aws.parameters import ScaledPlans
from highwater.aws.tables import DescribedTable
from highwater.calls.attempts import RARE, client_config
from highwater.core.names import TargetName
from highwater.core.plan.plan import Target
from highwater.core.plan.zones import MINUTES_PER_DAY
from highwater.core.scaler.inputs import Observation
from highwater.core.schedule.bounds import Bounds
from highwater.core.units import Units

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_ssm import SSMClient


def client() -> CloudFormationClient:
    """Create a client that retries throttled calls up to seven times, and tells in which mode a stack is deployed."""
    made = boto3.client("cloudformation", config=client_config(RARE))
    made.meta.events.register("before-parse.cloudformation.DescribeStacks", _note_mode)
    return made


_IS_EXPRESS: Final = "HighwaterIsExpress"


def _note_mode(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Note from the raw answer whether the operation is in express mode: the boto3 of Lambda's runtime may not know.

    botocore adds what is noted to the parsed answer, and leaves out the members that its model lacks: that has
    `DeploymentConfig` from version 1.43.60 on, at the latest (looked at 1.43.11 and 1.43.60, 2026-11).
    """
    customized_response_dict[_IS_EXPRESS] = b"<Mode>EXPRESS</Mode>" in response_dict["body"]


@dataclass(frozen=True, slots=True)
class StackState:
    """A stack, and its last operation.

    Attributes:
        status: Its status, such as `UPDATE_ROLLBACK_IN_PROGRESS`.
        updated: The time at which its last update began, as text; empty for a stack that was never updated.
        began: The time at which its last operation began, its creation or an update; `None` if the answer does not say.
        is_express: Whether that operation is in express mode, in which rollback is off by default.
    """

    status: str
    updated: str
    is_express: bool
    began: datetime | None = None


def read_stack(cloudformation: CloudFormationClient, stack_id: str) -> StackState:
    """Read the state of a stack."""
    answer: Any = cloudformation.describe_stacks(StackName=stack_id)
    found = answer["Stacks"][0]
    updated = found.get("LastUpdatedTime")
    began = updated or found.get("CreationTime")
    return StackState(str(found["StackStatus"]), str(updated or ""), bool(answer.get(_IS_EXPRESS)), began)


@dataclass(frozen=True, slots=True)
class Clients:
    """The AWS clients for one region. Several threads may share boto3 clients."""

    dynamodb: DynamoDBClient
    autoscaling: ApplicationAutoScalingClient
    cloudwatch: CloudWatchClient

    @classmethod
    def of(cls, region: str | None) -> Clients:
        """Create clients for *region*, `None` for the region of the environment."""
        return cls(tables.client(region), autoscaling.client(region), cloudwatch.client(region))


class AwsRegion:
    """The tables, targets, metrics, alarms and plans of one region.

    Args:
        name: The region. By default the region of the environment.
        clients: The AWS clients to use. By default new ones.
        rate: Spaces the calls of GetMetricData. By default by the machine's clock.
    """

    def __init__(
        self, name: str | None = None, clients: Clients | None = None, rate: DatapointRate | None = None
    ) -> None:
        self.name = name
        self.clients = clients or Clients.of(name)
        self._datapoints = rate or DatapointRate()

    @cached_property
    def ssm(self) -> SSMClient:
        """The client for the plans, which only the scaler's own region has."""
        return parameters.client(self.name)

    def read_plans(self, scaler: str | None = None) -> ScaledPlans:
        """Read the plans of *scaler*, by default of all. An unreadable plan does not affect the others."""
        return parameters.read_plans(self.ssm, scaler)

    def read_plans_of(self, scaler: str, labels: Iterable[str]) -> ScaledPlans:
        """Read the plans of the tables with these labels; a table without a plan of *scaler* is left out."""
        return parameters.read_plans_of(self.ssm, scaler, labels)

    def read_tagged_plans(self) -> ScaledPlans:
        """Read the plans of tables that have the tag `highwater:managed`."""
        return tags.read_tagged_plans(tags.client(self.name), self.name)

    def read_tagged_scalers(self) -> tuple[str, ...]:
        """Read the names of the functions whose scalers manage the tagged tables of this region."""
        return tags.read_tagged_scalers(tags.client(self.name))

    def read_alarms(self, names: Iterable[TargetName] | None = None) -> Mapping[TargetName, TargetAlarm]:
        """Read the alarms of the targets *names*, by default the alarms of all scalers."""
        return cloudwatch.read_alarms(self.clients.cloudwatch, names)

    def read_targets(self, names: Iterable[TargetName]) -> RegisteredTargets:
        """Read the bounds and suspensions of the targets, and the service's time."""
        return autoscaling.read_targets(self.clients.autoscaling, names)

    def read_failures(self, names: Iterable[TargetName], now: datetime) -> Mapping[TargetName, str]:
        """Read why auto scaling could not set the capacity of targets, of those where it could not in the last hour."""
        return autoscaling.read_failures(self.clients.autoscaling, names, now)

    def read_consumption(
        self, names: Iterable[TargetName], minutes: int, now: datetime
    ) -> Mapping[TargetName, Observation]:
        """Read the units that each target consumed in the last whole *minutes* before *now*.

        Waits if too many datapoints of this region were requested in the last seconds.
        """
        wanted = list(names)
        self._datapoints.wait_for(len(wanted) * minutes)
        return cloudwatch.read_consumption(self.clients.cloudwatch, wanted, minutes, now)

    def with_throttles(
        self, consumed: Mapping[TargetName, Observation], minutes: int, now: datetime
    ) -> Mapping[TargetName, Observation]:
        """Return the observations *consumed* with the throttles of the last *minutes*."""
        return cloudwatch.with_throttles(self.clients.cloudwatch, consumed, minutes, now)

    def count_throttles(self, names: Iterable[TargetName], minutes: int, now: datetime) -> Mapping[TargetName, int]:
        """Count the throttle events of each target in the last whole *minutes* before *now*."""
        return cloudwatch.count_throttles(self.clients.cloudwatch, names, minutes, now)

    def with_past(
        self, seen: Mapping[TargetName, Observation], targets: Mapping[TargetName, Target], now: datetime
    ) -> Mapping[TargetName, Observation]:
        """Return the observations *seen* with the burst and the regret that the last day justifies.

        Waits if too many datapoints of this region were requested in the last seconds.
        """
        metrics = sum(2 if len(each.consumed_units) >= MINUTES_PER_DAY else 3 for each in seen.values())
        self._datapoints.wait_for(metrics * MINUTES_PER_DAY)
        return cloudwatch.with_past(self.clients.cloudwatch, seen, targets, now)

    def describe_table(self, table: str) -> DescribedTable:
        """Read the table's capacities, decreases and last increases; raises the errors of `aws.tables`."""
        return tables.describe_table(self.clients.dynamodb, table)

    def set_bounds(self, name: TargetName, bounds: Bounds) -> None:
        """Set a target's floor and ceiling; raises the errors of `aws.tables`."""
        tables.translating(partial(autoscaling.set_bounds, self.clients.autoscaling, name, bounds))

    def set_bounds_patiently(self, name: TargetName, bounds: Bounds) -> None:
        """Set a target's floor and ceiling; wait up to 15 seconds if the target is being updated, and then raise."""
        tables.translating(partial(autoscaling.set_bounds_patiently, self.clients.autoscaling, name, bounds))

    def set_capacity(self, table: str, index: str | None, units: Units) -> None:
        """Provision units for the table or an index; raises the errors of `aws.tables`."""
        tables.set_capacity(self.clients.dynamodb, table, index, units)

    def move_threshold(self, alarm: TargetAlarm, threshold: int) -> None:
        """Set the alarm's threshold, in units consumed in a minute; raises the errors of `aws.tables`."""
        tables.translating(partial(cloudwatch.move_threshold, self.clients.cloudwatch, alarm, threshold))
