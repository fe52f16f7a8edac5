"""The scaler end to end: real `cdk deploy`, its real asset, real traffic, by the local cloud's clock."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from highwater.core import Dimension
from highwater_lab.local import LocalCloud
from highwater_lab.local.load import Load, steady
from highwater_lab.policies.catalogue import run_policy
from tests.cdk_cli import CdkCli
from tests.local.world import WRITE
from tests.simulation.tables import table, tracked, writes

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud-scaled")]
APP = """
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from cdk_highwater import Capacity, HighWaterTable, TaggedTables, ThrottleAwareScaler, Window

app = cdk.App()
tables = cdk.Stack(app, "Tables")
orders = HighWaterTable(
    tables,
    "Orders",
    table_name="scaled-orders",
    partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
    read=Capacity.autoscaled(min_capacity=5, max_capacity=50, target_utilization_percent=90),
    write=Capacity.autoscaled(
        min_capacity=int(app.node.get_context("min")), max_capacity=300, target_utilization_percent=90
    ),
    deletion_protection=False,
)
if app.node.get_context("scaled") == "yes":
    ThrottleAwareScaler(tables, "Scaler").add_table(orders)
app.synth()
"""
MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CdkCli]:
    folder = tmp_path_factory.mktemp("scaled")
    with LocalCloud(log=folder / "server.log", clock="driven", is_strict=True) as cloud:
        made = CdkCli(cloud, folder)
        made.bootstrap()
        yield made


def _until(cloud: LocalCloud, what: Callable[[], bool], minutes: int) -> bool:
    """Step the clock until that holds, by at most *minutes*."""
    for _ in range(minutes * 4):
        if what():
            return True
        cloud.step(15)
    return what()


def _floor(autoscaling: Any) -> int:
    found = autoscaling.describe_scalable_targets(
        ServiceNamespace="dynamodb", ResourceIds=["table/scaled-orders"], ScalableDimension=WRITE
    )["ScalableTargets"]
    return int(found[0]["MinCapacity"])


def _simulated_rise() -> int:
    """Seconds from the surge to the first rise of the floor, in the simulator."""
    run = run_policy("highwater-floor", table(tracked(low=12, high=300, target=90)), writes(*[0] * 40, *[60] * 6))
    return next(at for at, floor, _ in run.target(Dimension.WRITE).bounds if floor > 12) - 40 * 60


def test_surge_moves_the_floor_a_hand_edit_and_a_deploy_are_healed_and_removal_leaves_the_plan(
    cli: CdkCli, tmp_path: Path
) -> None:
    app = tmp_path / "app.py"
    app.write_text(APP)
    cloud = cli.cloud
    cli.deploy(app, {"scaled": "yes", "min": "12"})
    autoscaling = cloud.client("application-autoscaling")
    assert _floor(autoscaling) == 12
    # a quarter of an hour and more of quiet, then 60 writes/s for six minutes
    cloud.advance(40 * MINUTE)
    # what is held, and until when, depends on the minute of the hour
    now = cloud.status().now
    cloud.advance((now + 60 * MINUTE).replace(minute=20, second=0) - now)
    start = cloud.status().now
    load = Load(cloud.control, "scaled-orders", steady(0, 60, 6 * MINUTE, start), requests_per_second=5)
    report = load.run()
    assert report.total(Dimension.WRITE, "throttled") > 0, "the burst bucket of 12 units holds for a minute"
    assert _until(cloud, lambda: _floor(autoscaling) >= 60, 6), "the alarm did not bring the scaler about"
    raised = _floor(autoscaling)
    # cautious after the jump: at 68 %
    assert 60 <= raised <= 110

    # the simulator, given the same surge, sets the floor within a metric period of that
    activities = autoscaling.describe_scaling_activities(ServiceNamespace="dynamodb")["ScalingActivities"]
    set_at = [
        (activity["StartTime"] - start).total_seconds()
        for activity in reversed(activities)
        if activity["Cause"].startswith("minimum capacity was set to") and activity["StartTime"] > start
    ]
    assert abs(set_at[0] - _simulated_rise()) <= 60

    # a hand edit below the plan
    autoscaling.register_scalable_target(
        ServiceNamespace="dynamodb", ResourceId="table/scaled-orders", ScalableDimension=WRITE, MinCapacity=3
    )
    assert _until(cloud, lambda: _floor(autoscaling) >= 12, 12)

    # half an hour later nothing is left of the surge
    cloud.advance(45 * MINUTE)
    assert _until(cloud, lambda: _floor(autoscaling) == 12, 12)

    # a deploy with another base floor: the plan in SSM is the new one
    cli.deploy(app, {"scaled": "yes", "min": "17"})
    assert _until(cloud, lambda: _floor(autoscaling) == 17, 12)

    autoscaling.register_scalable_target(
        ServiceNamespace="dynamodb", ResourceId="table/scaled-orders", ScalableDimension=WRITE, MinCapacity=88
    )
    cli.deploy(app, {"scaled": "no", "min": "17"})
    assert _floor(autoscaling) == 17
    cloudwatch = cloud.client("cloudwatch")
    assert cloudwatch.describe_alarms(AlarmNamePrefix="Highwater ")["MetricAlarms"] == []
    for one in (autoscaling, cloudwatch):
        one.close()


OTHERS = """
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from cdk_highwater import Capacity, HighWaterMark, HighWaterTable, TaggedTables, ThrottleAwareScaler, Window
from cdk_highwater import manage_capacity

