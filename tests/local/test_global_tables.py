"""Global tables in stacks: their targets, their indexes and their replicas."""

from __future__ import annotations

import copy
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from highwater_lab.local import LocalCloud
from tests.local.world import INDEX_READ, INDEX_WRITE, MINUTE, READ, WRITE, Stack, World, key, keyed, projecting, unique

Resources = dict[str, Any]


def _scaling(minimum: Any, maximum: Any, value: Any, **more: Any) -> Resources:
    return {
        "MinCapacity": minimum,
        "MaxCapacity": maximum,
        "TargetTrackingScalingPolicyConfiguration": {"TargetValue": value},
    } | more


def _global_table(
    name: str, read: Resources, write: Resources, index: tuple[Resources, Resources] | None = None
) -> Resources:
    replica: Resources = {
        "Region": "us-east-1",
        "ReadProvisionedThroughputSettings": {"ReadCapacityAutoScalingSettings": read},
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
    }
    properties: Resources = {
        "TableName": name,
        "BillingMode": "PROVISIONED",
        **keyed("id", others=[] if index is None else ["city"]),
        "WriteProvisionedThroughputSettings": {"WriteCapacityAutoScalingSettings": write},
        "Replicas": [replica],
    }
    if index is not None:
        written = {"WriteCapacityAutoScalingSettings": index[1]}
        definition = projecting("by-city", "city", WriteProvisionedThroughputSettings=written)
        properties["GlobalSecondaryIndexes"] = [definition]
        replica["GlobalSecondaryIndexes"] = [
            {"IndexName": "by-city", "ReadProvisionedThroughputSettings": {"ReadCapacityAutoScalingSettings": index[0]}}
        ]
    return {"Type": "AWS::DynamoDB::GlobalTable", "Properties": properties}


def test_global_table_with_auto_scaling_settings_registers_its_targets(world: World, stack: Stack) -> None:
    table = unique("table")
    resource = f"table/{table}"
    resources = _global_table(table, _scaling(12, 120, 62), _scaling("13", "130", "63"))
    assert stack.create(Table=resources) == "CREATE_COMPLETE"
    assert (world.bounds(resource), world.bounds(resource, WRITE)) == ((12, 120), (13, 130))
    assert world.capacity(table) == (12, 13)
    values = {
        policy["ScalableDimension"]: policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]
        for policy in world.policies(resource).values()
    }
    assert values == {READ: 62, WRITE: 63}
    assert world.has_recovery(table)


def test_global_table_with_changed_settings_moves_targets_and_capacity(world: World, stack: Stack) -> None:
    table = unique("table")
    resource = f"table/{table}"
    stack.create(Table=_global_table(table, _scaling(12, 120, 62), _scaling(13, 130, 63)))
    world.dynamodb.put_item(TableName=table, Item={"id": {"S": "one"}})
    status = stack.update(Table=_global_table(table, _scaling(22, 220, 62), _scaling(13, 130, 66)))
    assert status == "UPDATE_COMPLETE"
    assert (world.bounds(resource), world.bounds(resource, WRITE)) == ((22, 220), (13, 130))
    assert world.capacity(table) == (22, 13)
    assert world.dynamodb.scan(TableName=table)["Count"] == 1


def test_global_table_with_auto_scaling_settings_on_an_index_registers_the_index(world: World, stack: Stack) -> None:
    table = unique("table")
    index = (_scaling(14, 140, 64), _scaling(15, 150, 65))
    resources = _global_table(table, _scaling(12, 120, 62), _scaling(13, 130, 63), index)
    assert stack.create(Table=resources) == "CREATE_COMPLETE"
    resource = f"table/{table}/index/by-city"
    assert world.bounds(resource, INDEX_READ) == (14, 140)
    assert world.bounds(resource, INDEX_WRITE) == (15, 150)
    assert world.capacity(table, "by-city") == (14, 15)


def _targets_of(world: World, table: str) -> set[tuple[str, str]]:
    pages = world.autoscaling.get_paginator("describe_scalable_targets").paginate(ServiceNamespace="dynamodb")
    targets = [target for page in pages for target in page["ScalableTargets"]]
    return {
        (target["ResourceId"], target["ScalableDimension"])
        for target in targets
        if target["ResourceId"].split("/")[1] == table
    }


