"""What adoption adds to a stack: `highwater migrate` tells before what synth counts after."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import cx_api

from cdk_highwater import Capacity, ThrottleAwareScaler, manage_capacity
from tests.command import Command

KEY = dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING)
TABLES = ("Fixed", "Scaled", "World")
FOLLOW = Capacity.autoscaled(min_capacity=5, max_capacity=50)


def _scaled(stack: cdk.Stack) -> dynamodb.Table:
    """A table with an index, three of whose four targets are scaled, one of these without a policy."""
    table = dynamodb.Table(stack, "Scaled", partition_key=KEY, read_capacity=13, write_capacity=14)
    table.add_global_secondary_index(index_name="by-owner", partition_key=KEY, read_capacity=15, write_capacity=16)
    for scaled in (
        table.auto_scale_write_capacity(min_capacity=21, max_capacity=210),
        table.auto_scale_global_secondary_index_read_capacity("by-owner", min_capacity=22, max_capacity=220),
    ):
        scaled.scale_on_utilization(target_utilization_percent=70)
    table.auto_scale_global_secondary_index_write_capacity("by-owner", min_capacity=23, max_capacity=230)
    return table


def _stack(folder: Path, tables: Iterable[str], *, is_scaled: bool) -> tuple[cdk.Stack, dict[str, dynamodb.ITable]]:
    stack = cdk.Stack(cdk.App(outdir=str(folder)), "Shop", env=cdk.Environment(account="1" * 12, region="eu-west-1"))
    made: dict[str, dynamodb.ITable] = {}
    for name in tables:
        if name == "World":
            billing = dynamodb.Billing.provisioned(
                read_capacity=dynamodb.Capacity.fixed(17),
                write_capacity=dynamodb.Capacity.autoscaled(max_capacity=180),
            )
            made[name] = dynamodb.TableV2(stack, name, partition_key=KEY, billing=billing)
        elif name == "Scaled" and is_scaled:
            made[name] = _scaled(stack)
        else:
            made[name] = dynamodb.Table(stack, name, partition_key=KEY, read_capacity=11, write_capacity=12)
            if name == "Scaled":
                made[name].add_global_secondary_index(index_name="by-owner", partition_key=KEY)  # type: ignore[attr-defined]
    return stack, made


def _written(stack: cdk.Stack) -> tuple[dict[str, str], list[str]]:
    """The types of a stack's resources, and what Highwater says that it adds."""
    assembly = stack.node.root.synth()  # type: ignore[attr-defined]
    artifact = assembly.get_stack_by_name("Shop")
    level = cx_api.SynthesisMessageLevel.INFO
    told = [
        str(each.entry.data) for each in artifact.messages if each.level is level and "added]" in str(each.entry.data)
    ]
    return {name: each["Type"] for name, each in artifact.template["Resources"].items()}, told


@pytest.mark.parametrize("with_scaler", [False, True])
@pytest.mark.parametrize("tables", [TABLES, ("Fixed",), ("Scaled",), ("World",)], ids="-".join)
def test_migrate_tells_what_synth_counts(
    command: Command, tmp_path: Path, tables: tuple[str, ...], *, with_scaler: bool
) -> None:
    before, _ = _written(_stack(tmp_path / "before", tables, is_scaled=True)[0])
    migrated = json.loads(command("migrate", "before", "--json").stdout)
    (added,) = migrated["added"]
    stack, made = _stack(tmp_path / "after", tables, is_scaled=False)
    code = "\n".join(
        re.sub(r"(?m)^manage_capacity", "managed[len(managed)] = manage_capacity", each["code"])
        for each in migrated["tables"]
    )
    managed: dict[int, object] = {}
    exec(code, {"managed": managed} | {name.lower(): table for name, table in made.items()})  # noqa: S102 - that is the test
    with_scaler &= tables != ("Fixed",)
    if with_scaler:
        scaler = ThrottleAwareScaler(stack, "Scaler")
        for name, each in zip(tables, managed.values(), strict=True):
            if name != "Fixed":
                scaler.add_table(each)
    after, told = _written(stack)
    resources = added["resources"] + (added["scaler_resources"] if with_scaler else 0)
    alarms = sum(each == "AWS::CloudWatch::Alarm" for each in after.values())
    assert added["tables"] == len(tables)
    assert len(after) - len(before) == resources - added["leaving"]
    assert alarms == (added["scaler_alarms"] if with_scaler else 0)
    counted = [re.search(r" add (\d+) resources(?:, (\d+) of them alarms)?", text) for text in told]
    expected = [(str(resources), str(alarms) if alarms else None)] if resources else []
    assert [each.groups() for each in counted if each is not None] == expected


def test_stack_that_has_managed_tables_has_the_function_already(command: Command, tmp_path: Path) -> None:
    stack, made = _stack(tmp_path / "app", ("Fixed", "Other"), is_scaled=True)
    manage_capacity(made["Fixed"], read=FOLLOW, write=FOLLOW)
    _written(stack)
    done = command("migrate", "app")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-2:] == [
        "Shop: 5 resources come with 1 managed table.",
        "Where AWS Config records continuously, each change of capacity is an item of the table, and two of each "
        "alarm of target tracking: highwater rehearse counts them, and docs/cost.md tells what to leave out.",
    ]


def test_targets_that_leave_are_told(command: Command, tmp_path: Path) -> None:
    _written(_stack(tmp_path / "app", ("Scaled",), is_scaled=True)[0])
    assert command("migrate", "app").stdout.splitlines()[-2] == (
        "Shop: 17 resources come with 1 managed table, and 5 leave; with a ThrottleAwareScaler 31 more, 15 of them "
        "alarms at 0.10 USD a month."
    )
