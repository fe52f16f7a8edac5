"""Every kind of table that can be managed, in one stack, deployed and seen through boto3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cdk_cli import CdkCli

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud")]

APP = """
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from cdk_highwater import Capacity, CapacityManaged, HighWaterMark, Window, manage_capacity

app = cdk.App()
stack = cdk.Stack(app, "Kinds", env=cdk.Environment(account="000000000000", region="us-east-1"))
floor = cdk.CfnParameter(stack, "Floor", type="Number", default=21)
key = dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING)

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
    write=Capacity.autoscaled(min_capacity=22, max_capacity=220),
    windows=[Window.daily("noon", start="11:00", end="11:30", timezone="UTC", write_min=200)],
)

mixed = dynamodb.Table(stack, "Mixed", table_name="kinds-mixed", partition_key=key)
mixed.add_global_secondary_index(
    index_name="by-day", partition_key=dynamodb.Attribute(name="day", type=dynamodb.AttributeType.STRING)
)
write = Capacity.autoscaled(min_capacity=32, max_capacity=320)
mixed.with_(CapacityManaged(read=Capacity.fixed(units=31), write=write))

world = dynamodb.TableV2(
    stack,
    "World",
    table_name="kinds-world",
    partition_key=key,
    billing=dynamodb.Billing.provisioned(
        read_capacity=dynamodb.Capacity.fixed(5), write_capacity=dynamodb.Capacity.autoscaled(max_capacity=10)
    ),
)
manage_capacity(
    world,
    read=Capacity.autoscaled(min_capacity=41, max_capacity=410),
    write=Capacity.autoscaled(min_capacity=42, max_capacity=420, target_utilization_percent=57),
    high_water_mark=HighWaterMark.units(read=400, write=401),
)
app.synth()
"""


def test_every_kind_of_table_has_its_targets_capacities_and_marks(bootstrapped: CdkCli, tmp_path: Path) -> None:
    app = tmp_path / "kinds.py"
    app.write_text(APP)
    bootstrapped.go_to_noon()
    bootstrapped.deploy(app)
    cloud = bootstrapped.cloud
    targets = cloud.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="dynamodb",
        ResourceIds=[
            "table/kinds-raw",
            "table/kinds-mixed",
            "table/kinds-mixed/index/by-day",
            "table/kinds-world",
        ],
    )["ScalableTargets"]
    assert {
        (target["ResourceId"].removeprefix("table/kinds-"), target["ScalableDimension"].split(":")[2]): (
            target["MinCapacity"],
            target["MaxCapacity"],
        )
        for target in targets
    } == {
        ("raw", "ReadCapacityUnits"): (21, 210),
        ("raw", "WriteCapacityUnits"): (22, 220),
        ("mixed", "ReadCapacityUnits"): (31, 31),
        ("mixed", "WriteCapacityUnits"): (32, 320),
        ("mixed/index/by-day", "ReadCapacityUnits"): (31, 31),
        ("mixed/index/by-day", "WriteCapacityUnits"): (32, 320),
        ("world", "ReadCapacityUnits"): (41, 410),
        ("world", "WriteCapacityUnits"): (42, 420),
    }
    tables = {
        name: cloud.client("dynamodb").describe_table(TableName=f"kinds-{name}")["Table"]
        for name in ("raw", "mixed", "world")
    }
    assert {
        name: (
            table["ProvisionedThroughput"]["ReadCapacityUnits"],
            table["ProvisionedThroughput"]["WriteCapacityUnits"],
            table["WarmThroughput"]["WriteUnitsPerSecond"],
        )
        for name, table in tables.items()
    } == {"raw": (21, 22, 200), "mixed": (31, 32, 32), "world": (41, 42, 401)}


WORLD = """
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from cdk_highwater import Capacity, ThrottleAwareScaler, manage_capacity

