"""What a stack and an account have room for: more is told at synth, before CloudFormation fails in the middle."""

from __future__ import annotations

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import GlobalSecondaryIndex, ThrottleAwareScaler, Window, manage_capacity
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
    scalable_table,
)

_LOAD = Window.daily("load", start="05:00", end="06:30", timezone="UTC", write_min=900)


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
    assert 440 < len(TemplateView(stack).template["Resources"]) <= 500
    scalable_table(stack, "Table10", windows=[_LOAD], indexes=indexes)
    with pytest.raises(RuntimeError) as refused:
        app.synth(force=True)
    assert str(refused.value) == (
        "ValidationFailedWithErrors: Validation failed with the following errors:\n"
        "  [Shops/HighwaterDeployment] Shops: the stack: with 11 tables that are managed there it has 502 resources, "
        "and CloudFormation allows 500; move tables to further stacks or to nested stacks, each with a scaler of its "
        "own if they have one; docs/fleets.md tells how many tables fit [highwater:tooManyResources]"
    )


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
