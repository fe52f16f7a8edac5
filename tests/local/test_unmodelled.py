"""What a template declares for a table: made as it says, or said to be left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest

from highwater_lab.local import LocalCloud
from tests.local.world import Stack, World, client, keyed, projecting, unique, units, world_of

pytestmark = pytest.mark.xdist_group("cloud")
INSIGHTS = {"ContributorInsightsSpecification": {"Enabled": True}}
STREAM = {"KinesisStreamSpecification": {"StreamArn": "arn:aws:kinesis:us-east-1:000000000000:stream/s"}}


def _events(cloudformation: Any, stack: Stack) -> list[str]:
    """What events of resources say, oldest first; the engine's own that have no text are left out."""
    events = cloudformation.describe_stack_events(StackName=stack.name)["StackEvents"]
    said = [event.get("ResourceStatusReason", "") for event in reversed(events)]
    return [text for text in said if text.startswith("The local cloud")]


def _table(**more: Any) -> dict[str, Any]:
    index = projecting("by-city", "city", ProvisionedThroughput=units(5, 6), **INSIGHTS)
    properties = keyed("id", others=["city"]) | {
        "ProvisionedThroughput": units(3, 4),
        "GlobalSecondaryIndexes": [index],
    }
    return {"Type": "AWS::DynamoDB::Table", "Properties": properties | more}


def test_what_is_not_modelled_of_a_table_is_said_in_one_event_and_one_line_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with LocalCloud(clock="driven", has_instant_updates=True, log=log) as cloud:
        cloudformation = client(cloud, "cloudformation")
        stack = Stack(cloudformation)
        assert stack.create(Orders=_table(**STREAM)) == "CREATE_COMPLETE"
        text = (
            "The local cloud does not model GlobalSecondaryIndexes.ContributorInsightsSpecification, "
            "KinesisStreamSpecification: Orders is without"
        )
        assert _events(cloudformation, stack) == [text]
        # the same again is not said twice, and what is added is
        assert stack.update(Orders=_table(**STREAM, Tags=[{"Key": "team", "Value": "a"}])) == "UPDATE_COMPLETE"
        assert _events(cloudformation, stack) == [text]
        assert stack.update(Orders=_table(**STREAM, ResourcePolicy={"PolicyDocument": {}})) == "UPDATE_COMPLETE"
        assert [each.count("ResourcePolicy") for each in _events(cloudformation, stack)] == [0, 1]
        # CloudFormation's own tags are on no table
        table = cloud.client("dynamodb").describe_table(TableName=stack.physical_id("Orders"))["Table"]
        assert cloud.client("dynamodb").list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"] == []
        assert stack.delete() == "DELETE_COMPLETE"
    assert log.read_text().count(text) == 1


