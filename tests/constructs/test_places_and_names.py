"""Tables of other stacks, regions and names: what follows them, and what is refused at synth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk.assertions import Template

from cdk_highwater import (
    Capacity,
    GlobalSecondaryIndex,
    HighWaterTable,
    PreWarm,
    TaggedTables,
    ThrottleAwareScaler,
    manage_capacity,
)
from highwater.core import Dimension
from highwater.core.names import TargetName
from tests.constructs.template_view import TemplateView, key, messages, new_stack

READ, WRITE = (
    Capacity.autoscaled(min_capacity=3, max_capacity=30),
    Capacity.autoscaled(min_capacity=41, max_capacity=4_000),
)
_WARM = dynamodb.WarmThroughput(read_units_per_second=400, write_units_per_second=5_000)
_ELSEWHERE = "arn:aws:dynamodb:us-east-1:111122223333:table/orders"


def _stack(app: cdk.App, name: str) -> cdk.Stack:
    return cdk.Stack(app, name, env=cdk.Environment(account="111122223333", region="eu-west-1"))


def _table(stack: cdk.Stack, **more: Any) -> HighWaterTable:
    return HighWaterTable(stack, "Orders", partition_key=key(), read=READ, write=WRITE, **more)


def _scaler_alarms(stack: cdk.Stack) -> dict[str, Any]:
    alarms = TemplateView(stack).named("AWS::CloudWatch::Alarm")
    return {name: alarm["Properties"] for name, alarm in alarms.items() if "AlarmName" in alarm["Properties"]}


def test_alarms_move_with_their_table_from_one_scaler_to_another() -> None:
    """1: CloudFormation creates before it deletes, and an alarm's name is taken until then."""
    templates = []
    for name in ("First", "Second"):
        stack = new_stack()
        scalers = {each: ThrottleAwareScaler(stack, each) for each in ("First", "Second")}
        scalers[name].add_table(_table(stack))
        templates.append(_scaler_alarms(stack))
    before, after = templates
    assert before.keys() == after.keys()
    assert len(before) == 2
    for name, alarm in before.items():
        assert alarm["AlarmName"] == after[name]["AlarmName"]
        assert alarm["AlarmActions"] != after[name]["AlarmActions"]


@pytest.mark.parametrize("dimension", Dimension)
@pytest.mark.parametrize(("table", "index"), [(150, 150), (255, 255), (255, None), (161, 77), (160, 76)])
def test_alarm_has_a_name_that_cloudwatch_takes_and_the_scaler_finds(
    table: int, index: int | None, dimension: Dimension
) -> None:
    """15: both at synth and where the function asks for it."""
    names = "t" * table, None if index is None else "i" * index
    stack = new_stack()
    indexes = [] if names[1] is None else [GlobalSecondaryIndex(index_name=names[1], partition_key=key("day"))]
    ThrottleAwareScaler(stack, "Scaler").add_table(_table(stack, table_name=names[0], indexes=indexes))
    found = {alarm["AlarmName"] for alarm in _scaler_alarms(stack).values()}
    wanted = TargetName(names[0], names[1], dimension).alarm
    assert wanted in found
    assert len(wanted) <= 255
    assert len(found) == (2 if index is None else 4)


def test_alarm_of_a_long_index_does_not_depend_on_the_rest_of_the_app() -> None:
    """15: a table without a name of its own is a number in the text at synth, which other constructs move."""
    found = []
    for others in (0, 5):
        stack = new_stack()
        for number in range(others):
            dynamodb.Table(stack, f"Other{number}", partition_key=key())
        index = GlobalSecondaryIndex(index_name="i" * 240, partition_key=key("day"))
        ThrottleAwareScaler(stack, "Scaler").add_table(_table(stack, indexes=[index]))
        found.append([alarm["AlarmName"] for alarm in _scaler_alarms(stack).values()])
    assert found[0] == found[1]
    assert found[0][2]["Fn::Join"][1][2] == TargetName("", "i" * 240, Dimension.READ).alarm.removeprefix("Highwater ")


def test_name_that_cloudformation_makes_too_long_for_alarms_is_refused() -> None:
    stack = cdk.Stack(cdk.App(), "S" * 100)
    table = HighWaterTable(stack, "Orders" * 10, partition_key=key(), read=READ, write=WRITE)
    ThrottleAwareScaler(stack, "Scaler").add_table(table)
    (told,) = messages(stack, "error")
    assert told.split(": ", 1)[1] == (
        "the table: got a name of up to 184 characters, which CloudFormation makes of those of the stack and the "
        "table, allowed: up to 160 characters, so that the names of a scaler's alarms fit CloudWatch; give it a "
        "table_name, or a shorter id [highwater:scaledNameTooLong]"
    )