app = cdk.App()
stack = cdk.Stack(app, "Others")
key = dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING)


def units(low: int, high: int) -> Capacity:
    return Capacity.autoscaled(min_capacity=low, max_capacity=high, target_utilization_percent=90)


def table(name: str, write: Capacity) -> HighWaterTable:
    return HighWaterTable(
        stack, name, table_name=name, partition_key=key, read=units(5, 50), write=write, deletion_protection=False,
        removal_policy=cdk.RemovalPolicy.DESTROY, high_water_mark=HighWaterMark.none(),
    )


world = dynamodb.TableV2(
    stack,
    "World",
    table_name="others-world",
    partition_key=key,
    removal_policy=cdk.RemovalPolicy.DESTROY,
    billing=dynamodb.Billing.provisioned(
        read_capacity=dynamodb.Capacity.fixed(5), write_capacity=dynamodb.Capacity.autoscaled(max_capacity=10)
    ),
)
scaler = ThrottleAwareScaler(stack, "Scaler", tagged=TaggedTables())
manage_capacity(
    world,
    read=units(7, 70),
    write=units(int(app.node.get_context("min")), 900),
    windows=[
        Window.once(
            "load",
            start=app.node.get_context("opens"),
            end=app.node.get_context("closes"),
            timezone="UTC",
            write_min=333,
        )
    ],
    high_water_mark=HighWaterMark.none(),
    windows_held_by=scaler,
)
for each in (table("others-hot", units(1_500, 4_000)), table("others-paused", units(12, 300))):
    scaler.add_table(each)
app.synth()
"""


def _write_floor(autoscaling: Any, table: str) -> int:
    found = autoscaling.describe_scalable_targets(
        ServiceNamespace="dynamodb", ResourceIds=[f"table/{table}"], ScalableDimension=WRITE
    )["ScalableTargets"]
    return int(found[0]["MinCapacity"])


def _make_tagged_table(cloud: LocalCloud) -> str:
    """A table that no construct made, with a target of its own and the scaler's tags."""
    dynamodb = cloud.client("dynamodb")
    arn = dynamodb.create_table(
        TableName="others-tagged",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        ProvisionedThroughput={"ReadCapacityUnits": 3, "WriteCapacityUnits": 4},
    )["TableDescription"]["TableArn"]
    tags = {"managed": "floor", "read-min": "7", "read-max": "900", "write-min": "21", "write-max": "500"}
    dynamodb.tag_resource(
        ResourceArn=arn, Tags=[{"Key": f"highwater:{name}", "Value": value} for name, value in tags.items()]
    )
    cloud.client("application-autoscaling").register_scalable_target(
        ServiceNamespace="dynamodb",
        ResourceId="table/others-tagged",
        ScalableDimension=WRITE,
        MinCapacity=4,
        MaxCapacity=500,
    )
    return "others-tagged"


