"""What a stack and an account have room for: more is told at synth, before CloudFormation fails in the middle."""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, GlobalSecondaryIndex, HighWaterTable, ThrottleAwareScaler, Window, manage_capacity
from tests.constructs.template_view import key, messages, new_stack

READ, WRITE = (
    Capacity.autoscaled(min_capacity=3, max_capacity=30),
    Capacity.autoscaled(min_capacity=41, max_capacity=4_000),
)


def _tables(stack: cdk.Stack, count: int) -> None:
    """Tables with nine indexes, which are 45 resources each."""
    for number in range(count):
        HighWaterTable(
            stack,
            f"Table{number}",
            partition_key=key(),
            read=READ,
            write=WRITE,
            windows=[Window.daily("load", start="05:00", end="06:30", timezone="UTC", write_min=900)],
            indexes=[
                GlobalSecondaryIndex(index_name=f"by-{index}", partition_key=key(f"k{index}")) for index in range(9)
            ],
        )


def test_stack_of_more_resources_than_cloudformation_takes_is_refused_with_what_to_do() -> None:
    """11: the CDK's own message does not say what to do."""
    app = cdk.App()
    stack = cdk.Stack(app, "Shops")
    _tables(stack, 11)
    cdk.CfnResource(cdk.NestedStack(stack, "Nested"), "NotOfTheStack", type="AWS::SNS::Topic")
    with pytest.raises(RuntimeError) as refused:
        app.synth()
    assert str(refused.value) == (
        "ValidationFailedWithErrors: Validation failed with the following errors:\n"
        "  [Shops/HighwaterDeployment] Shops: the stack: with 11 tables that are managed there it has 502 resources, "
        "and CloudFormation allows 500; move tables to further stacks or to nested stacks, each with a scaler of its "
        "own if they have one; docs/fleets.md tells how many tables fit [highwater:tooManyResources]"
    )


def test_resources_of_nested_stacks_do_not_count(tmp_path: Path) -> None:
    """11: a nested stack has 500 resources of its own."""
    app = cdk.App(outdir=str(tmp_path))
    stack = cdk.Stack(app, "Shops")
    _tables(stack, 10)
    nested = cdk.NestedStack(stack, "Nested")
    for number in range(60):
        cdk.CfnResource(nested, f"Topic{number}", type="AWS::SNS::Topic")
    app.synth()
    template = json.loads((tmp_path / "Shops.template.json").read_text())
    assert 440 < len(template["Resources"]) <= 500


def _global_tables(app: cdk.App, count: int, region: str) -> cdk.Stack:
    stack = cdk.Stack(app, f"Shops-{region}", env=cdk.Environment(account="111122223333", region=region))
    for number in range(count):
        table = dynamodb.TableV2(
            stack,
            f"Table{number}",
            partition_key=key(),
            billing=dynamodb.Billing.provisioned(
                read_capacity=dynamodb.Capacity.fixed(3), write_capacity=dynamodb.Capacity.autoscaled(max_capacity=5)
            ),
            global_secondary_indexes=[
                dynamodb.GlobalSecondaryIndexPropsV2(index_name=f"by-{index}", partition_key=key(f"k{index}"))
                for index in range(19)
            ],
        )
        manage_capacity(table, read=READ, write=WRITE)
    return stack


def test_alarms_that_an_account_takes_are_not_told() -> None:
    """11: 31 tables of 40 targets have 4,960 alarms of target tracking."""
    app = cdk.App()
    stacks = [_global_tables(app, 31, "eu-west-1"), _global_tables(app, 1, "eu-north-1")]
    assert [messages(stack, "warning") for stack in stacks] == [[], []]


def test_more_alarms_than_an_account_may_have_in_a_region_are_told() -> None:
    """11: over all stacks of the app, with those of scalers."""
    app = cdk.App()
    stack = _global_tables(app, 31, "eu-west-1")
    other = cdk.Stack(app, "Orders", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    scaler = ThrottleAwareScaler(other, "Scaler")
    for number in range(5):
        scaler.add_table(HighWaterTable(other, f"T{number}", partition_key=key(), read=READ, write=WRITE))
    assert messages(other, "warning") == []
    (told,) = messages(stack, "warning")
    assert told == (
        "Shops-eu-west-1/Table0/Capacity: the app's tables in the region of this one: target tracking and the scalers "
        "have 5,010 alarms there, and an account may have 5,000 in a region unless AWS has raised its quota; ask AWS "
        "for more alarms before the deploy, or use tagged tables of a ThrottleAwareScaler, which have no alarm of the "
        "scaler; docs/fleets.md tells how [highwater:tooManyAlarms] [ack: highwater:tooManyAlarms]"
    )
    assert not messages(new_stack(), "warning")