def test_global_table_is_deleted_with_its_targets(world: World, stack: Stack) -> None:
    table = unique("table")
    index = (_scaling(14, 140, 64), _scaling(15, 150, 65))
    stack.create(Table=_global_table(table, _scaling(12, 120, 62), _scaling(13, 130, 63), index))
    assert len(_targets_of(world, table)) == 4
    # with the index go its targets
    stack.update(Table=_global_table(table, _scaling(12, 120, 62), _scaling(13, 130, 63)))
    assert _targets_of(world, table) == {(f"table/{table}", READ), (f"table/{table}", WRITE)}
    # a target that is gone already is no obstacle
    world.autoscaling.deregister_scalable_target(**key(f"table/{table}", READ))
    assert stack.delete() == "DELETE_COMPLETE"
    assert _targets_of(world, table) == set()


def test_global_table_that_is_replaced_takes_its_targets_along(world: World, stack: Stack) -> None:
    table = unique("table")
    resources = _global_table(table, _scaling(12, 120, 62), _scaling(13, 130, 63))
    stack.create(Table=resources)
    del resources["Properties"]["TableName"]
    assert stack.update(Table=resources) == "UPDATE_COMPLETE"
    replacement = stack.physical_id("Table")
    assert replacement != table
    assert _targets_of(world, table) == set()
    assert len(_targets_of(world, replacement)) == 2
    assert stack.delete() == "DELETE_COMPLETE"
    assert _targets_of(world, replacement) == set()


def test_global_table_has_its_replicas_with_their_own_targets_for_as_long_as_the_template_has_them(
    cloud: LocalCloud, world: World, stack: Stack
) -> None:
    table = unique("table")
    resource = f"table/{table}"
    resources = _global_table(table, _scaling(12, 120, 62), _scaling(13, 130, 63))
    there = {"ReadCapacityAutoScalingSettings": _scaling(24, 240, 64)}
    elsewhere = {"Region": "eu-west-1", "ReadProvisionedThroughputSettings": there}
    with_replica = copy.deepcopy(resources)
    with_replica["Properties"]["Replicas"].append(elsewhere)
    arguments: Any = cloud.client_arguments() | {"region_name": "eu-west-1"}
    dynamodb = boto3.client("dynamodb", **arguments)
    autoscaling = boto3.client("application-autoscaling", **arguments)

    def seen_there() -> dict[str, int]:
        found = autoscaling.describe_scalable_targets(ServiceNamespace="dynamodb", ResourceIds=[resource])
        return {each["ScalableDimension"]: each["MinCapacity"] for each in found["ScalableTargets"]}

    assert stack.create(Table=with_replica) == "CREATE_COMPLETE"
    assert (world.bounds(resource), world.bounds(resource, WRITE)) == ((12, 120), (13, 130))
    assert seen_there() == {READ: 24, WRITE: 13}
    world.dynamodb.put_item(TableName=table, Item={"id": {"S": "one"}})
    assert dynamodb.scan(TableName=table)["Count"] == 1
    throughput = dynamodb.describe_table(TableName=table)["Table"]["ProvisionedThroughput"]
    assert (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]) == (24, 13)
    assert stack.update(Table=resources) == "UPDATE_COMPLETE"
    assert seen_there() == {}
    assert stack.update(Table=with_replica) == "UPDATE_COMPLETE"
    assert seen_there() == {READ: 24, WRITE: 13}
    assert stack.delete() == "DELETE_COMPLETE"
    assert (seen_there(), _targets_of(world, table)) == ({}, set())
    with pytest.raises(dynamodb.exceptions.ResourceNotFoundException):
        dynamodb.describe_table(TableName=table)


def _elsewhere(cloud: LocalCloud, region: str = "eu-west-1") -> World:
    arguments: Any = cloud.client_arguments() | {"region_name": region}
    return World(cloud, boto3.client("application-autoscaling", **arguments), boto3.client("dynamodb", **arguments))


def _scaled_reads(minimum: int) -> Resources:
    return {
        "ReadProvisionedThroughputSettings": {"ReadCapacityAutoScalingSettings": _scaling(minimum, 140, 64)},
        "GlobalSecondaryIndexes": [],
    }


def _fixed_reads(units: int, of_index: int, **more: Any) -> Resources:
    fixed = {"ReadProvisionedThroughputSettings": {"ReadCapacityUnits": of_index}}
    return {
        "ReadProvisionedThroughputSettings": {"ReadCapacityUnits": units},
        "GlobalSecondaryIndexes": [{"IndexName": "by-city", **fixed}],
        **more,
    }


