"""The status of a CloudFormation stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


def client() -> CloudFormationClient:
    """Create a client that retries throttled calls up to seven times."""
    config = Config(retries={"mode": "standard", "total_max_attempts": 8})
    return boto3.client("cloudformation", config=config)


def read_status(cloudformation: CloudFormationClient, stack_id: str) -> str:
    """Read the status of the stack, such as `UPDATE_ROLLBACK_IN_PROGRESS`."""
    return str(cloudformation.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"])
