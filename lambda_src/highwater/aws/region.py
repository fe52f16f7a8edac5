"""The clients of one region that the scaler, the coordinator and commands call AWS with; and stacks' operations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import boto3

from highwater.aws import autoscaling as targets
from highwater.aws import cloudwatch as metrics
from highwater.aws import parameters, tables, tags
from highwater.aws.cloudwatch import DatapointRate
from highwater.calls.attempts import RARE, client_config

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_resourcegroupstaggingapi import ResourceGroupsTaggingAPIClient
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


class AwsRegion:
    """The clients of one region, each made once, for the functions of this folder. Several threads may share them.

    Args:
        name: The region. By default the region of the environment.
        dynamodb: The client to use for tables. By default a new one.
        autoscaling: The client to use for targets. By default a new one.
        cloudwatch: The client to use for metrics and alarms. By default a new one.
        rate: Spaces the calls of GetMetricData. By default by the machine's clock.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        dynamodb: DynamoDBClient | None = None,
        autoscaling: ApplicationAutoScalingClient | None = None,
        cloudwatch: CloudWatchClient | None = None,
        rate: DatapointRate | None = None,
    ) -> None:
        self.name = name
        self.dynamodb = dynamodb or tables.client(name)
        self.autoscaling = autoscaling or targets.client(name)
        self.cloudwatch = cloudwatch or metrics.client(name)
        self.rate = rate or DatapointRate()

    @cached_property
    def ssm(self) -> SSMClient:
        """The client for the plans, which only the scaler's own region has."""
        return parameters.client(self.name)

    @cached_property
    def tagging(self) -> ResourceGroupsTaggingAPIClient:
        """The client for the tags of tables and functions."""
        return tags.client(self.name)