def _hammer_one_key(cloud: LocalCloud) -> int:
    """Write to one key far more than a partition takes, within capacity; how many writes were throttled."""
    make: Any = boto3.client
    once = Config(retries={"mode": "standard", "total_max_attempts": 1})
    dynamodb = make("dynamodb", **cloud.client_arguments(), config=once)
    throttled = 0
    for _ in range(12):
        try:
            dynamodb.put_item(TableName="others-hot", Item={"pk": {"S": "hot"}, "x": {"S": "x" * 398_000}})
        except dynamodb.exceptions.ProvisionedThroughputExceededException:
            throttled += 1
    dynamodb.close()
    return throttled


def _highwater(cloud: LocalCloud, *arguments: str) -> None:
    command = [str(Path(sys.executable).parent / "highwater"), *arguments]
    subprocess.run(command, env=os.environ | cloud.environment(), check=True, capture_output=True)


def _hot_key_alarm(cloudwatch: Any) -> str:
    return next(
        str(alarm["StateValue"])
        for alarm in cloudwatch.describe_alarms()["MetricAlarms"]
        if alarm.get("MetricName") == "HotKeys"
    )


def test_hot_key_pause_tags_and_windows_of_a_global_table(cli: CdkCli, tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(OTHERS)
    cloud = cli.cloud
    autoscaling, cloudwatch = cloud.client("application-autoscaling"), cloud.client("cloudwatch")
    tagged = _make_tagged_table(cloud)
    opens = (cloud.status().now + 50 * MINUTE).replace(second=0, microsecond=0)
    closes = opens + 60 * MINUTE
    context = {"opens": f"{opens + 5 * MINUTE:%Y-%m-%dT%H:%M}", "closes": f"{closes:%Y-%m-%dT%H:%M}"}
    cli.deploy(app, context | {"min": "20"})
    assert (_write_floor(autoscaling, "others-world"), _write_floor(autoscaling, "others-hot")) == (20, 1_500)

    # hands off one; it is looked at again in the end
    _highwater(cloud, "pause", "others-paused")
    autoscaling.register_scalable_target(
        ServiceNamespace="dynamodb", ResourceId="table/others-paused", ScalableDimension=WRITE, MinCapacity=2
    )
    assert _until(cloud, lambda: _write_floor(autoscaling, tagged) == 21, 12), "a table found by its tag"
    assert _hot_key_alarm(cloudwatch) != "ALARM"
    assert _hammer_one_key(cloud) > 0
    assert _until(cloud, lambda: _hot_key_alarm(cloudwatch) == "ALARM", 20), "a hot key alarms"
    assert _write_floor(autoscaling, "others-hot") == 1_500, "and buys nothing"

    # a window that only the scaler holds; a deploy in it, which CloudFormation leaves at the base floor
    assert _write_floor(autoscaling, "others-world") == 20
    cloud.advance(opens - cloud.status().now - MINUTE)
    assert _until(cloud, lambda: _write_floor(autoscaling, "others-world") == 333, 4)
    cli.deploy(app, context | {"min": "23"})
    assert _until(cloud, lambda: _write_floor(autoscaling, "others-world") == 333, 3), "looked at after the deploy"
    cloud.advance(closes - cloud.status().now - MINUTE)
    assert _until(cloud, lambda: _write_floor(autoscaling, "others-world") == 23, 8)

    assert _write_floor(autoscaling, "others-paused") == 2, "left alone all the time"
    _highwater(cloud, "resume", "others-paused")
    assert _until(cloud, lambda: _write_floor(autoscaling, "others-paused") == 12, 12)
    for one in (autoscaling, cloudwatch):
        one.close()
