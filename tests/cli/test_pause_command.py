"""`highwater pause` of a table whose capacity somebody set outside the bounds: nothing moves unless it may."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from click.testing import CliRunner

from highwater.cli.pause import pause
from highwater.core import Dimension
from highwater.core.names import TargetName
from highwater_lab.local import LocalCloud
from tests.aws.bench import Call, refusal
from tests.command import Command
from tests.handlers.stage import Stage
from tests.memory_aws.wire import at

pytestmark = pytest.mark.xdist_group("cloud-scaler")


def _set_capacity(stage: Stage, table: str, read: int, write: int) -> None:
    units = {"ReadCapacityUnits": read, "WriteCapacityUnits": write}
    stage.client("dynamodb").update_table(TableName=table, ProvisionedThroughput=units)


def _suspended(stage: Stage, table: str) -> list[bool]:
    found = stage.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="dynamodb", ResourceIds=[f"table/{table}"]
    )["ScalableTargets"]
    return [any(target.get("SuspendedState", {}).values()) for target in found]


def test_pause_that_would_move_capacity_is_refused_and_says_what_would_move(stage: Stage, highwater: Command) -> None:
    table = stage.table()
    _set_capacity(stage, table, 3, 1_000)
    done = highwater("pause", table)
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        f"highwater: {table}: pausing would change capacity at once: table read would be raised from 3 units/s to its "
        "floor of 7, table write would be lowered from 1,000 units/s to its ceiling of 400; change the bounds first, "
        "or give --yes to pause all the same\n",
    )
    assert (stage.capacity(table), _suspended(stage, table)) == ((3, 1_000), [False, False])


def test_yes_pauses_and_moves_capacity(stage: Stage, highwater: Command) -> None:
    table = stage.table()
    _set_capacity(stage, table, 3, 1_000)
    done = highwater("pause", table, "--yes")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{table}: 2 targets paused\n", "")
    assert (stage.capacity(table), _suspended(stage, table)) == ((7, 400), [True, True])


def test_index_outside_its_bounds_is_named(stage: Stage, highwater: Command) -> None:
    table = stage.table()
    stage.add_index(table, "by-day")
    stage.register(TargetName(table, "by-day", Dimension.WRITE), 2, 5)
    stage.client("dynamodb").update_table(
        TableName=table,
        GlobalSecondaryIndexUpdates=[
            {
                "Update": {
                    "IndexName": "by-day",
                    "ProvisionedThroughput": {"ReadCapacityUnits": 3, "WriteCapacityUnits": 6},
                }
            }
        ],
    )
    done = highwater("pause", table)
    assert (done.returncode, done.stderr) == (
        1,
        f"highwater: {table}: pausing would change capacity at once: index 'by-day' write would be lowered from 6 "
        "units/s to its ceiling of 5; change the bounds first, or give --yes to pause all the same\n",
    )


def test_capacity_that_is_set_after_the_pause_stays_until_scaling_is_resumed(stage: Stage, highwater: Command) -> None:
    table = stage.table()
    assert highwater("pause", table).returncode == 0
    _set_capacity(stage, table, 7, 1_000)
    assert stage.capacity(table) == (7, 1_000)
    assert highwater("resume", table).returncode == 0
    assert stage.capacity(table) == (7, 400)


def test_table_that_cannot_be_described_is_not_paused(stage: Stage, highwater: Command) -> None:
    table = stage.table()
    stage.client("dynamodb").delete_table(TableName=table)
    stage.made.remove(table)
    done = highwater("pause", table)
    assert (done.returncode, done.stderr) == (
        2,
        f"highwater: table '{table}' cannot be described, so it is not known whether pausing would move its capacity, "
        f"and nothing is paused: Requested resource not found: Table: {table} not found; to pause all the same, give "
        "--yes\n",
    )


def test_target_that_cannot_be_paused_after_others_leaves_no_doubt_which_are(
    stage: Stage, running: LocalCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in running.environment().items():
        monkeypatch.setenv(name, value)
    table, session = stage.table(), boto3.Session()
    refuse = at(2, refusal("AccessDeniedException", "not yours"))
    calls: list[Call] = []

    def send(request: Any, **_: Any) -> Any:
        calls.append(Call(len(calls) + 1, "RegisterScalableTarget", {}, list, request))
        return refuse(calls[-1])

    session.events.register("before-send.application-autoscaling.RegisterScalableTarget", send)
    # boto3 makes its clients of this session
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", session)
    done = CliRunner().invoke(pause, [table])
    assert done.stderr == (
        "Error: a request to Application Auto Scaling failed: An error occurred (AccessDeniedException) when calling "
        f"the RegisterScalableTarget operation: not yours; paused before: table/{table} read; run the command again "
        "for the rest\n"
    )
    assert _suspended(stage, table) == [True, False]
