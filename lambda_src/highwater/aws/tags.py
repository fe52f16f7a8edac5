"""Tags of tables: plans of tables with the tag `highwater:managed`, and notes between runs of a deploy."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

import boto3

from highwater.aws.parameters import ScaledPlans
from highwater.aws.tables import translating
from highwater.calls.attempts import RARE, client_config
from highwater.core.names import table_label
from highwater.core.scaler.plan import FINDER_TAG, MANAGED_TAG, plan_of_tags

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_resourcegroupstaggingapi import ResourceGroupsTaggingAPIClient


# Begin of the key of the tag that names the deploy whose marks wait until indexes are built. A later deploy removes it.
AWAITING_TAG: Final = "highwater:awaiting-marks"


def awaiting_tag(stack_id: str, logical_id: str) -> str:
    """Return the key of the tag of one resource with marks: a table may have several, in one stack or in many."""
    return f"{AWAITING_TAG}-{sha256(f'{stack_id} {logical_id}'.encode()).hexdigest()[:12]}"


def read_awaiting(dynamodb: DynamoDBClient, arn: str, key: str) -> str | None:
    """Read from the tag *key* which deploy's marks wait until indexes are built, `None` for none."""

    def read() -> str | None:
        pages = dynamodb.get_paginator("list_tags_of_resource").paginate(ResourceArn=arn)
        return next((tag["Value"] for page in pages for tag in page["Tags"] if tag["Key"] == key), None)

    return translating(read)


def write_awaiting(dynamodb: DynamoDBClient, arn: str, key: str, deploy: str) -> None:
    """Record which deploy's marks wait until indexes are built."""
    translating(lambda: dynamodb.tag_resource(ResourceArn=arn, Tags=[{"Key": key, "Value": deploy}]))


def clear_awaiting(dynamodb: DynamoDBClient, arn: str, key: str) -> None:
    """Remove the tag of `write_awaiting`, if there is one."""
    if read_awaiting(dynamodb, arn, key) is not None:
        translating(lambda: dynamodb.untag_resource(ResourceArn=arn, TagKeys=[key]))


def client(region: str | None = None) -> ResourceGroupsTaggingAPIClient:
    """Create a client that retries throttled calls up to seven times."""
    return boto3.client("resourcegroupstaggingapi", config=client_config(RARE), region_name=region)


def read_tagged_plans(tagging: ResourceGroupsTaggingAPIClient, region: str | None = None) -> ScaledPlans:
    """Read the plans of all tables with the tag `highwater:managed` in the client's region.

    *region* is the region to write into the plans, `None` for the scaler's own. A table with wrong tags is listed as
    unreadable and does not affect the others.
    """
    plans, unreadable = [], []
    pages = tagging.get_paginator("get_resources").paginate(
        TagFilters=[{"Key": MANAGED_TAG}], ResourceTypeFilters=["dynamodb:table"]
    )
    for page in pages:
        for resource in page["ResourceTagMappingList"]:
            table = resource["ResourceARN"].rsplit("/", 1)[-1]
            tags = {tag["Key"]: tag["Value"] for tag in resource["Tags"]}
            try:
                plans.append(plan_of_tags(table, tags, region))
            except ValueError as error:
                unreadable.append(f"table {table_label(table, region)}: {error}")
    return ScaledPlans(tuple(plans), tuple(unreadable))


def read_tagged_scalers(tagging: ResourceGroupsTaggingAPIClient) -> tuple[str, ...]:
    """Read the names of the functions in the client's region whose scalers manage tagged tables.

    The permission `tag:GetResources`, with which the tagged tables are found, covers this too.
    """
    pages = tagging.get_paginator("get_resources").paginate(
        TagFilters=[{"Key": FINDER_TAG}], ResourceTypeFilters=["lambda:function"]
    )
    return tuple(
        resource["ResourceARN"].split(":function:")[-1] for page in pages for resource in page["ResourceTagMappingList"]
    )
