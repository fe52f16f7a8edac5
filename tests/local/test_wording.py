"""Texts of rejected requests that DynamoDB words otherwise in some regions: each region has its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import boto3
import pytest
from botocore.config import Config

from highwater_lab.local import LocalCloud
from tests.local.world import create_tables, invalid, refused, units

pytestmark = pytest.mark.xdist_group("cloud")
Regions = Callable[[str], Any]
NEWER, OLDER = "us-east-1", "me-central-1"
ONE = "1 validation error detected: "
COLLECTION = "One or more parameter values were invalid: Input collection"
NO_EXPRESSION = "ExpressionAttributeValues can only be specified when using expressions"
TOO_SHORT = (
    f"{ONE}Value at 'RequestItems' failed to satisfy constraint: Member must have length greater than or equal to 1"
)
KEY = {"pk": {"S": "a"}}
VALUES = {":v": {"S": "unused"}}


@pytest.fixture(scope="module")
def regions(cloud: LocalCloud) -> Regions:
    """A client of a region, with a table `orders` there, that sends what it is told; one for each region."""

    @cache
    def in_region(region: str) -> Any:
        make: Any = boto3.client
        plain = Config(parameter_validation=False, retries={"total_max_attempts": 1})
        client = make("dynamodb", config=plain, **cloud.client_arguments() | {"region_name": region})
        create_tables(client, units(5, 6), orders=["pk"])
        return client

    return in_region


@pytest.mark.parametrize("region", ["us-east-1", "us-west-2", "eu-west-1", "eu-south-2", OLDER])
def test_empty_batch_of_writes_has_the_older_text_in_most_regions(regions: Regions, region: str) -> None:
    with refused("ValidationException", "The requestItems parameter is required for BatchWriteItem"):
        regions(region).batch_write_item(RequestItems={})


@pytest.mark.parametrize("region", ["ap-east-2", "ap-southeast-1", "eu-central-1", "eu-north-1", "eu-west-2"])
def test_empty_batch_of_writes_has_the_newer_text_in_five_regions(regions: Regions, region: str) -> None:
    with refused("ValidationException", TOO_SHORT):
        regions(region).batch_write_item(RequestItems={})


@pytest.mark.parametrize(
    ("region", "text"),
    [
        (NEWER, TOO_SHORT),
        ("eu-south-2", TOO_SHORT),
        (OLDER, "The requestItems parameter is required for BatchGetItem"),
    ],
)
def test_empty_batch_of_reads_has_the_older_text_in_one_region(regions: Regions, region: str, text: str) -> None:
    with refused("ValidationException", text):
        regions(region).batch_get_item(RequestItems={})


@pytest.mark.parametrize("region", ["eu-south-2", OLDER])
@pytest.mark.parametrize(
    ("operation", "request_", "newer", "older"),
    [
        *(
            pytest.param(
                operation,
                {member: KEY, "ExpressionAttributeValues": VALUES},
                NO_EXPRESSION,
                f"{NO_EXPRESSION}: {absent}",
                id=f"{operation}-values",
            )
            for operation, member, absent in (
                ("put_item", "Item", "ConditionExpression is null"),
                ("delete_item", "Key", "ConditionExpression is null"),
                ("update_item", "Key", "UpdateExpression and ConditionExpression are null"),
            )
        ),
        pytest.param(
            "put_item",
            {"Item": KEY | {"set": {"SS": ["b", "a", "b"]}}},
            f'{COLLECTION} ["a", "b", "b"] contains duplicates.',
            f"{COLLECTION} [b, a, b] contains duplicates.",
            id="strings",
        ),
        pytest.param(
            "put_item",
            {"Item": KEY | {"set": {"BS": [b"b", b"a", b"b"]}}},
            f'{COLLECTION} ["YQ==","Yg==","Yg=="]of type BS contains duplicates.',
            f"{COLLECTION} [Yg==, YQ==, Yg==]of type BS contains duplicates.",
            id="bytes",
        ),
        pytest.param(
            "put_item",
            {"Item": KEY | {"set": {"NS": ["2", "1", "2"]}}},
            f"{COLLECTION} contains duplicates.",
            "Input collection contains duplicates",
            id="numbers",
        ),
    ],
)
def test_writes_of_one_item_have_the_bare_sentence_in_two_regions(
    regions: Regions, region: str, operation: str, request_: dict[str, Any], newer: str, older: str
) -> None:
    for where, text in ((NEWER, ONE + newer), (region, older)):
        client = regions(where)
        with refused("ValidationException", text):
            getattr(client, operation)(TableName="orders", **request_)


def test_constraint_on_a_member_has_the_envelope_in_every_region(regions: Regions) -> None:
    for region in (NEWER, OLDER):
        text = invalid(("a!", "tableName", "satisfy regular expression pattern: [a-zA-Z0-9_.-]+"))
        with refused("ValidationException", text):
            regions(region).put_item(TableName="a!", Item=KEY)


def test_accepted_writes_and_rejected_reads_are_alike_in_every_region(regions: Regions) -> None:
    for region in (NEWER, OLDER):
        client = regions(region)
        client.put_item(TableName="orders", Item=KEY)
        with refused("ValidationException", "The provided key element does not match the schema"):
            client.get_item(TableName="orders", Key={"other": {"S": "a"}})
