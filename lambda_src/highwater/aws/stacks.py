"""CloudFormation's stacks: a stack's last operation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import boto3

from highwater.calls.attempts import RARE, client_config

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


def client() -> CloudFormationClient:
    """Create a client that retries throttled calls up to seven times, and notes in which mode a stack is deployed."""
    made = boto3.client("cloudformation", config=client_config(RARE))
    made.meta.events.register("before-parse.cloudformation.DescribeStacks", _note_mode)
    return made


# A resource that is deleted, or left where it is, belongs to the stack no longer.
_GONE: Final = frozenset({"DELETE_COMPLETE", "DELETE_SKIPPED"})
_IS_EXPRESS: Final = "HighwaterIsExpress"


def _note_mode(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Note from the raw answer whether the operation is in express mode: the boto3 of Lambda's runtime may not know.

    botocore adds what is noted to the parsed answer, and leaves out the members that its model lacks: that has
    `DeploymentConfig` from version 1.43.60 on, at the latest (looked at 1.43.11 and 1.43.60, 2026-11). The raw answer
    is XML, as CloudFormation's protocol is `query` (botocore 1.44.8); after another protocol the parsed member
    decides.
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
    is_express = bool(answer.get(_IS_EXPRESS)) or found.get("DeploymentConfig", {}).get("Mode") == "EXPRESS"
    return StackState(str(found["StackStatus"]), str(updated or ""), is_express, began)


def read_names(cloudformation: CloudFormationClient, stack_id: str, logical_ids: Collection[str]) -> list[str]:
    """Read the physical names of those resources of a stack that exist, by their logical ids."""
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack_id)
    return [
        found["PhysicalResourceId"]
        for page in pages
        for found in page["StackResourceSummaries"]
        if found["LogicalResourceId"] in logical_ids
        and found["ResourceStatus"] not in _GONE
        and found.get("PhysicalResourceId")
    ]
