"""What deploys do to live tables: edits inside an open window, marks, failures and rollbacks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, GlobalSecondaryIndex, HighWaterMark, HighWaterTable, PreWarm, Window
from tests.cdk_cli import CdkCli
from tests.constructs.template_view import key
from tests.deploys.apps import break_after, managed_table, plain_table, scaled, synthesize
from tests.deploys.live import describe, hours_around, marks, stack_status, targets, units

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud")]


def _windowed(stack: cdk.Stack, *, start: str, end: str, floor: int, ceiling: int | None = None) -> None:
    managed_table(
        stack,
        "Jobs",
        "windowed-jobs",
        read=scaled(12, 1_200),
        write=Capacity.fixed(units=34) if ceiling is None else scaled(34, ceiling),
        windows=[Window.daily("import", start=start, end=end, timezone="UTC", write_min=floor)],
    )


def _marked(stack: cdk.Stack, *, name: str, mark: int | None, is_broken: bool) -> None:
    table = plain_table(stack, "Jobs", f"marked-{name}", 5, 6)
    if mark is not None:
        throughput = dynamodb.WarmThroughput(read_units_per_second=mark, write_units_per_second=mark + 1)
        warm = PreWarm(stack, "Warm", table=table, warm_throughput=throughput)
        if is_broken:
            # CloudFormation rolls everything back
            break_after(stack, table.table_name, after=warm)


@pytest.fixture
def windowed(tmp_path: Path) -> Callable[..., Path]:
    return partial(synthesize, tmp_path, "Windowed", _windowed)


@pytest.fixture
def marked(tmp_path: Path) -> Callable[..., Path]:
    def app(name: str, mark: int | None, *, is_broken: bool = False) -> Path:
        return synthesize(tmp_path, f"Marked-{name}", _marked, name=name, mark=mark, is_broken=is_broken)

    return app


def test_deploy_that_edits_a_window_while_it_is_open_ends_with_its_floor(
    bootstrapped: CdkCli, windowed: Callable[..., Path]
) -> None:
    """CloudFormation registers the changed target at 34; without the floors' resource it would stay there."""
    cloud = bootstrapped.cloud
    window = hours_around(cloud)

    bootstrapped.deploy(windowed(**window, floor=700, ceiling=7_000))
    assert targets(cloud, "windowed-jobs")["table write"] == (700, 7_000)
    assert units(cloud, "windowed-jobs") == [(12, 700)]

    bootstrapped.deploy(windowed(**window, floor=900, ceiling=8_000))
    assert targets(cloud, "windowed-jobs")["table write"] == (900, 8_000)
    assert units(cloud, "windowed-jobs") == [(12, 900)]

    # the ceiling alone: the registration that this causes would drop the floor as well
    bootstrapped.deploy(windowed(**window, floor=900, ceiling=9_000))
    assert targets(cloud, "windowed-jobs")["table write"] == (900, 9_000)

    cloud.advance(timedelta(hours=3, minutes=5))
    assert targets(cloud, "windowed-jobs")["table write"] == (34, 9_000), "the window closed by its scheduled action"


def test_deploy_inside_a_window_that_raises_the_ceiling_lowers_nothing(
    bootstrapped: CdkCli, windowed: Callable[..., Path]
) -> None:
    """Auto scaling moves capacity into the bounds of each registration at once, by one of the day's decreases.

    The ceiling of fixed capacity is its floor, so every window raises it.
    """
    cloud = bootstrapped.cloud
    window = hours_around(cloud)
    bootstrapped.deploy(windowed(**window, floor=700))
    assert targets(cloud, "windowed-jobs")["table write"] == (700, 700)
    before = describe(cloud, "windowed-jobs")["ProvisionedThroughput"]

    bootstrapped.deploy(windowed(**window, floor=900))
    assert targets(cloud, "windowed-jobs")["table write"] == (900, 900)
    after = describe(cloud, "windowed-jobs")["ProvisionedThroughput"]
    assert (before["WriteCapacityUnits"], after["WriteCapacityUnits"]) == (700, 900)
    assert after["NumberOfDecreasesToday"] == before["NumberOfDecreasesToday"]


