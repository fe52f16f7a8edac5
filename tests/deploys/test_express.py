"""Deploys in CloudFormation's express mode: resources count as done before they are ready, and rollback is off."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from tests.cdk_cli import CdkCli
from tests.local.world import WRITE

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud-express")]

APP = """
import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_dynamodb as dynamodb
from cdk_highwater import Capacity, GlobalSecondaryIndex, HighWaterMark, HighWaterTable, ThrottleAwareScaler, Window

app = cdk.App()
given = app.node.try_get_context
name = given("name")
stack = cdk.Stack(app, f"Express-{name}")
table = HighWaterTable(
    stack,
    "Jobs",
    table_name=None if given("unnamed") else f"express-{name}",
    partition_key=dynamodb.Attribute(name=given("key") or "pk", type=dynamodb.AttributeType.STRING),
    read=Capacity.autoscaled(min_capacity=12, max_capacity=1_200),
    write=Capacity.autoscaled(min_capacity=34, max_capacity=int(given("ceiling"))),
    indexes=[
        GlobalSecondaryIndex(
            index_name="by-day",
            partition_key=dynamodb.Attribute(name="day", type=dynamodb.AttributeType.STRING),
            read=Capacity.autoscaled(min_capacity=7, max_capacity=70),
            write=Capacity.autoscaled(min_capacity=8, max_capacity=900),
        )
    ],
    windows=[
        Window.daily("import", start=given("start"), end=given("end"), timezone="UTC", write_min=int(given("floor")))
    ],
    high_water_mark=HighWaterMark.units(read=13_000, write=5_000),
    deletion_protection=False,
    removal_policy=cdk.RemovalPolicy.DESTROY,
)
if given("scaled"):
    ThrottleAwareScaler(stack, "Scaler").add_table(table)
if given("broken"):
    # min above max: the service refuses it, after the table's targets and before its floors
    broken = autoscaling.CfnScalableTarget(
        stack, "Broken", service_namespace="dynamodb", resource_id="table/express-none",
        scalable_dimension="dynamodb:table:ReadCapacityUnits", min_capacity=9, max_capacity=8,
    )
    capacity = table.node.find_child("Capacity").node
    broken.node.add_dependency(capacity.find_child("Targets"))
    capacity.find_child("Floors").node.add_dependency(broken)