@pytest.mark.parametrize(
    "use",
    [
        lambda stack, table: manage_capacity(table, scope=stack, read=READ, write=WRITE),
        lambda stack, table: PreWarm(stack, "Warm", table=table, warm_throughput=_WARM),
        lambda stack, table: ThrottleAwareScaler(stack, "Scaler").add_direct_table(table, read=READ, write=WRITE),
    ],
    ids=["manage_capacity", "PreWarm", "add_direct_table"],
)
def test_stack_that_uses_a_table_by_its_name_is_deployed_after_the_tables(
    use: Callable[[cdk.Stack, dynamodb.Table], Any],
) -> None:
    """23: its template has no reference that would say so, and the table's own template stays as it is."""
    app = cdk.App()
    operations, shop = _stack(app, "Operations"), _stack(app, "Shop")
    table = dynamodb.Table(shop, "Jobs", partition_key=key(), table_name="jobs")
    use(operations, table)
    assert [stack.stack_name for stack in operations.dependencies] == ["Shop"]
    template = Template.from_stack(shop).to_json()
    assert {resource["Type"] for resource in template["Resources"].values()} == {"AWS::DynamoDB::Table"}
    assert "Outputs" not in template


def _use_direct(stack: cdk.Stack, table: dynamodb.ITable) -> None:
    ThrottleAwareScaler(stack, "Scaler").add_direct_table(table, read=READ, write=WRITE)


def test_mark_of_a_table_of_another_region_is_refused() -> None:
    """14: its namesake in the stack's region would be warmed, which is charged."""
    stack = _stack(cdk.App(), "Shop")
    table = dynamodb.Table.from_table_arn(stack, "Orders", _ELSEWHERE)
    PreWarm(stack, "Warm", table=table, warm_throughput=_WARM)
    (told,) = messages(stack, "error")
    assert told == (
        "Shop/Warm: the table: the table is in region us-east-1 and the stack in eu-west-1, where a table of the same "
        "name would be scaled; manage the table in a stack of its own region [highwater:otherRegion]"
    )


def test_table_without_targets_is_scaled_in_any_region_of_the_account_and_in_no_other_account() -> None:
    """14: the scaler's plan names the region, and its role has no permission in another account."""
    stack = _stack(cdk.App(), "Shop")
    _use_direct(stack, dynamodb.Table.from_table_arn(stack, "Orders", _ELSEWHERE))
    assert messages(stack, "error") == []
    assert TemplateView(stack).properties_of("AWS::SSM::Parameter")["Name"].endswith("/us-east-1/orders")
    other = _stack(cdk.App(), "Shop")
    _use_direct(other, dynamodb.Table.from_table_arn(other, "Orders", _ELSEWHERE.replace("1111", "9999")))
    (told,) = messages(other, "error")
    assert told == (
        "Shop/Scaler: the table: the table is in account 999922223333 and the stack in 111122223333, where a table of "
        "the same name would be scaled; manage the table in a stack of its own account [highwater:otherAccount]"
    )


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda stack: _table(stack, high_water_mark=0),
            "high_water_mark must be a HighWaterMark, got 0; give HighWaterMark.units(read=, write=)",
        ),
        (
            lambda stack: _table(stack, pre_warm_strategy="provision-and-lower"),
            "the strategy must be PreWarmStrategy.WARM_THROUGHPUT or PreWarmStrategy.PROVISION_AND_LOWER, got "
            "'provision-and-lower'",
        ),
        (
            lambda stack: PreWarm(stack, "Warm", table=_table(stack), strategy=cast(Any, "x")),
            "the strategy must be PreWarmStrategy.WARM_THROUGHPUT or PreWarmStrategy.PROVISION_AND_LOWER, got 'x'",
        ),
        (
            lambda _: TaggedTables(regions="eu-west-1"),
            "regions must be a list of str, got one str; put it in brackets",
        ),
    ],
    ids=["mark-0", "strategy-text", "strategy-of-pre-warm", "one-region"],
)
def test_argument_of_another_type_is_refused(call: Callable[[cdk.Stack], Any], told: str) -> None:
    """25."""
    with pytest.raises(TypeError) as refused:
        call(new_stack())
    assert str(refused.value) == told


def test_replica_that_is_added_after_the_plan_is_refused() -> None:
    """10: the CDK puts the stack's own region last, and the settings of reads go by the place in the list."""
    stack = _stack(cdk.App(), "Shop")
    billing = dynamodb.Billing.provisioned(
        read_capacity=dynamodb.Capacity.fixed(5), write_capacity=dynamodb.Capacity.autoscaled(max_capacity=10)
    )
    table = dynamodb.TableV2(
        stack, "World", partition_key=key(), billing=billing, replicas=[dynamodb.ReplicaTableProps(region="us-east-1")]
    )
    manage_capacity(table, read=READ, write=WRITE)
    assert messages(stack, "error") == []
    table.add_replica(region="ap-south-1")
    (told,) = messages(stack, "error")
    assert told == (
        "Shop/World: replicas: the table has 3 replicas, and had 2 when its capacity was declared, so the capacity is "
        "that of other replicas; add all replicas before manage_capacity [highwater:replicaNotScaled]"
    )


def test_scaler_in_a_nested_stack_of_a_stack_with_a_long_name_has_a_name() -> None:
    """15."""
    names = set()
    for id in ("A", "B"):
        nested = cdk.NestedStack(cdk.Stack(cdk.App(), "S" * 120), id)
        names.add(ThrottleAwareScaler(nested, "Scaler").scaler_name)
    assert len(names) == 2
    assert all(len(name) <= 80 for name in names)
