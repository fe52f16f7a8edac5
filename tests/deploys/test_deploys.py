"""What deploys do to live tables: edits inside an open window, marks, failures and rollbacks."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from tests.cdk_cli import CdkCli

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud")]

WINDOWED_APP = """
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from cdk_highwater import Capacity, HighWaterTable, Window

app = cdk.App()
stack = cdk.Stack(app, "Windowed")
HighWaterTable(
    stack,
    "Jobs",
    table_name="windowed-jobs",
    partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
    read=Capacity.autoscaled(min_capacity=12, max_capacity=1_200),
    write=Capacity.autoscaled(min_capacity=34, max_capacity=int(app.node.get_context("ceiling")))
    if app.node.try_get_context("ceiling")
    else Capacity.fixed(units=34),
    windows=[
        Window.daily(
            "import",
            start=app.node.get_context("start"),
            end=app.node.get_context("end"),
            timezone="UTC",
            write_min=int(app.node.get_context("floor")),
        )
    ],
)
app.synth()
"""

MARKED_APP = """
import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_dynamodb as dynamodb
from cdk_highwater import PreWarm

app = cdk.App()
name, mark = (app.node.get_context(key) for key in ("name", "mark"))
stack = cdk.Stack(app, f"Marked-{name}")
table = dynamodb.Table(
    stack,
    "Jobs",
    table_name=f"marked-{name}",
    partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
    read_capacity=5,
    write_capacity=6,
)
if mark != "gone":
    warm = PreWarm(
        stack,
        "Warm",
        table=table,
        warm_throughput=dynamodb.WarmThroughput(read_units_per_second=int(mark), write_units_per_second=int(mark) + 1),
    )
if app.node.try_get_context("broken"):
    # min above max: the service refuses it, and CloudFormation rolls everything back
    broken = autoscaling.CfnScalableTarget(
        stack, "Broken", service_namespace="dynamodb", resource_id=f"table/{table.table_name}",
        scalable_dimension="dynamodb:table:ReadCapacityUnits", min_capacity=9, max_capacity=8,
    )
    broken.node.add_dependency(warm)
app.synth()
"""


@pytest.fixture
def windowed_app(tmp_path: Path) -> Path:
    path = tmp_path / "windowed.py"
    path.write_text(WINDOWED_APP)
    return path


@pytest.fixture
def marked_app(tmp_path: Path) -> Path:
    path = tmp_path / "marked.py"
    path.write_text(MARKED_APP)
    return path


def _write_target(cloud: LocalCloud, table: str) -> tuple[int, int]:
    target = cloud.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="dynamodb",
        ResourceIds=[f"table/{table}"],
        ScalableDimension="dynamodb:table:WriteCapacityUnits",
    )["ScalableTargets"][0]
    return target["MinCapacity"], target["MaxCapacity"]


def _table(cloud: LocalCloud, name: str) -> dict[str, Any]:
    table: dict[str, Any] = cloud.client("dynamodb").describe_table(TableName=name)["Table"]
    return table


def _capacity(cloud: LocalCloud, name: str) -> tuple[int, int]:
    throughput = _table(cloud, name)["ProvisionedThroughput"]
    return throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]


def _mark(cloud: LocalCloud, name: str) -> tuple[int, int]:
    warm = _table(cloud, name)["WarmThroughput"]
    return warm["ReadUnitsPerSecond"], warm["WriteUnitsPerSecond"]


def _clock(at: datetime) -> str:
    return f"{at:%H:%M}"


def test_deploy_that_edits_a_window_while_it_is_open_ends_with_its_floor(
    bootstrapped: CdkCli, windowed_app: Path
) -> None:
    """CloudFormation registers the changed target at 34; without the floors' resource it would stay there."""
    cloud = bootstrapped.cloud
    now = cloud.status().now
    window = {"start": _clock(now - timedelta(hours=1)), "end": _clock(now + timedelta(hours=3))}

    bootstrapped.deploy(windowed_app, window | {"floor": "700", "ceiling": "7000"})
    assert _write_target(cloud, "windowed-jobs") == (700, 7_000)
    assert _capacity(cloud, "windowed-jobs") == (12, 700)

    bootstrapped.deploy(windowed_app, window | {"floor": "900", "ceiling": "8000"})
    assert _write_target(cloud, "windowed-jobs") == (900, 8_000)
    assert _capacity(cloud, "windowed-jobs") == (12, 900)

    # the ceiling alone: the registration that this causes would drop the floor as well
    bootstrapped.deploy(windowed_app, window | {"floor": "900", "ceiling": "9000"})
    assert _write_target(cloud, "windowed-jobs") == (900, 9_000)

    cloud.advance(timedelta(hours=3, minutes=5))
    assert _write_target(cloud, "windowed-jobs") == (34, 9_000), "the window closed by its scheduled action"