app = cdk.App()
stack = cdk.Stack(app, "World", env=cdk.Environment(account="000000000000", region="us-east-1"))
key = dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING)
capacity = dynamodb.Capacity
world = dynamodb.TableV2(
    stack,
    "World",
    table_name=app.node.try_get_context("name"),
    partition_key=key,
    removal_policy=cdk.RemovalPolicy.DESTROY,
    billing=dynamodb.Billing.provisioned(
        read_capacity=capacity.fixed(5), write_capacity=capacity.autoscaled(max_capacity=10)
    ),
    global_secondary_indexes=[
        dynamodb.GlobalSecondaryIndexPropsV2(
            index_name="by-day", partition_key=dynamodb.Attribute(name="day", type=dynamodb.AttributeType.STRING)
        )
    ],
)
managed = manage_capacity(
    world,
    read=Capacity.autoscaled(min_capacity=41, max_capacity=410),
    write=Capacity.autoscaled(min_capacity=42, max_capacity=420),
)
ThrottleAwareScaler(stack, "Scaler").add_table(managed)
app.synth()
"""


def test_global_table_that_was_replaced_leaves_no_target_behind(bootstrapped: CdkCli, tmp_path: Path) -> None:
    """The scaler, which works meanwhile, does not register again what CloudFormation deregisters."""
    app = tmp_path / "world.py"
    app.write_text(WORLD)
    cloud = bootstrapped.cloud
    autoscaling = cloud.client("application-autoscaling")

    def targets() -> list[str]:
        pages = autoscaling.get_paginator("describe_scalable_targets").paginate(ServiceNamespace="dynamodb")
        found = [target["ResourceId"].split("/")[1] for page in pages for target in page["ScalableTargets"]]
        return sorted(name for name in found if name.startswith(("named-world", "World-")))

    bootstrapped.deploy(app, {"name": "named-world"})
    assert targets() == ["named-world"] * 4
    cloud.step(60)
    bootstrapped.deploy(app)
    (replacement,) = [
        name for name in cloud.client("dynamodb").list_tables()["TableNames"] if name.startswith("World-")
    ]
    assert targets() == [replacement] * 4
    cloud.step(60)
    assert targets() == [replacement] * 4
    bootstrapped.run("destroy", "--all", "--force", app=app)
    cloud.step(60)
    assert targets() == []


MODES = """
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from cdk_highwater import Capacity, HighWaterTable, OnDemandTable

app = cdk.App()
stack = cdk.Stack(app, "Modes", env=cdk.Environment(account="000000000000", region="us-east-1"))
common = {
    "table_name": "modes",
    "partition_key": dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
    "deletion_protection": False,
    "removal_policy": cdk.RemovalPolicy.DESTROY,
}
if app.node.try_get_context("mode") == "demand":
    OnDemandTable(stack, "Clicks", capacity=Capacity.on_demand(max_read=4_100, max_write=2_300), **common)
else:
    HighWaterTable(
        stack,
        "Clicks",
        read=Capacity.autoscaled(min_capacity=31, max_capacity=310),
        write=Capacity.autoscaled(min_capacity=32, max_capacity=320),
        initial_read_units=250,
        initial_write_units=260,
        **common,
    )
app.synth()
"""


def test_table_changes_its_mode_and_back_with_its_items(bootstrapped: CdkCli, tmp_path: Path) -> None:
    app = tmp_path / "modes.py"
    app.write_text(MODES)
    dynamodb = bootstrapped.cloud.client("dynamodb")
    autoscaling = bootstrapped.cloud.client("application-autoscaling")

    def described() -> dict[str, Any]:
        return dict(dynamodb.describe_table(TableName="modes")["Table"])

    def floors() -> list[int]:
        found = autoscaling.describe_scalable_targets(ServiceNamespace="dynamodb", ResourceIds=["table/modes"])
        return sorted(target["MinCapacity"] for target in found["ScalableTargets"])

    bootstrapped.deploy(app)
    dynamodb.put_item(TableName="modes", Item={"pk": {"S": "kept"}})
    assert floors() == [31, 32]
    bootstrapped.deploy(app, {"mode": "demand"})
    bootstrapped.cloud.step(120)
    table = described()
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["OnDemandThroughput"] == {"MaxReadRequestUnits": 4_100, "MaxWriteRequestUnits": 2_300}
    assert floors() == []
    bootstrapped.deploy(app)
    bootstrapped.cloud.step(120)
    table = described()
    assert table["BillingModeSummary"]["BillingMode"] == "PROVISIONED"
    units = table["ProvisionedThroughput"]
    assert (units["ReadCapacityUnits"], units["WriteCapacityUnits"]) == (250, 260)
    assert floors() == [31, 32]
    assert dynamodb.scan(TableName="modes")["Items"] == [{"pk": {"S": "kept"}}]
    bootstrapped.run("destroy", "--all", "--force", app=app)