def test_fixed_reads_of_a_global_table_are_those_of_each_replica(cloud: LocalCloud, world: World, stack: Stack) -> None:
    """Documented: CloudFormation Template Reference, AWS::DynamoDB::GlobalTable, ReadCapacityUnits."""
    table = unique("table")
    index = (_scaling(14, 140, 64), _scaling(15, 150, 65))
    resources = _global_table(table, _scaling(12, 120, 62), _scaling(13, 130, 63), index)

    def replicas(*reads: tuple[int, int]) -> Resources:
        regions = zip(("us-east-1", "eu-west-1"), reads, strict=True)
        resources["Properties"]["Replicas"] = [_fixed_reads(*each, Region=region) for region, each in regions]
        return resources

    there = _elsewhere(cloud)
    assert stack.create(Table=replicas((100, 60), (101, 61))) == "CREATE_COMPLETE"
    assert (world.capacity(table), world.capacity(table, "by-city")) == ((100, 13), (60, 15))
    assert (there.capacity(table), there.capacity(table, "by-city")) == ((101, 13), (61, 15))
    # a replica that auto scaling scales begins at its minimum, whatever the one has of which it is a copy
    resources["Properties"]["Replicas"].append({"Region": "eu-north-1"} | _scaled_reads(21))
    assert stack.update(Table=resources) == "UPDATE_COMPLETE"
    assert _elsewhere(cloud, "eu-north-1").capacity(table) == (21, 13)
    # what auto scaling has set of writes stays when the template changes reads
    world.cloud.advance(MINUTE)
    world.autoscaling.register_scalable_target(**key(f"table/{table}", WRITE), MinCapacity=33, MaxCapacity=130)
    assert stack.update(Table=replicas((102, 60), (101, 63))) == "UPDATE_COMPLETE"
    assert (world.capacity(table), world.capacity(table, "by-city")) == ((102, 33), (60, 15))
    assert (there.capacity(table), there.capacity(table, "by-city")) == ((101, 13), (63, 15))


def test_maxima_of_a_global_table_are_its_own_for_writes_and_each_replicas_for_reads(
    cloud: LocalCloud, world: World, stack: Stack
) -> None:
    """Documented: CloudFormation Template Reference, AWS::DynamoDB::GlobalTable, on-demand settings."""
    table = unique("table")
    regions = {"us-east-1": 9, "eu-west-1": 11}
    properties = {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        **keyed("id"),
        "WriteOnDemandThroughputSettings": {"MaxWriteRequestUnits": 7},
        "Replicas": [
            {"Region": region, "ReadOnDemandThroughputSettings": {"MaxReadRequestUnits": units}}
            for region, units in regions.items()
        ],
    }
    assert stack.create(Table={"Type": "AWS::DynamoDB::GlobalTable", "Properties": properties}) == "CREATE_COMPLETE"
    shown = [each.described(table)["OnDemandThroughput"] for each in (world, _elsewhere(cloud))]
    assert shown == [{"MaxReadRequestUnits": units, "MaxWriteRequestUnits": 7} for units in regions.values()]


def test_update_by_a_client_is_passed_on_to_all_regions_and_resets_their_reads(
    cloud: LocalCloud, world: World, stack: Stack
) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/global_tables_scaling."""
    table = unique("table")
    index = (_scaling(14, 140, 64), _scaling(15, 150, 65))
    resources = _global_table(table, _scaling(12, 120, 62), _scaling(13, 130, 63), index)
    reads = (("us-east-1", (22, 60)), ("eu-west-1", (55, 66)))
    resources["Properties"]["Replicas"] = [_fixed_reads(*each, Region=region) for region, each in reads]
    stack.create(Table=resources)
    there = _elsewhere(cloud)
    # auto scaling changes its own region alone
    world.register(f"table/{table}", 23, 130, dim=WRITE)
    assert (world.capacity(table), there.capacity(table)) == ((22, 23), (55, 13))
    # a request in which nothing changes is rejected, and the reads of the other region stay
    with pytest.raises(ClientError):
        world.change(table, 22, 23)
    assert there.capacity(table) == (55, 13)
    # reads are named because the call requires them, and are set everywhere
    world.change(table, 22, 24)
    world.change(table, 60, 25, index="by-city")
    assert (world.capacity(table), world.capacity(table, "by-city")) == ((22, 24), (60, 25))
    assert (there.capacity(table), there.capacity(table, "by-city")) == ((22, 24), (60, 25))
    world.dynamodb.update_table(TableName=table, BillingMode="PAY_PER_REQUEST")
    assert there.described(table)["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
