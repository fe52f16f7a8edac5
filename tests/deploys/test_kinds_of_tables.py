"""Every kind of table that can be managed, in one stack, deployed and seen through boto3."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import (
    Capacity,
    CapacityManaged,
    HighWaterMark,
    OnDemandTable,
    ThrottleAwareScaler,
    Window,
    manage_capacity,
)
from tests.cdk_cli import CdkCli
from tests.constructs.template_view import key
from tests.deploys.apps import HERE, managed_table, scaled, synthesize, world_table
from tests.deploys.live import describe, marks, targets, units

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud")]


def _kinds(stack: cdk.Stack) -> None:
    floor = cdk.CfnParameter(stack, "Floor", type="Number", default=21)
    raw = dynamodb.CfnTable(
        stack,
        "Raw",
        table_name="kinds-raw",
        key_schema=[dynamodb.CfnTable.KeySchemaProperty(attribute_name="pk", key_type="HASH")],
        attribute_definitions=[dynamodb.CfnTable.AttributeDefinitionProperty(attribute_name="pk", attribute_type="S")],
        provisioned_throughput=dynamodb.CfnTable.ProvisionedThroughputProperty(
            read_capacity_units=3, write_capacity_units=4
        ),
    )
    manage_capacity(
        raw,
        read=Capacity.autoscaled(min_capacity=floor.value_as_number, max_capacity=210),
        write=scaled(22, 220),
        windows=[Window.daily("noon", start="11:00", end="11:30", timezone="UTC", write_min=200)],
    )
    mixed = dynamodb.Table(stack, "Mixed", table_name="kinds-mixed", partition_key=key())
    mixed.add_global_secondary_index(index_name="by-day", partition_key=key("day"))
    mixed.with_(CapacityManaged(read=Capacity.fixed(units=31), write=scaled(32, 320)))
    mark = HighWaterMark.units(read=400, write=401)
    world = world_table(stack, "kinds-world")
    manage_capacity(world, read=scaled(41, 410), write=scaled(42, 420, 57), high_water_mark=mark)


def test_every_kind_of_table_has_its_targets_capacities_and_marks(bootstrapped: CdkCli, tmp_path: Path) -> None:
    bootstrapped.go_to_noon()
    bootstrapped.deploy(synthesize(tmp_path, "Kinds", _kinds, env=HERE))
    names = ("raw", "mixed", "world")
    assert {name: targets(bootstrapped.cloud, f"kinds-{name}") for name in names} == {
        "raw": {"table read": (21, 210), "table write": (22, 220)},
        "mixed": {
            "table read": (31, 31),
            "table write": (32, 320),
            "by-day read": (31, 31),
            "by-day write": (32, 320),
        },
        "world": {"table read": (41, 410), "table write": (42, 420)},
    }
    found = {name: units(bootstrapped.cloud, f"kinds-{name}")[0] for name in names}
    assert found == {"raw": (21, 22), "mixed": (31, 32), "world": (41, 42)}
    writes = {name: marks(bootstrapped.cloud, f"kinds-{name}")[0][1] for name in names}
    assert writes == {"raw": 200, "mixed": 32, "world": 401}


def _world(stack: cdk.Stack, *, name: str | None) -> None:
    by_day = dynamodb.GlobalSecondaryIndexPropsV2(index_name="by-day", partition_key=key("day"))
    world = world_table(stack, name, global_secondary_indexes=[by_day])
    managed = manage_capacity(world, read=scaled(41, 410), write=scaled(42, 420))
    ThrottleAwareScaler(stack, "Scaler").add_table(managed)


def test_global_table_that_was_replaced_leaves_no_target_behind(bootstrapped: CdkCli, tmp_path: Path) -> None:
    """The scaler, which works meanwhile, does not register again what CloudFormation deregisters."""
    cloud = bootstrapped.cloud
    autoscaling = cloud.client("application-autoscaling")

    def owners() -> list[str]:
        pages = autoscaling.get_paginator("describe_scalable_targets").paginate(ServiceNamespace="dynamodb")
        found = [target["ResourceId"].split("/")[1] for page in pages for target in page["ScalableTargets"]]
        return sorted(name for name in found if name.startswith(("named-world", "World-")))

    bootstrapped.deploy(synthesize(tmp_path, "World", _world, env=HERE, name="named-world"))
    assert owners() == ["named-world"] * 4
    cloud.step(60)
    app = synthesize(tmp_path, "World", _world, env=HERE, name=None)
    bootstrapped.deploy(app)
    (replacement,) = [
        name for name in cloud.client("dynamodb").list_tables()["TableNames"] if name.startswith("World-")
    ]
    assert owners() == [replacement] * 4
    cloud.step(60)
    assert owners() == [replacement] * 4
    bootstrapped.run("destroy", "--all", "--force", app=app)
    cloud.step(60)
    assert owners() == []


def _clicks_on_demand(stack: cdk.Stack) -> None:
    OnDemandTable(
        stack,
        "Clicks",
        table_name="modes",
        partition_key=key(),
        capacity=Capacity.on_demand(max_read=4_100, max_write=2_300),
        deletion_protection=False,
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )


def test_table_changes_its_mode_and_back_with_its_items(bootstrapped: CdkCli, tmp_path: Path) -> None:
    cloud = bootstrapped.cloud
    dynamodb = cloud.client("dynamodb")
    initial: dict[str, Any] = {"initial_read_units": 250, "initial_write_units": 260}
    clicks = partial(managed_table, id="Clicks", name="modes", read=scaled(31, 310), write=scaled(32, 320), **initial)
    app = synthesize(tmp_path, "Modes", clicks, env=HERE)

    def floors() -> list[int]:
        return sorted(low for low, _ in targets(cloud, "modes").values())

    bootstrapped.deploy(app)
    dynamodb.put_item(TableName="modes", Item={"pk": {"S": "kept"}})
    assert floors() == [31, 32]
    bootstrapped.deploy(synthesize(tmp_path, "Modes", _clicks_on_demand, env=HERE))
    cloud.step(120)
    table = describe(cloud, "modes")
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["OnDemandThroughput"] == {"MaxReadRequestUnits": 4_100, "MaxWriteRequestUnits": 2_300}
    assert floors() == []
    bootstrapped.deploy(app)
    cloud.step(120)
    assert describe(cloud, "modes")["BillingModeSummary"]["BillingMode"] == "PROVISIONED"
    assert units(cloud, "modes") == [(250, 260)]
    assert floors() == [31, 32]
    assert dynamodb.scan(TableName="modes")["Items"] == [{"pk": {"S": "kept"}}]
    bootstrapped.run("destroy", "--all", "--force", app=app)
