"""The clients of one region that the scaler, the coordinator and commands call AWS with."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from highwater.aws import autoscaling as targets
from highwater.aws import cloudwatch as metrics
from highwater.aws import parameters, tables, tags
from highwater.aws.cloudwatch import DatapointRate

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_resourcegroupstaggingapi import ResourceGroupsTaggingAPIClient
    from mypy_boto3_ssm import SSMClient


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