def test_mark_rises_and_a_lower_one_never_fails_a_deploy(bootstrapped: CdkCli, marked: Callable[..., Path]) -> None:
    cloud = bootstrapped.cloud
    for mark in (3_000, 2_000):
        bootstrapped.deploy(marked("rise", mark))
        assert marks(cloud, "marked-rise") == [(3_000, 3_001)]
        assert units(cloud, "marked-rise") == [(5, 6)], "the table is not left at the mark's price"


def test_rolled_back_deploy_leaves_no_table_at_the_mark(bootstrapped: CdkCli, marked: Callable[..., Path]) -> None:
    cloud = bootstrapped.cloud
    bootstrapped.deploy(marked("rollback", 1_000))
    done = bootstrapped.attempt_deploy(marked("rollback", 4_000, is_broken=True))
    assert done.returncode != 0
    assert "Maximum capacity cannot be less than minimum capacity" in done.stdout + done.stderr
    assert stack_status(cloud, "Marked-rollback") == "UPDATE_ROLLBACK_COMPLETE"
    assert units(cloud, "marked-rollback") == [(5, 6)]
    assert marks(cloud, "marked-rollback") == [(4_000, 4_001)], "a mark only rises"
    arn = describe(cloud, "marked-rollback")["TableArn"]
    tags = cloud.client("dynamodb").list_tags_of_resource(ResourceArn=arn)["Tags"]
    assert [tag["Key"] for tag in tags if tag["Key"].startswith("highwater:")] == []


def test_mark_above_the_quota_fails_the_deploy_with_the_reason_and_goes_back(
    bootstrapped: CdkCli, marked: Callable[..., Path]
) -> None:
    bootstrapped.deploy(marked("quota", None))
    done = bootstrapped.attempt_deploy(marked("quota", 41_000))
    assert done.returncode != 0
    assert "exceeds TableMaxReadCapacityUnits" in done.stdout + done.stderr
    assert units(bootstrapped.cloud, "marked-quota") == [(5, 6)]


def _kept(stack: cdk.Stack, *, is_broken: bool, **window: Any) -> None:
    """A table with the defaults of a HighWaterTable: retained and protected; its name is known."""
    by_day = GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"))
    table = HighWaterTable(
        stack,
        "Orders",
        table_name="kept-orders",
        partition_key=key(),
        read=scaled(12, 1_200),
        write=scaled(34, 7_000),
        indexes=[by_day],
        windows=[Window.daily("import", timezone="UTC", write_min=700, **window)],
        high_water_mark=HighWaterMark.none(),
    )
    if is_broken:
        break_after(stack, "kept-none", after=table.capacity)


def test_first_deploy_that_fails_leaves_no_capacity_and_its_table_comes_back_by_an_import(
    bootstrapped: CdkCli, tmp_path: Path
) -> None:
    """Nobody would look for 700 units that no stack has, and nothing would lower them."""
    cloud = bootstrapped.cloud
    window = hours_around(cloud)
    failed = bootstrapped.attempt_deploy(synthesize(tmp_path, "Kept", _kept, is_broken=True, **window))
    assert failed.returncode != 0
    assert stack_status(cloud, "Kept") == "ROLLBACK_COMPLETE"
    assert targets(cloud, "kept-orders") == {}
    assert units(cloud, "kept-orders") == [(1, 1), (1, 1)]

    mended = synthesize(tmp_path, "Kept", _kept, is_broken=False, **window)
    again = bootstrapped.attempt_deploy(mended)
    assert again.returncode != 0
    assert "already exists" in again.stdout + again.stderr

    done = bootstrapped.attempt_deploy(mended, "--import-existing-resources")
    assert done.returncode == 0, done.stdout + done.stderr
    assert units(cloud, "kept-orders") == [(12, 700), (12, 700)]
    bootstrapped.deploy(mended)
    assert targets(cloud, "kept-orders")["table write"] == (700, 7_000)