app.synth()
"""


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CdkCli]:
    folder = tmp_path_factory.mktemp("express")
    with LocalCloud(log=folder / "server.log", clock="driven", is_strict=True) as cloud:
        made = CdkCli(cloud, folder)
        made.bootstrap()
        yield made


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "express.py"
    path.write_text(APP)
    return path


def _window(cloud: LocalCloud) -> dict[str, str]:
    """A window that opened an hour ago and is open for three more."""
    now = cloud.status().now
    return {"start": f"{now - timedelta(hours=1):%H:%M}", "end": f"{now + timedelta(hours=3):%H:%M}"}


def _express(cli: CdkCli, app: Path, context: dict[str, str], *more: str) -> subprocess.CompletedProcess[str]:
    """Deploy in express mode, however it ends."""
    asked = ("deploy", "--all", "--require-approval", "never", "--express", *more)
    return cli.attempt(*asked, app=app, context=context)


def _targets(cloud: LocalCloud, table: str) -> dict[str, tuple[int, int]]:
    found = cloud.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="dynamodb", ResourceIds=[f"table/{table}", f"table/{table}/index/by-day"]
    )["ScalableTargets"]
    return {
        each["ScalableDimension"].removeprefix("dynamodb:").removesuffix("CapacityUnits"): (
            each["MinCapacity"],
            each["MaxCapacity"],
        )
        for each in found
    }


def _table(cloud: LocalCloud, name: str) -> dict[str, Any]:
    found: dict[str, Any] = cloud.client("dynamodb").describe_table(TableName=name)["Table"]
    return found


def _capacities(table: dict[str, Any]) -> list[tuple[int, int]]:
    resources = [table, *table["GlobalSecondaryIndexes"]]
    throughputs = [resource["ProvisionedThroughput"] for resource in resources]
    return [(each["ReadCapacityUnits"], each["WriteCapacityUnits"]) for each in throughputs]


def _marks(table: dict[str, Any]) -> list[tuple[int, int]]:
    marks = [resource["WarmThroughput"] for resource in (table, *table["GlobalSecondaryIndexes"])]
    return [(each["ReadUnitsPerSecond"], each["WriteUnitsPerSecond"]) for each in marks]


def _status(cloud: LocalCloud, stack: str) -> str:
    return str(cloud.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"])


def test_new_table_gets_its_floors_and_mark_though_it_counts_as_done_while_it_is_created(
    cli: CdkCli, app: Path
) -> None:
    cloud = cli.cloud
    context = _window(cloud) | {"name": "new", "floor": "700", "ceiling": "7000", "scaled": "yes"}
    done = _express(cli, app, context)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Resources still stabilizing" in done.stdout + done.stderr
    assert _targets(cloud, "express-new") == {
        "table:Read": (12, 1_200),
        "table:Write": (700, 7_000),
        "index:Read": (7, 70),
        "index:Write": (700, 900),
    }
    table = _table(cloud, "express-new")
    assert (table["TableStatus"], _capacities(table)) == ("ACTIVE", [(12, 700), (7, 700)])
    cloud.advance(timedelta(seconds=400))
    assert _marks(_table(cloud, "express-new")) == [(13_000, 5_000), (13_000, 5_000)]
    # the scaler works: it raises a floor that somebody lowers
    cloud.client("application-autoscaling").register_scalable_target(
        ServiceNamespace="dynamodb", ResourceId="table/express-new", ScalableDimension=WRITE, MinCapacity=3
    )
    for _ in range(12):
        cloud.step(60)
    assert _targets(cloud, "express-new")["table:Write"] == (700, 7_000)


def test_floors_hold_where_a_failed_deploy_is_taken_back(cli: CdkCli, app: Path) -> None:
    """Nothing is rolled back: the deploy of the former template registers the targets with their base floors again."""
    cloud = cli.cloud
    context = _window(cloud) | {"name": "back", "floor": "700", "ceiling": "7000"}
    assert _express(cli, app, context).returncode == 0
    assert _targets(cloud, "express-back")["table:Write"] == (700, 7_000)

    failed = _express(cli, app, context | {"ceiling": "8000", "floor": "900", "broken": "yes"})
    assert failed.returncode != 0
    assert "Maximum capacity cannot be less than minimum capacity" in failed.stdout + failed.stderr
    assert _status(cloud, "Express-back") == "UPDATE_FAILED"
    cloud.step(60)
    assert _targets(cloud, "express-back")["table:Write"] == (900, 8_000), "nothing else would open the window again"

    for mode, told in (
        ((), "Follow-up operations must use the same DeploymentConfig (mode=EXPRESS)"),
        (("--express", "--rollback"), "CloudFormation will not execute a change set with rollback enabled on it"),
    ):
        asked = ("deploy", "--all", "--require-approval", "never", *mode)
        refused = cli.attempt(*asked, app=app, context=context | {"ceiling": "7500"})
        assert refused.returncode != 0
        assert told in refused.stdout + refused.stderr
    no_rollback = cli.attempt("rollback", "Express-back", app=app, context=context)
    assert no_rollback.returncode != 0
    assert "RollbackStack is not supported for stacks that were last updated using EXPRESS" in (
        no_rollback.stdout + no_rollback.stderr
    )

    back = _express(cli, app, context, "--method=direct", "--no-rollback")
    assert back.returncode == 0, back.stdout + back.stderr
    assert _status(cloud, "Express-back") == "UPDATE_COMPLETE"
    cloud.step(60)
    assert _targets(cloud, "express-back")["table:Write"] == (700, 7_000)
    # the policies lower it as always
    assert _capacities(_table(cloud, "express-back")) == [(12, 900), (7, 900)]


def test_table_is_replaced_only_where_rollback_is_on(cli: CdkCli, app: Path) -> None:
    """CloudFormation replaces nothing that it could not bring back."""
    cloud = cli.cloud
    context = _window(cloud) | {"name": "key", "floor": "700", "ceiling": "7000", "unnamed": "yes"}
    assert _express(cli, app, context).returncode == 0
    (first,) = _names(cloud, "Express-key-")

    context["key"] = "id"
    refused = _express(cli, app, context, "--no-rollback")
    assert refused.returncode != 0
    told = "Change includes a replacement which cannot be deployed while rollback is disabled"
    assert told in refused.stdout + refused.stderr
    done = _express(cli, app, context, "--rollback")
    assert done.returncode == 0, done.stdout + done.stderr
    (second,) = _names(cloud, "Express-key-")
    assert second != first
    cloud.step(60)
    assert _targets(cloud, first) == {}
    assert _targets(cloud, second)["table:Write"] == (700, 7_000)
    assert _capacities(_table(cloud, second)) == [(12, 700), (7, 700)]

    gone = cli.attempt("destroy", "--all", "--force", "--express", app=app, context=context)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert _names(cloud, "Express-key-") == []
    assert _targets(cloud, second) == {}


def _names(cloud: LocalCloud, prefix: str) -> list[str]:
    return [name for name in cloud.client("dynamodb").list_tables()["TableNames"] if name.startswith(prefix)]
