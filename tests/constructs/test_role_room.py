"""How many tables the role of the function for deploys has room for: a stack of more is refused at synth."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, HighWaterMark, TableCapacity, ThrottleAwareScaler, manage_capacity
from tests.constructs.template_view import WRITE, TemplateView, key, messages, new_app, new_stack

FIXED = Capacity.fixed(5)
_MOST = 10_240
# tables that fit, tables that do not, characters of their names, and what the latter would take
ROOM = [(28, 32, 20, "10,664"), (24, 27, 60, "10,314"), (20, 24, 120, "10,776")]
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

    def written(value: Any) -> Any:
        if isinstance(value, list):
            return [written(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "Ref" in value:
            return pseudo[value["Ref"]]
        if "Fn::Join" in value:
            return "".join(written(value["Fn::Join"][1]))
        if "Fn::GetAtt" in value:
            return "x" * 100
        return {name: written(each) for name, each in value.items()}

    policies = [
        policy["Properties"]["PolicyDocument"]
        for name, policy in TemplateView(stack).named("AWS::IAM::Policy").items()
        if name.startswith("HighwaterDeployment")
    ]
    return sum(len(json.dumps(written(policy), separators=(",", ":"))) for policy in policies)


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
