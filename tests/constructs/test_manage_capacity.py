"""`manage_capacity` and `CapacityManaged`: tables that exist already, of every kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import (
    Capacity,
    CapacityManaged,
    HighWaterMark,
    IndexCapacity,
    ThrottleAwareScaler,
    Window,
    manage_capacity,
)
from tests.constructs.template_view import TemplateView, global_table, key, messages, new_app, new_stack, placed_stack

READ = Capacity.autoscaled(min_capacity=13, max_capacity=1_300)
WRITE = Capacity.autoscaled(min_capacity=17, max_capacity=1_700, target_utilization_percent=61)
NIGHT = Window.daily("night", start="23:00", end="02:00", timezone="Europe/Berlin", write_min=900)


def _cfn_table(stack: cdk.Stack, **changes: Any) -> dynamodb.CfnTable:
    arguments: dict[str, Any] = {
        "key_schema": [{"attributeName": "pk", "keyType": "HASH"}],
        "attribute_definitions": [{"attributeName": "pk", "attributeType": "S"}],
        "provisioned_throughput": {"readCapacityUnits": 5, "writeCapacityUnits": 6},
    }
    return dynamodb.CfnTable(stack, "Raw", **(arguments | changes))


def _jobs(*indexes: str) -> dynamodb.Table:
    """A table with indexes, in a stack of its own."""
    table = dynamodb.Table(new_stack(), "Jobs", partition_key=key(), read_capacity=8, write_capacity=9)
    for name in indexes:
        table.add_global_secondary_index(index_name=name, partition_key=key("owner"))
    return table


def test_table_of_this_app_keeps_its_template_capacity_and_gains_targets() -> None:
    table = _jobs("by-owner")
    manage_capacity(table, read=READ, write=WRITE, windows=[NIGHT])
    view = TemplateView(table.stack)
    assert view.properties_of("AWS::DynamoDB::Table")["ProvisionedThroughput"] == {
        "ReadCapacityUnits": 8,
        "WriteCapacityUnits": 9,
    }
    assert {name: target.bounds for name, target in view.targets.items()} == {
        "table read": (13, 1_300),
        "table write": (17, 1_700),
        "by-owner read": (13, 1_300),
        "by-owner write": (17, 1_700),
    }


def test_cfn_table_is_managed_with_its_indexes() -> None:
    stack = new_stack()
    table = _cfn_table(
        stack,
        attribute_definitions=[
            {"attributeName": "pk", "attributeType": "S"},
            {"attributeName": "owner", "attributeType": "S"},
        ],
        global_secondary_indexes=[
            {
                "indexName": "by-owner",
                "keySchema": [{"attributeName": "owner", "keyType": "HASH"}],
                "projection": {"projectionType": "ALL"},
                "provisionedThroughput": {"readCapacityUnits": 3, "writeCapacityUnits": 4},
            }
        ],
    )
    manage_capacity(table, read=READ, write=WRITE)
    targets = TemplateView(stack).targets
    assert set(targets) == {"table read", "table write", "by-owner read", "by-owner write"}
    assert targets["table read"].properties["ResourceId"] == {"Fn::Join": ["", ["table/", {"Ref": "Raw"}]]}


@pytest.mark.parametrize("by", ["name", "arn"])
def test_imported_table_is_managed_by_its_name(by: str) -> None:
    stack = new_stack()
    table = (
        dynamodb.Table.from_table_name(stack, "Far", "far-orders")
        if by == "name"
        else dynamodb.Table.from_table_arn(stack, "Far", "arn:aws:dynamodb:eu-west-1:111122223333:table/far-orders")
    )
    manage_capacity(table, read=READ, write=WRITE, windows=[NIGHT], indexes=[IndexCapacity(index_name="by-day")])
    view = TemplateView(stack)
    assert view.targets["table write"].properties["ResourceId"] == "table/far-orders"
    assert view.targets["by-day read"].properties["ResourceId"] == "table/far-orders/index/by-day"
    assert view.properties_of("Custom::HighwaterFloors")["TableName"] == "far-orders"


def test_imported_name_may_be_a_parameter() -> None:
    stack = new_stack()
    name = cdk.CfnParameter(stack, "TableName").value_as_string
    manage_capacity(dynamodb.Table.from_table_name(stack, "Far", name), read=READ, write=WRITE)
    assert TemplateView(stack).targets["table read"].properties["ResourceId"] == {
        "Fn::Join": ["", ["table/", {"Ref": "TableName"}]]
    }


def test_global_table_gets_what_cloudformation_can_say() -> None:
    stack = new_stack()
    by_day = dynamodb.GlobalSecondaryIndexPropsV2(index_name="by-day", partition_key=key("day"))
    table = global_table(stack, global_secondary_indexes=[by_day])
    manage_capacity(table, read=READ, write=WRITE, high_water_mark=HighWaterMark.units(read=2_000, write=3_000))
    view = TemplateView(stack)
    properties = view.properties_of("AWS::DynamoDB::GlobalTable")
    write = {
        "WriteCapacityAutoScalingSettings": {
            "MinCapacity": 17,
            "MaxCapacity": 1_700,
            "TargetTrackingScalingPolicyConfiguration": {"TargetValue": 61},
        }
    }
    assert properties["WriteProvisionedThroughputSettings"] == write
    assert properties["GlobalSecondaryIndexes"][0]["WriteProvisionedThroughputSettings"] == write
    (replica,) = properties["Replicas"]
    (index,) = replica["GlobalSecondaryIndexes"]
    reads = [each["ReadProvisionedThroughputSettings"]["ReadCapacityAutoScalingSettings"] for each in (replica, index)]
    assert [(each["MinCapacity"], each["MaxCapacity"]) for each in reads] == [(13, 1_300), (13, 1_300)]
    assert view.targets == {}, "CloudFormation makes a global table's targets itself"
    assert view.marks[None] == (2_000, 3_000)


def test_windows_on_a_global_table_are_refused_with_what_can_hold_them() -> None:
    stack = new_stack()
    manage_capacity(global_table(stack), read=READ, write=WRITE, windows=[NIGHT])
    assert messages(stack, "error") == [
        "Shop/World: windows 'night': CloudFormation itself creates the scalable targets of a TableV2, and they "
        "cannot have scheduled actions; let a ThrottleAwareScaler open and close the windows with windows_held_by=, "
        "or use HighWaterTable or dynamodb.Table [highwater:globalTableWindows]"
    ]


def test_global_tables_of_several_accounts_are_refused() -> None:
    app = new_app()
    stack, other = placed_stack(app), placed_stack(app, "Other", account="444455556666", region="us-west-2")
    mode = dynamodb.GlobalTableSettingsReplicationMode.ALL
    source = global_table(stack, table_name="world", global_table_settings_replication_mode=mode)
    manage_capacity(source, read=READ, write=WRITE)
    replica = dynamodb.TableV2MultiAccountReplica(
        other, "Replica", replica_source_table=source, global_table_settings_replication_mode=mode
    )
    ThrottleAwareScaler(other, "Scaler").add_direct_table(replica, read=READ, write=WRITE)
    why = (
        "it belongs to a global table of several accounts, whose capacity DynamoDB copies from account to "
        "account, so that floors set in one account would change the others'; use a global table of one account, or "
        "leave the capacity of this one to on-demand mode [highwater:multiAccountTable]"
    )
    assert messages(stack, "error") == [f"Shop/World: the table world: {why}"]
    assert messages(other, "error") == [f"Other/Scaler: the table Other/Replica: {why}"]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            lambda stack: dynamodb.Table(
                stack, "Raw", partition_key=key(), billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST
            ),
            id="Table",
        ),
        pytest.param(lambda stack: dynamodb.TableV2(stack, "Raw", partition_key=key()), id="TableV2"),
        pytest.param(
            lambda stack: _cfn_table(stack, billing_mode="PAY_PER_REQUEST", provisioned_throughput=None), id="CfnTable"
        ),
    ],
)
def test_provisioned_options_on_an_on_demand_table_are_refused(make: Callable[[cdk.Stack], Any]) -> None:
    stack = new_stack()
    table = make(stack)
    manage_capacity(table, read=READ, write=WRITE)
    assert messages(stack, "error") == [
        "Shop/Raw: billing mode: the table is on demand (PAY_PER_REQUEST), and read, write and windows are for "
        "provisioned capacity; set the table's billing mode to PROVISIONED, or declare no capacity for it "
        "[highwater:provisionedOnDemand]"
    ]
    assert TemplateView(stack).targets == {}


def test_index_added_after_the_plan_is_refused_at_synth() -> None:
    table = _jobs()
    manage_capacity(table, read=READ, write=WRITE)
    table.add_global_secondary_index(index_name="by-owner", partition_key=key("owner"))
    assert messages(table.stack, "error") == [
        "Shop/Jobs: index 'by-owner': the index was added after the table's capacity was declared, so nothing scales "
        "it; pass the index to HighWaterTable in indexes=; with manage_capacity, add the index before the call "
        "[highwater:indexNotScaled]"
    ]


def test_index_that_the_table_has_not_is_refused() -> None:
    table = _jobs("by-owner")
    manage_capacity(table, read=READ, write=WRITE, indexes=[IndexCapacity(index_name="by-ower")])
    assert messages(table.stack, "error") == [
        "Shop/Jobs: index 'by-ower': the table has no index of this name; its indexes are 'by-owner'; correct the "
        "name, or add the index to the table first [highwater:unknownIndex]"
    ]


def test_all_conflicts_of_a_table_are_told_together_and_nothing_is_made() -> None:
    table = _jobs()
    manage_capacity(
        table,
        read=Capacity.autoscaled(min_capacity=200, max_capacity=20),
        write=Capacity.autoscaled(min_capacity=0, max_capacity=9, target_utilization_percent=7),
        windows=[Window.daily("night", start="25:00", end="02:00", timezone="Europe/Belrin", write_min=5)],
    )
    found = [re.findall(r"\[highwater:(\w+)\]", message)[0] for message in messages(table.stack, "error")]
    assert sorted(found) == ["maxBelowMin", "targetOutOfRange", "unitsNotPositive", "unknownTimezone", "unparsableTime"]
    assert TemplateView(table.stack).targets == {}


def test_mixin_manages_a_table() -> None:
    table = _jobs()
    table.with_(CapacityManaged(read=READ, write=WRITE, windows=[NIGHT]))
    assert TemplateView(table.stack).targets["table write"].actions == {
        "cron(55 22 * * ? *) Europe/Berlin": (900, 1_700),
        "cron(0 2 * * ? *) Europe/Berlin": (17, 1_700),
        # the night that the clocks skip 02:00
        "cron(0 3 ? * SUN *) Europe/Berlin": (17, 1_700),
        "cron(0 4 ? * SUN *) Europe/Berlin": (17, 1_700),
    }


def test_mixin_on_a_stack_manages_each_table_once() -> None:
    stack = new_stack()
    dynamodb.Table(stack, "First", partition_key=key())
    dynamodb.Table(stack, "Second", partition_key=key())
    _cfn_table(stack)
    stack.with_(CapacityManaged(read=READ, write=WRITE))
    assert len(TemplateView(stack).of_type("AWS::ApplicationAutoScaling::ScalableTarget")) == 6


def test_mixin_supports_tables_and_nothing_else() -> None:
    mixin, table = CapacityManaged(read=READ, write=WRITE), _jobs()
    assert mixin.supports(table)
    assert not mixin.supports(table.stack)
    assert not mixin.supports(table.node.default_child)  # type: ignore[arg-type] # a construct


def test_indexes_that_are_not_managed_are_left_out_of_any_table() -> None:
    stack = new_stack()
    visits = dynamodb.Table(stack, "Visits", partition_key=key(), read_capacity=5, write_capacity=5)
    for name in ("by-day", "by-name"):
        visits.add_global_secondary_index(index_name=name, partition_key=key(name[3:]))
    manage_capacity(visits, read=READ, write=WRITE, indexes=[IndexCapacity(index_name="by-day", is_managed=False)])
    view = TemplateView(stack)
    assert set(view.targets) == {"table read", "table write", "by-name read", "by-name write"}
    assert [text.rpartition("[")[2] for text in view.messages("warning")] == ["highwater:indexUnmanaged]"]
