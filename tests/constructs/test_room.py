"""What a stack, a role and an account have room for: more is told at synth, before CloudFormation fails halfway."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import (
    Capacity,
    GlobalSecondaryIndex,
    HighWaterMark,
    TableCapacity,
    ThrottleAwareScaler,
    Window,
    manage_capacity,
)
from tests.cdk_cli import ROOT
from tests.constructs.template_view import (
    READ,
    WRITE,
    TemplateView,
    global_table,
    key,
    messages,
    new_app,
    new_stack,
    placed_stack,
    refused,
    resolved,
    scalable_table,
)

FIXED = Capacity.fixed(5)
_LOAD = Window.daily("load", start="05:00", end="06:30", timezone="UTC", write_min=900)
_MOST, _MOST_RESOURCES = 10_240, 500
# tables that fit, tables that do not, characters of their names, and what the latter would take
ROOM = [(28, 32, 20, "10,673"), (24, 27, 60, "10,323"), (20, 24, 120, "10,785")]
_FIX = (
    "manage fewer tables in a stack, and give each stack a scaler of its own, as a scaler's stack has permissions for "
    "all its tables; docs/fleets.md tells how [highwater:tooManyTables]"
)


def _tables(stack: cdk.Stack, count: int, characters: int, **more: Any) -> list[TableCapacity]:
    """Tables with names of so many characters. How they are scaled makes no difference for permissions."""
    mark = HighWaterMark.units(read=900, write=5_000)
    names = [f"{number:02}-{'x' * (characters - 3)}" for number in range(count)]
    tables = [dynamodb.Table.from_table_name(stack, f"T{name[:2]}", name) for name in names]
    capacity: dict[str, Any] = {"read": FIXED, "write": FIXED, "high_water_mark": mark, **more}
    return [manage_capacity(table, **capacity) for table in tables]


def _characters(stack: cdk.Stack) -> int:
    """What IAM counts of the policies of the function's role, with the longest names of AWS's own."""
    pseudo = {"AWS::Partition": "aws-us-gov", "AWS::Region": "ap-southeast-1", "AWS::AccountId": "111122223333"}
    pseudo["AWS::StackId"] = "x" * 200

    policies = [
        policy["Properties"]["PolicyDocument"]
        for name, policy in TemplateView(stack).named("AWS::IAM::Policy").items()
        if name.startswith("HighwaterDeployment")
    ]
    return sum(
        len(json.dumps(resolved(policy, pseudo.__getitem__, lambda _: "x" * 100), separators=(",", ":")))
        for policy in policies
    )


@pytest.mark.parametrize(
    ("count", "more", "characters", "taken"), ROOM, ids=["short-names", "names-of-60", "names-of-120"]
)
def test_more_tables_than_a_role_has_room_for_are_refused(count: int, more: int, characters: int, taken: str) -> None:
    """11: what IAM counts, so that CloudFormation does not fail in the middle of the deploy."""
    stack = new_stack()
    _tables(stack, count, characters)
    assert messages(stack, "error") == []
    assert 0.85 * _MOST < _characters(stack) <= _MOST
    full = new_stack()
    _tables(full, more, characters)
    assert messages(full, "error") == [
        "Shop/HighwaterDeployment: tables of the stack: the permissions for the managed tables of the stack take up "
        f"to {taken} characters, and IAM allows the policies of one role 10,240; {_FIX}"
    ]


def test_tables_that_have_no_names_yet_count_with_the_longest_that_cloudformation_makes() -> None:
    stack = new_stack("A-stack-with-a-long-name-of-forty-characters")
    for number in range(30):
        table = dynamodb.Table(stack, f"TableNumber{number:02}", partition_key=key())
        manage_capacity(table, read=FIXED, write=FIXED)
    (told,) = messages(stack, "error")
    assert "tooManyTables" in told


def test_scaler_counts_its_tables_of_other_stacks() -> None:
    """11: its stack has permissions for all of them, so a scaler of a fleet is told at synth."""
    app = new_app()
    home = cdk.Stack(app, "Scaling")
    scaler = ThrottleAwareScaler(home, "Scaler")
    shops = [cdk.Stack(app, f"Shop{number}") for number in range(2)]
    for shop in shops:
        for capacity in _tables(shop, 18, 120, write=WRITE):
            scaler.add_table(capacity)
    assert [messages(shop, "error") for shop in shops] == [[], []]
    (told,) = messages(home, "error")
    assert told.startswith("Scaling/HighwaterDeployment: tables of the stack: the permissions for the managed tables")


def test_stack_has_room_for_500_resources_and_of_more_it_is_told_what_to_do() -> None:
    """11: the CDK's own message does not say what to do. A nested stack has 500 resources of its own."""
    app = new_app()
    stack = cdk.Stack(app, "Shops")
    nested = cdk.NestedStack(stack, "Nested")
    for number in range(60):
        cdk.CfnResource(nested, f"Topic{number}", type="AWS::SNS::Topic")
    indexes = [GlobalSecondaryIndex(index_name=f"by-{number}", partition_key=key(f"k{number}")) for number in range(9)]
    # 45 resources each
    for number in range(10):
        scalable_table(stack, f"Table{number}", windows=[_LOAD], indexes=indexes)
    assert 440 < len(TemplateView(stack).template["Resources"]) <= _MOST_RESOURCES
    scalable_table(stack, "Table10", windows=[_LOAD], indexes=indexes)
    told = (
        "ValidationFailedWithErrors: Validation failed with the following errors:\n"
        "  [Shops/HighwaterDeployment] Shops: the stack: with 11 tables that are managed there it has 504 resources, "
        "and CloudFormation allows 500; move tables to further stacks or to nested stacks, each with a scaler of its "
        "own if they have one; docs/fleets.md tells how many tables fit [highwater:tooManyResources]"
    )
    with refused(RuntimeError, told):
        app.synth(force=True)