def test_what_a_request_sets_in_one_region_of_a_global_table_only_is_said_in_the_log(tmp_path: Path) -> None:
    log, table, alone = tmp_path / "log", unique("table"), unique("table")
    with LocalCloud(clock="driven", has_instant_updates=True, log=log) as cloud:
        stack, world = Stack(client(cloud, "cloudformation")), world_of(cloud)
        properties = {
            "TableName": table,
            "BillingMode": "PAY_PER_REQUEST",
            **keyed("id", others=["city"]),
            "GlobalSecondaryIndexes": [projecting("by-city", "city")],
            "TimeToLiveSpecification": {"AttributeName": "ends", "Enabled": True},
            "Replicas": [{"Region": "us-east-1"}, {"Region": "eu-west-1"}],
        }
        orders = {"Type": "AWS::DynamoDB::GlobalTable", "Properties": properties}
        assert stack.create(Orders=orders) == "CREATE_COMPLETE"
        arguments: Any = cloud.client_arguments() | {"region_name": "eu-west-1"}
        there = boto3.client("dynamodb", **arguments)
        ends = there.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        assert ends == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ends"}
        world.dynamodb.create_table(TableName=alone, BillingMode="PAY_PER_REQUEST", **keyed("id"))
        maxima = {"OnDemandThroughput": {"MaxWriteRequestUnits": 7}}
        for name in (alone, table):
            warm = {"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 4_500}
            world.dynamodb.update_table(TableName=name, WarmThroughput=warm, **maxima)
            never = {"AttributeName": "ends", "Enabled": False}
            world.dynamodb.update_time_to_live(
                TableName=name, TimeToLiveSpecification=never | {"Enabled": name == alone}
            )
        of_index = {"Update": {"IndexName": "by-city", **maxima}}
        world.dynamodb.update_table(TableName=table, GlobalSecondaryIndexUpdates=[of_index])
        # what DynamoDB keeps by replica
        world.dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
    said = [line.partition("The local cloud ")[2] for line in log.read_text().splitlines() if "The local cloud" in line]
    where = f"of the global table {table} in us-east-1 only, and not in eu-west-1"
    assert said == [
        f"sets {what} {where}"
        for what in (
            "OnDemandThroughput, WarmThroughput",
            "TimeToLiveSpecification",
            "GlobalSecondaryIndexUpdates.OnDemandThroughput",
        )
    ]


def test_what_is_off_is_not_said(world: World, clients: dict[str, Any], stack: Stack) -> None:
    off = {"ContributorInsightsSpecification": {"Enabled": False}, "DeletionProtectionEnabled": False}
    index = projecting("by-city", "city", ProvisionedThroughput=units(5, 6), **off)
    del index["DeletionProtectionEnabled"]
    table = unique("table")
    assert stack.create(Orders=_table(TableName=table, GlobalSecondaryIndexes=[index], **off)) == "CREATE_COMPLETE"
    assert _events(clients["cloudformation"], stack) == []
    assert world.capacity(table, "by-city") == (5, 6)


def test_recovery_class_and_tags_are_those_of_each_replica(cloud: LocalCloud, stack: Stack) -> None:
    table = unique("table")

    def resources(here: dict[str, Any], there: dict[str, Any]) -> dict[str, Any]:
        properties = {
            "TableName": table,
            "BillingMode": "PAY_PER_REQUEST",
            **keyed("id"),
            "SSESpecification": {"SSEEnabled": True, "SSEType": "KMS"},
            "WarmThroughput": {"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 4_500},
            "Replicas": [{"Region": "us-east-1"} | here, {"Region": "eu-west-1"} | there],
        }
        return {"Table": {"Type": "AWS::DynamoDB::GlobalTable", "Properties": properties}}

    recovery = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
    rare = {"TableClass": "STANDARD_INFREQUENT_ACCESS", "Tags": [{"Key": "team", "Value": "b"}]}
    assert stack.create(**resources(recovery, rare)) == "CREATE_COMPLETE"
    arguments: Any = cloud.client_arguments() | {"region_name": "eu-west-1"}
    here, dynamodb = world_of(cloud), boto3.client("dynamodb", **arguments)
    there = World(cloud, boto3.client("application-autoscaling", **arguments), dynamodb)

    def shown(of: World) -> tuple[bool, str | None, list[dict[str, str]]]:
        described = of.described(table)
        tags = of.dynamodb.list_tags_of_resource(ResourceArn=described["TableArn"])["Tags"]
        return of.has_recovery(table), described.get("TableClassSummary", {}).get("TableClass"), tags

    assert (shown(here), shown(there)) == ((True, None, []), (False, rare["TableClass"], rare["Tags"]))
    keys = [each.described(table)["SSEDescription"] for each in (here, there)]
    assert [(each["Status"], each["KMSMasterKeyArn"].split(":")[3]) for each in keys] == [
        ("ENABLED", "us-east-1"),
        ("ENABLED", "eu-west-1"),
    ]
    assert (here.warm(table), there.warm(table)) == ((13_000, 4_500), (13_000, 4_500))
    assert stack.update(**resources(recovery, recovery)) == "UPDATE_COMPLETE"
    assert (shown(here), shown(there)) == ((True, None, []), (True, "STANDARD", []))
    assert stack.delete() == "DELETE_COMPLETE"
