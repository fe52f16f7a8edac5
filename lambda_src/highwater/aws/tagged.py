"""Tables that were chosen by a tag."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from highwater.aws.plans import ScaledPlans
from highwater.core.names import table_label
from highwater.core.scaler.tagged_plans import MANAGED_TAG, plan_of_tags

if TYPE_CHECKING:
    from mypy_boto3_resourcegroupstaggingapi import ResourceGroupsTaggingAPIClient


def client(region: str | None = None) -> ResourceGroupsTaggingAPIClient:
    """A client that waits out rate limits."""
    config = Config(retries={"mode": "standard", "total_max_attempts": 8})
    return boto3.client("resourcegroupstaggingapi", config=config, region_name=region)


def read_tagged_plans(tagging: ResourceGroupsTaggingAPIClient, region: str | None = None) -> ScaledPlans:
    """The plans of all tables with the tag `highwater:managed` in the client's region.

    *region* is the region that the plans name, `None` where it is the scaler's own. A table whose tags are wrong does
    not hide the others.
    """
    found, unreadable = [], []
    pages = tagging.get_paginator("get_resources").paginate(
        TagFilters=[{"Key": MANAGED_TAG}], ResourceTypeFilters=["dynamodb:table"]
    )
    for page in pages:
        for resource in page["ResourceTagMappingList"]:
            table = resource["ResourceARN"].rsplit("/", 1)[-1]
            tags = {tag["Key"]: tag["Value"] for tag in resource["Tags"]}
            try:
                found.append(plan_of_tags(table, tags, region))
            except ValueError as error:
                unreadable.append(f"table {table_label(table, region)}: {error}")
    return ScaledPlans(tuple(found), tuple(unreadable))
