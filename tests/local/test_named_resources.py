"""What AWS refuses by the names of resources and by how many indexes change at once, in stacks and requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from highwater_lab.local.control import ACCOUNT, REGION
from tests.local.world import (
    Stack,
    World,
    attributes,
    client,
    index_definition,
    invalid,
    keyed,
    projecting,
    refused,
    unique,
    units,
)

MakeStack = Callable[[], Stack]


def _table(name: str, *indexes: str) -> dict[str, Any]:
    properties = {"TableName": name, **keyed("id", others=["city"] if indexes else [])}
    properties["ProvisionedThroughput"] = units(40, 41)
    if indexes:
        properties["GlobalSecondaryIndexes"] = [index_definition(index, 7, 8) for index in indexes]
    return {"Type": "AWS::DynamoDB::Table", "Properties": properties}


def _alarm(name: str) -> dict[str, Any]:
    watched = {"MetricName": "m", "Namespace": "n", "Statistic": "Sum", "Period": 60, "EvaluationPeriods": 1}
    compared = {"ComparisonOperator": "GreaterThanThreshold", "Threshold": 1}
    return {"Type": "AWS::CloudWatch::Alarm", "Properties": {"AlarmName": name} | watched | compared}


@pytest.mark.parametrize("resource", [_table, _alarm], ids=["table", "alarm"])
def test_name_that_is_taken_is_refused_in_another_stack(
    make_stack: MakeStack, resource: Callable[[str], dict[str, Any]]
) -> None:
    name = unique("taken")
    assert make_stack().deploy(Named=resource(name)) == ("CREATE_COMPLETE", [])
    assert make_stack().deploy(Named=resource(name)) == ("ROLLBACK_COMPLETE", [f"{name} already exists"])
    # the stack that failed has not taken it away
    assert make_stack().deploy(Named=resource(name))[1] == [f"{name} already exists"]


TOO_LONG = "x" * 256
UNMET = [
    ("ab", "have length greater than or equal to 3"),
    (TOO_LONG, "have length less than or equal to 255"),
    ("a b c", "satisfy regular expression pattern: [a-zA-Z0-9_.-]+"),
]
OF_DYNAMODB = "(Service: DynamoDb, Status Code: 400, ValidationException)"


@pytest.mark.parametrize(("name", "unmet"), UNMET[::2])
def test_name_that_no_table_can_have_is_refused(stack: Stack, name: str, unmet: str) -> None:
    reason = f"{invalid((name, 'tableName', unmet))} {OF_DYNAMODB}"
    assert stack.deploy(Named=_table(name)) == ("ROLLBACK_COMPLETE", [reason])


@pytest.mark.parametrize(("name", "unmet"), UNMET, ids=["short", "long", "blank"])
def test_name_that_no_index_can_have_is_refused_in_a_stack(make_stack: MakeStack, name: str, unmet: str) -> None:
    text = invalid((name, "globalSecondaryIndexes.1.member.indexName", unmet))
    assert make_stack().deploy(Table=_table(unique("indexed"), name)) == (
        "ROLLBACK_COMPLETE",
        [f"{text} {OF_DYNAMODB}"],
    )
    table, stack = unique("indexed"), make_stack()
    assert stack.deploy(Table=_table(table, "x" * 255)) == ("CREATE_COMPLETE", [])
    text = invalid((name, "globalSecondaryIndexUpdates.1.member.create.indexName", unmet))
    assert stack.deploy(Table=_table(table, "x" * 255, name)) == ("UPDATE_ROLLBACK_COMPLETE", [f"{text} {OF_DYNAMODB}"])


@pytest.mark.parametrize(("name", "unmet"), UNMET[1:], ids=["long", "blank"])
def test_name_that_no_index_can_have_is_refused(world: World, name: str, unmet: str) -> None:
    table = world.table(40, 41)
    place = "globalSecondaryIndexUpdates.1.member.create.indexName"
    with refused("ValidationException", invalid((name, place, unmet))):
        world.dynamodb.update_table(
            TableName=table,
            AttributeDefinitions=attributes("id", "city"),
            GlobalSecondaryIndexUpdates=[{"Create": index_definition(name, 7, 8)}],
        )
    properties = _table(unique("indexed"), name)["Properties"]
    with refused("ValidationException", invalid((name, "globalSecondaryIndexes.1.member.indexName", unmet))):
        world.dynamodb.create_table(**properties)
    del properties["GlobalSecondaryIndexes"]
    properties |= keyed("id", "day", others=["city"])
    with refused("ValidationException", invalid((name, "localSecondaryIndexes.1.member.indexName", unmet))):
        world.dynamodb.create_table(**properties, LocalSecondaryIndexes=[projecting(name, "id", "city")])


def test_everything_that_is_wrong_with_the_names_of_indexes_is_told_at_once(world: World) -> None:
    name, other = "x" * 256 + "!", "a b"
    first, third = (f"globalSecondaryIndexes.{number}.member.indexName" for number in (1, 3))
    (_, too_long), (_, unmatched) = UNMET[1:]
    with refused(
        "ValidationException", invalid((name, first, too_long), (name, first, unmatched), (other, third, unmatched))
    ):
        world.dynamodb.create_table(**_table(unique("indexed"), name, "fits", other)["Properties"])


@pytest.mark.parametrize(
    ("before", "after"),
    [([], ["a-index", "b-index"]), (["a-index"], ["b-index"]), (["a-index", "b-index"], [])],
    ids=["two-new", "one-for-another", "two-gone"],
)
def test_stack_changes_one_index_of_a_table_in_an_update(
    stack: Stack, world: World, before: list[str], after: list[str]
) -> None:
    name = unique("indexed")
    assert stack.deploy(Table=_table(name, *before)) == ("CREATE_COMPLETE", [])
    assert stack.deploy(Table=_table(name, *after)) == (
        "UPDATE_ROLLBACK_COMPLETE",
        ["Cannot perform more than one GSI creation or deletion in a single update"],
    )
    found = world.described(name).get("GlobalSecondaryIndexes", [])
    assert [index["IndexName"] for index in found] == before


def test_stack_adds_indexes_one_after_another_and_makes_a_table_with_many(stack: Stack) -> None:
    name = unique("indexed")
    assert stack.deploy(Table=_table(name)) == ("CREATE_COMPLETE", [])
    assert stack.deploy(Table=_table(name, "a-index")) == ("UPDATE_COMPLETE", [])
    assert stack.deploy(Table=_table(name, "a-index", "b-index")) == ("UPDATE_COMPLETE", [])
    # another name makes another table
    assert stack.deploy(Table=_table(unique("indexed"), "c-index", "d-index")) == ("UPDATE_COMPLETE", [])


@pytest.mark.parametrize("updates", [("Create", "Create"), ("Delete", "Create")], ids=["two-new", "one-for-another"])
def test_update_table_changes_one_index(world: World, updates: tuple[str, ...]) -> None:
    table = world.table(40, 41, {"old-index": (7, 8)})
    asked = [
        {kind: index_definition(f"index-{number}", 7, 8) if kind == "Create" else {"IndexName": "old-index"}}
        for number, kind in enumerate(updates)
    ]
    text = "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
    with refused("LimitExceededException", text):
        world.dynamodb.update_table(
            TableName=table, AttributeDefinitions=attributes("id", "city"), GlobalSecondaryIndexUpdates=asked
        )
    assert [index["IndexName"] for index in world.described(table)["GlobalSecondaryIndexes"]] == ["old-index"]


@pytest.fixture
def ssm(world: World) -> Any:
    return client(world.cloud, "ssm")


PREFIX = len(f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/")


def test_parameter_has_a_longest_name(ssm: Any) -> None:
    most = "/" + "x" * (1_011 - PREFIX)
    ssm.put_parameter(Name=most, Value="v", Type="String")
    with refused("ValidationException", "Parameter name: the full ARN has 1012 characters; at most 1011 are allowed."):
        ssm.put_parameter(Name=most + "x", Value="v", Type="String")


def test_parameter_has_a_deepest_name(ssm: Any) -> None:
    ssm.put_parameter(Name="/" + "/".join("abcdefghijklmno"), Value="v", Type="String")
    with refused(
        "HierarchyLevelLimitExceededException",
        "A hierarchy can have a maximum of 15 levels. For more information, see Requirements and constraints for "
        "parameter names in the AWS Systems Manager User Guide.",
    ):
        ssm.put_parameter(Name="/" + "/".join("abcdefghijklmnop"), Value="v", Type="String")


def test_parameter_has_a_known_tier(ssm: Any) -> None:
    known = "satisfy enum value set: [Standard, Advanced, Intelligent-Tiering]"
    with refused("ValidationException", invalid(("Foo", "tier", known))):
        ssm.put_parameter(Name="/any", Value="v", Type="String", Tier="Foo")


def test_ten_parameters_are_read_at_once(ssm: Any) -> None:
    names = [f"/{number}" for number in range(11)]
    assert ssm.get_parameters(Names=names[:10])["InvalidParameters"] == names[:10]
    text = invalid((f"[{', '.join(names)}]", "names", "have length less than or equal to 10"))
    with refused("ValidationException", text):
        ssm.get_parameters(Names=names)