def _global_tables(app: cdk.App, count: int, region: str) -> cdk.Stack:
    """A stack of tables with 40 targets each."""
    stack = placed_stack(app, f"Shops-{region}", region)
    indexes = [
        dynamodb.GlobalSecondaryIndexPropsV2(index_name=f"by-{index}", partition_key=key(f"k{index}"))
        for index in range(19)
    ]
    for number in range(count):
        table = global_table(stack, f"Table{number}", global_secondary_indexes=indexes)
        manage_capacity(table, read=READ, write=WRITE)
    return stack


def test_more_alarms_than_an_account_may_have_in_a_region_are_told() -> None:
    """11: over all stacks of the app, with those of scalers."""
    app = new_app()
    stack, elsewhere = _global_tables(app, 31, "eu-west-1"), _global_tables(app, 1, "eu-north-1")
    # 31 tables of 40 targets have 4,960 alarms of target tracking
    assert [messages(each, "warning") for each in (stack, elsewhere)] == [[], []]
    orders = placed_stack(app, "Orders", "eu-west-1")
    scaler = ThrottleAwareScaler(orders, "Scaler")
    for number in range(5):
        scaler.add_table(scalable_table(orders, f"T{number}"))
    app.synth(force=True)
    assert [messages(each, "warning") for each in (orders, elsewhere)] == [[], []]
    (told,) = messages(stack, "warning")
    assert told == (
        "Shops-eu-west-1/Table0/Capacity: the app's tables in the region of this one: target tracking and the scalers "
        "have 5,010 alarms there, and an account may have 5,000 in a region unless AWS has raised its quota; ask AWS "
        "for more alarms before the deploy, or use tagged tables of a ThrottleAwareScaler, which have no alarm of the "
        "scaler; docs/fleets.md tells how [highwater:tooManyAlarms]"
    )
    assert not messages(new_stack(), "warning")


@pytest.mark.cloud
def test_two_hundred_tables_with_two_indexes_fit_into_eight_stacks() -> None:
    """11: as docs/fleets.md says, in each about as many as its resources, and a role's policies, have room for."""
    command = [sys.executable, "-m", "benchmarks.synth", "--measure", "highwater", "--tables", "200"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    resources = json.loads(done.stdout.splitlines()[-1])["resources"]
    assert 0.8 * _MOST_RESOURCES < resources / 8 <= _MOST_RESOURCES
