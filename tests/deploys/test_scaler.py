"""The scaler end to end: real `cdk deploy`, its real asset, real traffic, by the local cloud's clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

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
from cdk_highwater import Capacity, HighWaterTable, ThrottleAwareScaler, Window

app = cdk.App()
tables = cdk.Stack(app, "Tables")
orders = HighWaterTable(
    tables,
    "Orders",
    table_name="scaled-orders",
    partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
    read=Capacity.autoscaled(min=5, max=50, target_utilization_percent=90),
    write=Capacity.autoscaled(min=int(app.node.get_context("min")), max=300, target_utilization_percent=90),
    deletion_protection=False,
)
if app.node.get_context("scaled") == "yes":
    ThrottleAwareScaler(tables, "Scaler").manage(orders)
app.synth()
"""
MINUTE = timedelta(minutes=1)
_SPEED = 20


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CdkCli]:
    folder = tmp_path_factory.mktemp("scaled")
    with LocalCloud(log=folder / "server.log", speed=_SPEED) as cloud:
        made = CdkCli(cloud, folder)
        made.run("bootstrap", f"aws://{cloud.environment()['CDK_DEFAULT_ACCOUNT']}/us-east-1")
        yield made


def _until(cloud: LocalCloud, what: Callable[[], bool], minutes: int) -> bool:
    """Wait until that holds, at most so many minutes of the cloud."""
    end = cloud.status().now + minutes * MINUTE
    while cloud.status().now < end:
        if what():
            return True
        time.sleep(0.1)
    return False


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
    start = cloud.status().now
    load = Load(cloud.control, "scaled-orders", steady(0, 60, 6 * MINUTE, start))
    report = load.run()
    assert report.total(Dimension.WRITE, "throttled") > 0, "the burst bucket of 12 units holds for a minute"
    assert _until(cloud, lambda: _floor(autoscaling) >= 60, 6), "the alarm did not bring the scaler about"
    raised = _floor(autoscaling)
    # cautious after the jump: at 65 %
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
