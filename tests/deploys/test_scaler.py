"""The scaler end to end: real `cdk deploy`, its real asset, real traffic, by the local cloud's clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from botocore.config import Config

from cdk_highwater import HighWaterMark, TaggedTables, ThrottleAwareScaler, Window, manage_capacity
from highwater.core import Dimension
from highwater_lab.local import LocalCloud
from highwater_lab.local.load import Load, steady
from highwater_lab.policies.catalogue import run_policy
from tests.cdk_cli import CdkCli, bootstrapped_cloud
from tests.command import Command
from tests.deploys.apps import managed_table, scaled, synthesize, world_table
from tests.deploys.live import floor, set_floor, until
from tests.simulation.tables import table, tracked, writes

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud-scaled")]
MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CdkCli]:
    with bootstrapped_cloud(tmp_path_factory.mktemp("scaled")) as made:
        yield made


def _orders(stack: cdk.Stack, *, low: int, is_scaled: bool) -> None:
    orders = managed_table(stack, "Orders", "scaled-orders", read=scaled(5, 50, 90), write=scaled(low, 300, 90))
    if is_scaled:
        ThrottleAwareScaler(stack, "Scaler").add_table(orders)


def _simulated_rise() -> int:
    """Seconds from the surge to the first rise of the floor, in the simulator."""
    run = run_policy("highwater-floor", table(tracked(low=12, high=300, target=90)), writes(*[0] * 40, *[60] * 6))
    return next(at for at, floor, _ in run.target(Dimension.WRITE).bounds if floor > 12) - 40 * 60


def test_surge_moves_the_floor_a_hand_edit_and_a_deploy_are_healed_and_removal_leaves_the_plan(
    cli: CdkCli, tmp_path: Path
) -> None:
    cloud = cli.cloud
    cli.deploy(synthesize(tmp_path, "Tables", _orders, low=12, is_scaled=True))
    autoscaling = cloud.client("application-autoscaling")
    assert floor(cloud, "scaled-orders") == 12
    # a quarter of an hour and more of quiet, then 60 writes/s for six minutes
    cloud.advance(40 * MINUTE)
    # what is held, and until when, depends on the minute of the hour
    now = cloud.status().now
    cloud.advance((now + 60 * MINUTE).replace(minute=20, second=0) - now)
    start = cloud.status().now
    load = Load(cloud.control, "scaled-orders", steady(0, 60, 6 * MINUTE, start), requests_per_second=5)
    report = load.run()
    assert report.total(Dimension.WRITE, "throttled") > 0, "the burst bucket of 12 units holds for a minute"
    assert until(cloud, lambda: floor(cloud, "scaled-orders") >= 60, 6), "the alarm did not bring the scaler about"
    raised = floor(cloud, "scaled-orders")
    # headroom after the jump: at 70 %
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
    set_floor(cloud, "scaled-orders", 3)
    assert until(cloud, lambda: floor(cloud, "scaled-orders") >= 12, 12)

    # half an hour later nothing is left of the surge
    cloud.advance(45 * MINUTE)
    assert until(cloud, lambda: floor(cloud, "scaled-orders") == 12, 12)

    # a deploy with another base floor: the plan in SSM is the new one
    cli.deploy(synthesize(tmp_path, "Tables", _orders, low=17, is_scaled=True))
    assert until(cloud, lambda: floor(cloud, "scaled-orders") == 17, 12)

    set_floor(cloud, "scaled-orders", 88)
    cli.deploy(synthesize(tmp_path, "Tables", _orders, low=17, is_scaled=False))
    assert floor(cloud, "scaled-orders") == 17
    cloudwatch = cloud.client("cloudwatch")
    assert cloudwatch.describe_alarms(AlarmNamePrefix="Highwater ")["MetricAlarms"] == []
    for one in (autoscaling, cloudwatch):
        one.close()


def _others(stack: cdk.Stack, *, low: int, opens: str, closes: str) -> None:
    scaler = ThrottleAwareScaler(stack, "Scaler", tagged=TaggedTables())
    manage_capacity(
        world_table(stack, "others-world"),
        read=scaled(7, 70, 90),
        write=scaled(low, 900, 90),
        windows=[Window.once("load", start=opens, end=closes, timezone="UTC", write_min=333)],
        high_water_mark=HighWaterMark.none(),
        windows_held_by=scaler,
    )
    for name, write in (("others-hot", scaled(1_500, 4_000, 90)), ("others-paused", scaled(12, 300, 90))):
        mark = HighWaterMark.none()
        scaler.add_table(managed_table(stack, name, name, read=scaled(5, 50, 90), write=write, high_water_mark=mark))


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
    set_floor(cloud, "others-tagged", 4, MaxCapacity=500)
    return "others-tagged"


def _hammer_one_key(cloud: LocalCloud) -> int:
    """Write to one key far more than a partition takes, within capacity; how many writes were throttled."""
    dynamodb = cloud.client("dynamodb", Config(retries={"mode": "standard", "total_max_attempts": 1}))
    throttled = 0
    for _ in range(12):
        try:
            dynamodb.put_item(TableName="others-hot", Item={"pk": {"S": "hot"}, "x": {"S": "x" * 398_000}})
        except dynamodb.exceptions.ProvisionedThroughputExceededException:
            throttled += 1
    dynamodb.close()
    return throttled


def _hot_key_alarm(cloudwatch: Any) -> str:
    return next(
        str(alarm["StateValue"])
        for alarm in cloudwatch.describe_alarms()["MetricAlarms"]
        if alarm.get("MetricName") == "HotKeys"
    )


def test_hot_key_pause_tags_and_windows_of_a_global_table(cli: CdkCli, tmp_path: Path) -> None:
    cloud = cli.cloud
    cloudwatch, highwater = cloud.client("cloudwatch"), Command(tmp_path, cloud.environment())
    tagged = _make_tagged_table(cloud)
    opens = (cloud.status().now + 50 * MINUTE).replace(second=0, microsecond=0)
    closes = opens + 60 * MINUTE
    window: dict[str, Any] = {"opens": f"{opens + 5 * MINUTE:%Y-%m-%dT%H:%M}", "closes": f"{closes:%Y-%m-%dT%H:%M}"}
    cli.deploy(synthesize(tmp_path, "Others", _others, low=20, **window))
    assert (floor(cloud, "others-world"), floor(cloud, "others-hot")) == (20, 1_500)

    # hands off one; it is looked at again in the end
    assert highwater("pause", "others-paused").returncode == 0
    set_floor(cloud, "others-paused", 2)
    assert until(cloud, lambda: floor(cloud, tagged) == 21, 12), "a table found by its tag"
    assert _hot_key_alarm(cloudwatch) != "ALARM"
    assert _hammer_one_key(cloud) > 0
    assert until(cloud, lambda: _hot_key_alarm(cloudwatch) == "ALARM", 20), "a hot key alarms"
    assert floor(cloud, "others-hot") == 1_500, "and buys nothing"

    # a window that only the scaler holds; a deploy in it, which CloudFormation leaves at the base floor
    assert floor(cloud, "others-world") == 20
    cloud.advance(opens - cloud.status().now - MINUTE)
    assert until(cloud, lambda: floor(cloud, "others-world") == 333, 4)
    cli.deploy(synthesize(tmp_path, "Others", _others, low=23, **window))
    assert until(cloud, lambda: floor(cloud, "others-world") == 333, 3), "looked at after the deploy"
    cloud.advance(closes - cloud.status().now - MINUTE)
    assert until(cloud, lambda: floor(cloud, "others-world") == 23, 8)

    assert floor(cloud, "others-paused") == 2, "left alone all the time"
    assert highwater("resume", "others-paused").returncode == 0
    assert until(cloud, lambda: floor(cloud, "others-paused") == 12, 12)
    cloudwatch.close()