def test_deploy_inside_a_window_that_raises_the_ceiling_lowers_nothing(
    bootstrapped: CdkCli, windowed_app: Path
) -> None:
    """Auto scaling moves capacity into the bounds of each registration at once, by one of the day's decreases.

    The ceiling of fixed capacity is its floor, so every window raises it.
    """
    cloud = bootstrapped.cloud
    now = cloud.status().now
    window = {"start": _clock(now - timedelta(hours=1)), "end": _clock(now + timedelta(hours=3))}
    bootstrapped.deploy(windowed_app, window | {"floor": "700"})
    assert _write_target(cloud, "windowed-jobs") == (700, 700)
    before = _table(cloud, "windowed-jobs")["ProvisionedThroughput"]

    bootstrapped.deploy(windowed_app, window | {"floor": "900"})
    assert _write_target(cloud, "windowed-jobs") == (900, 900)
    after = _table(cloud, "windowed-jobs")["ProvisionedThroughput"]
    assert (before["WriteCapacityUnits"], after["WriteCapacityUnits"]) == (700, 900)
    assert after["NumberOfDecreasesToday"] == before["NumberOfDecreasesToday"]


def test_mark_rises_and_a_lower_one_never_fails_a_deploy(bootstrapped: CdkCli, marked_app: Path) -> None:
    cloud = bootstrapped.cloud
    table = "marked-rise"
    arguments = {"name": "rise"}

    bootstrapped.deploy(marked_app, arguments | {"mark": "3000"})
    assert _mark(cloud, table) == (3_000, 3_001)
    assert _capacity(cloud, table) == (5, 6), "the table is not left at the mark's price"

    bootstrapped.deploy(marked_app, arguments | {"mark": "2000"})
    assert _mark(cloud, table) == (3_000, 3_001)
    assert _capacity(cloud, table) == (5, 6)


def test_rolled_back_deploy_leaves_no_table_at_the_mark(bootstrapped: CdkCli, marked_app: Path) -> None:
    cloud = bootstrapped.cloud
    arguments = {"name": "rollback"}
    bootstrapped.deploy(marked_app, arguments | {"mark": "1000"})
    done = bootstrapped.attempt(
        "deploy",
        "--all",
        "--require-approval",
        "never",
        app=marked_app,
        context=arguments | {"mark": "4000", "broken": "yes"},
    )
    assert done.returncode != 0
    assert "Maximum capacity cannot be less than minimum capacity" in done.stdout + done.stderr
    stack = cloud.client("cloudformation").describe_stacks(StackName="Marked-rollback")["Stacks"][0]
    assert stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert _capacity(cloud, "marked-rollback") == (5, 6)
    assert _mark(cloud, "marked-rollback") == (4_000, 4_001), "a mark only rises"
    tags = cloud.client("dynamodb").list_tags_of_resource(ResourceArn=_table(cloud, "marked-rollback")["TableArn"])[
        "Tags"
    ]
    assert [tag["Key"] for tag in tags if tag["Key"].startswith("highwater:")] == []


def test_mark_above_the_quota_fails_the_deploy_with_the_reason_and_goes_back(
    bootstrapped: CdkCli, marked_app: Path
) -> None:
    cloud = bootstrapped.cloud
    arguments = {"name": "quota"}
    bootstrapped.deploy(marked_app, arguments | {"mark": "gone"})
    done = bootstrapped.attempt(
        "deploy", "--all", "--require-approval", "never", app=marked_app, context=arguments | {"mark": "41000"}
    )
    assert done.returncode != 0
    assert "exceeds TableMaxReadCapacityUnits" in done.stdout + done.stderr
    assert _capacity(cloud, "marked-quota") == (5, 6)
