"""Deploys in CloudFormation's express mode: resources count as done before they are ready, and rollback is off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import aws_cdk as cdk
import pytest

from cdk_highwater import GlobalSecondaryIndex, HighWaterMark, ThrottleAwareScaler, Window
from tests.cdk_cli import CdkCli, bootstrapped_cloud
from tests.constructs.template_view import key
from tests.deploys.apps import break_after, managed_table, scaled, synthesize
from tests.deploys.live import describe, hours_around, marks, set_floor, stack_status, targets, units

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud-express")]


def _express(
    stack: cdk.Stack,
    *,
    start: str,
    end: str,
    name: str | None = None,
    floor: int = 700,
    ceiling: int = 7_000,
    partition: str = "pk",
    is_scaled: bool = False,
    is_broken: bool = False,
) -> None:
    by_day = GlobalSecondaryIndex(
        index_name="by-day", partition_key=key("day"), read=scaled(7, 70), write=scaled(8, 900)
    )
    table = managed_table(
        stack,
        "Jobs",
        name,
        partition_key=key(partition),
        read=scaled(12, 1_200),
        write=scaled(34, ceiling),
        indexes=[by_day],
        windows=[Window.daily("import", start=start, end=end, timezone="UTC", write_min=floor)],
        high_water_mark=HighWaterMark.units(read=13_000, write=5_000),
    )
    if is_scaled:
        ThrottleAwareScaler(stack, "Scaler").add_table(table)
    if is_broken:
        # after the table's targets and before its floors
        capacity = table.node.find_child("Capacity").node
        broken = break_after(stack, "express-none", after=capacity.find_child("Targets"))
        capacity.find_child("Floors").node.add_dependency(broken)


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CdkCli]:
    with bootstrapped_cloud(tmp_path_factory.mktemp("express")) as made:
        yield made


@pytest.fixture
def app(cli: CdkCli, tmp_path: Path) -> Callable[..., Path]:
    """The app of a stack, with a window that is open."""
    window = hours_around(cli.cloud)
    return lambda stack, **given: synthesize(tmp_path, stack, _express, **window, **given)


def test_new_table_gets_its_floors_and_mark_though_it_counts_as_done_while_it_is_created(
    cli: CdkCli, app: Callable[..., Path]
) -> None:
    cloud = cli.cloud
    done = cli.attempt_deploy(app("Express-new", name="express-new", is_scaled=True), "--express")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Resources still stabilizing" in done.stdout + done.stderr
    assert targets(cloud, "express-new") == {
        "table read": (12, 1_200),
        "table write": (700, 7_000),
        "by-day read": (7, 70),
        "by-day write": (700, 900),
    }
    assert describe(cloud, "express-new")["TableStatus"] == "ACTIVE"
    assert units(cloud, "express-new") == [(12, 700), (7, 700)]
    cloud.advance(timedelta(seconds=400))
    assert marks(cloud, "express-new") == [(13_000, 5_000), (13_000, 5_000)]
    # the scaler works: it raises a floor that somebody lowers
    set_floor(cloud, "express-new", 3)
    for _ in range(12):
        cloud.step(60)
    assert targets(cloud, "express-new")["table write"] == (700, 7_000)


def test_floors_hold_where_a_failed_deploy_is_taken_back(cli: CdkCli, app: Callable[..., Path]) -> None:
    """Nothing is rolled back: the deploy of the former template registers the targets with their base floors again."""
    cloud = cli.cloud
    former = app("Express-back", name="express-back")
    assert cli.attempt_deploy(former, "--express").returncode == 0
    assert targets(cloud, "express-back")["table write"] == (700, 7_000)

    wrong = app("Express-back", name="express-back", ceiling=8_000, floor=900, is_broken=True)
    failed = cli.attempt_deploy(wrong, "--express")
    assert failed.returncode != 0
    assert "Maximum capacity cannot be less than minimum capacity" in failed.stdout + failed.stderr
    assert stack_status(cloud, "Express-back") == "UPDATE_FAILED"
    cloud.step(60)
    assert targets(cloud, "express-back")["table write"] == (900, 8_000), "nothing else would open the window again"

    other = app("Express-back", name="express-back", ceiling=7_500)
    for mode, told in (
        ((), "Follow-up operations must use the same DeploymentConfig (mode=EXPRESS)"),
        (("--express", "--rollback"), "CloudFormation will not execute a change set with rollback enabled on it"),
    ):
        refused = cli.attempt_deploy(other, *mode)
        assert refused.returncode != 0
        assert told in refused.stdout + refused.stderr
    no_rollback = cli.attempt("rollback", "Express-back", app=former)
    assert no_rollback.returncode != 0
    assert "RollbackStack is not supported for stacks that were last updated using EXPRESS" in (
        no_rollback.stdout + no_rollback.stderr
    )

    back = cli.attempt_deploy(former, "--express", "--method=direct", "--no-rollback")
    assert back.returncode == 0, back.stdout + back.stderr
    assert stack_status(cloud, "Express-back") == "UPDATE_COMPLETE"
    cloud.step(60)
    assert targets(cloud, "express-back")["table write"] == (700, 7_000)
    # the policies lower it as always
    assert units(cloud, "express-back") == [(12, 900), (7, 900)]


def test_table_is_replaced_only_where_rollback_is_on(cli: CdkCli, app: Callable[..., Path]) -> None:
    """CloudFormation replaces nothing that it could not bring back."""
    cloud = cli.cloud

    def names() -> list[str]:
        return [name for name in cloud.client("dynamodb").list_tables()["TableNames"] if "Express-key-" in name]

    assert cli.attempt_deploy(app("Express-key"), "--express").returncode == 0
    (first,) = names()

    other = app("Express-key", partition="id")
    refused = cli.attempt_deploy(other, "--express", "--no-rollback")
    assert refused.returncode != 0
    told = "Change includes a replacement which cannot be deployed while rollback is disabled"
    assert told in refused.stdout + refused.stderr
    done = cli.attempt_deploy(other, "--express", "--rollback")
    assert done.returncode == 0, done.stdout + done.stderr
    (second,) = names()
    assert second != first
    cloud.step(60)
    assert targets(cloud, first) == {}
    assert targets(cloud, second)["table write"] == (700, 7_000)
    assert units(cloud, second) == [(12, 700), (7, 700)]

    gone = cli.attempt("destroy", "--all", "--force", "--express", app=other)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert names() == []
    assert targets(cloud, second) == {}
