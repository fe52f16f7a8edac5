"""Reverts of drift, and deploys that set the units of the template: what tables have then, and what heals them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from cdk_highwater import Capacity, GlobalSecondaryIndex, HighWaterMark, OnDemandTable, ThrottleAwareScaler, Window
from highwater_lab.local import LocalCloud
from tests.cdk_cli import CdkCli, bootstrapped_cloud
from tests.command import Command
from tests.constructs.template_view import key
from tests.deploys.apps import break_after, managed_table, plain_table, scaled, synthesize
from tests.deploys.live import describe, hours_around, targets, units, until

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud-drift")]


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CdkCli]:
    with bootstrapped_cloud(tmp_path_factory.mktemp("drift"), has_instant_updates=True) as made:
        yield made


def _drifting(
    stack: cdk.Stack, *, name: str, start: str, end: str, is_scaled: bool = False, asked: str | None = None
) -> None:
    if asked is not None:
        stack.node.set_context("highwater:setFloors", asked)
    by_day = GlobalSecondaryIndex(
        index_name="by-day", partition_key=key("day"), read=scaled(7, 70), write=scaled(8, 900)
    )
    table = managed_table(
        stack,
        "Orders",
        name,
        read=scaled(12, 1_200),
        write=scaled(34, 7_000),
        indexes=[by_day],
        windows=[Window.daily("import", start=start, end=end, timezone="UTC", write_min=700)],
        high_water_mark=HighWaterMark.none(),
    )
    if is_scaled:
        scaler = ThrottleAwareScaler(stack, "Scaler")
        scaler.add_table(table)
        scaler.add_direct_table(
            plain_table(stack, "Direct", f"{name}-direct", 3, 4), read=scaled(15, 90), write=scaled(21, 90)
        )


def _revert(cli: CdkCli, app: Path) -> str:
    done = cli.attempt_deploy(app, "--revert-drift")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def _floors(cloud: LocalCloud, table: str) -> dict[str, int]:
    return {name: low for name, (low, _) in targets(cloud, table).items()}


OPEN = {"table read": 12, "table write": 700, "by-day read": 7, "by-day write": 700}
BASE = OPEN | {"table write": 34, "by-day write": 8}


def test_revert_closes_the_window_and_takes_indexes_to_one_unit_until_they_are_resumed_and_deployed(
    cli: CdkCli, tmp_path: Path, command: Command
) -> None:
    """AWS leaves the table's own capacity, as a target of the stack scales it; of indexes it says nothing."""
    cloud = cli.cloud
    app = synthesize(tmp_path, "Drift", _drifting, name="drift", **hours_around(cloud))
    cli.deploy(app)
    assert (_floors(cloud, "drift"), units(cloud, "drift")) == (OPEN, [(12, 700), (7, 700)])

    _revert(cli, app)
    # a target that had drifted too was registered again, and has its base floor
    assert (_floors(cloud, "drift"), units(cloud, "drift")) == (BASE, [(12, 700), (1, 8)])

    environment: Any = cloud.environment()
    done = command("resume", "drift", **environment)
    assert done.stdout == "drift: 4 targets resumed\n"
    assert units(cloud, "drift") == [(12, 700), (7, 8)], "the registered floors, which are the base floors"

    # nothing in the template has changed, so this changes nothing
    cli.deploy(app)
    assert _floors(cloud, "drift") == BASE
    cli.deploy(synthesize(tmp_path, "Drift", _drifting, name="drift", asked="1", **hours_around(cloud)))
    assert (_floors(cloud, "drift"), units(cloud, "drift")) == (OPEN, [(12, 700), (7, 700)])


def test_scaler_heals_what_a_revert_did(cli: CdkCli, tmp_path: Path) -> None:
    cloud = cli.cloud
    app = synthesize(tmp_path, "Scaled", _drifting, name="scaled", is_scaled=True, **hours_around(cloud))
    cli.deploy(app)
    assert until(cloud, lambda: units(cloud, "scaled-direct") == [(15, 21)], 6)
    cloud.step(60)
    decreases = describe(cloud, "scaled-direct")["ProvisionedThroughput"]["NumberOfDecreasesToday"]

    _revert(cli, app)
    assert units(cloud, "scaled") == [(12, 700), (1, 8)]
    direct = describe(cloud, "scaled-direct")["ProvisionedThroughput"]
    assert (direct["ReadCapacityUnits"], direct["WriteCapacityUnits"]) == (3, 4), "no target scales it"
    assert direct["NumberOfDecreasesToday"] == decreases + 1

    assert until(cloud, lambda: units(cloud, "scaled") == [(12, 700), (7, 700)], 6), "its next round was missed"
    assert _floors(cloud, "scaled") == OPEN
    assert until(cloud, lambda: units(cloud, "scaled-direct") == [(15, 21)], 6)


def test_revert_without_drift_has_nothing_to_do(cli: CdkCli, tmp_path: Path) -> None:
    app = synthesize(tmp_path, "Steady", lambda stack: plain_table(stack, "Jobs", "steady", 5, 6))
    cli.deploy(app)
    assert "(no changes)" in _revert(cli, app)


FIXED, FOLLOWS = Capacity.fixed(units=70), scaled(60, 600)


def _resetting(stack: cdk.Stack, *, name: str, units: int, fails: bool = False, is_on_demand: bool = False) -> None:
    if is_on_demand:
        table: Any = OnDemandTable(
            stack,
            "Orders",
            table_name=name,
            partition_key=key(),
            deletion_protection=False,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
    else:
        initial = {"initial_read_units": units, "initial_write_units": units}
        table = managed_table(stack, "Orders", name, read=FIXED, write=FOLLOWS, **initial)
    if fails:
        break_after(stack, "nothing", after=table.node.default_child)


@pytest.mark.parametrize("rollback", ["--rollback", "--no-rollback"])
def test_deploy_that_sets_the_units_of_the_template_ends_with_the_floors_also_if_it_fails(
    cli: CdkCli, tmp_path: Path, rollback: str
) -> None:
    """It fails right after the table, before anything that refers to it."""
    cloud, name = cli.cloud, f"reset{rollback}"
    stack = f"Reset{rollback.title().replace('-', '')}"
    cli.deploy(synthesize(tmp_path, stack, _resetting, name=name, units=2))
    assert units(cloud, name) == [(70, 60)]
    cli.deploy(synthesize(tmp_path, stack, _resetting, name=name, units=5))
    assert units(cloud, name) == [(70, 60)]
    failed = cli.attempt_deploy(synthesize(tmp_path, stack, _resetting, name=name, units=3, fails=True), rollback)
    assert failed.returncode == 1
    assert until(cloud, lambda: units(cloud, name) == [(70, 60)], 2)


def test_table_that_a_failed_deploy_would_have_put_on_demand_is_resumed(
    cli: CdkCli, tmp_path: Path, command: Command
) -> None:
    """Nothing of ours is in the new template of the table, so it is rolled back to the units of the old one."""
    cloud = cli.cloud
    cli.deploy(synthesize(tmp_path, "Switch", _resetting, name="switch", units=2))
    app = synthesize(tmp_path, "Switch", _resetting, name="switch", units=2, is_on_demand=True, fails=True)
    assert cli.attempt_deploy(app).returncode == 1
    assert units(cloud, "switch") == [(2, 2)]
    environment: Any = cloud.environment()
    assert command("resume", "switch", **environment).stdout == "switch: 2 targets resumed\n"
    assert until(cloud, lambda: units(cloud, "switch") == [(70, 60)], 2)
