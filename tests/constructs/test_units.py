"""CloudFormation sets live capacity to units that change in a template, so our resources change with them."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import jsii
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from constructs import IConstruct

from cdk_highwater import BoostCoordinator, Capacity, GlobalSecondaryIndex, ThrottleAwareScaler, Window, manage_capacity
from tests.constructs.template_view import (
    READ,
    WRITE,
    TemplateView,
    all_before,
    depended_on,
    global_table,
    key,
    new_app,
    new_stack,
    scalable_table,
)

_TABLE = "AWS::DynamoDB::Table"
_LOAD = Window.daily("load", start="05:00", end="06:30", timezone="UTC", write_min=900)


def _table(stack: cdk.Stack, id: str = "Visits", **more: Any) -> dynamodb.Table:
    table = dynamodb.Table(stack, id, partition_key=key(), read_capacity=9, write_capacity=8, **more)
    table.add_global_secondary_index(index_name="by-day", partition_key=key("day"), read_capacity=6, write_capacity=7)
    return table


def _units(view: TemplateView) -> dict[str, Any]:
    """The property of the stack's resource, by the tables' ids without their hashes."""
    (resource,) = view.of_type("Custom::HighwaterUnits")
    return {name[:-8]: units for name, units in resource["Properties"]["Tables"].items()}


def test_units_of_a_table_and_its_indexes_are_in_its_floors_and_in_the_resource_before_it() -> None:
    stack = new_stack()
    manage_capacity(_table(stack), read=READ, write=WRITE)
    by_day = GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"), initial_write_units=12)
    by_hand = GlobalSecondaryIndex(index_name="by-hand", partition_key=key("hand"), is_managed=False)
    scalable_table(stack, indexes=[by_day, by_hand], initial_read_units=2)
    view = TemplateView(stack)
    expected = {
        "Visits": [["PROVISIONED", 9, 8], ["by-day", 6, 7]],
        # an index that nothing manages yet is added in a deploy that changes nothing else
        "Jobs": [["PROVISIONED", 2, 1], ["by-day", 2, 12]],
    }
    assert _units(view) == expected
    for kind in ("Custom::HighwaterFloors", "Custom::HighwaterAftermath"):
        assert {
            name.partition("Capacity")[0]: each["Properties"]["Units"] for name, each in view.named(kind).items()
        } == expected


def test_units_are_those_of_the_end_of_synth_and_of_parameters() -> None:
    stack = new_stack()
    units = cdk.CfnParameter(stack, "Units", type="Number", default=30).value_as_number
    table = dynamodb.Table(stack, "Visits", partition_key=key(), read_capacity=units, write_capacity=8)
    manage_capacity(table, read=READ, write=WRITE)

    @jsii.implements(cdk.IAspect)
    class Later:
        def visit(self, node: IConstruct) -> None:
            if isinstance(node, dynamodb.CfnTable):
                node.provisioned_throughput = dynamodb.CfnTable.ProvisionedThroughputProperty(
                    read_capacity_units=units, write_capacity_units=44
                )
                node.billing_mode = "PROVISIONED"

    cdk.Aspects.of(stack).add(Later())
    assert _units(TemplateView(stack)) == {"Visits": [["PROVISIONED", {"Ref": "Units"}, 44]]}


def test_every_table_waits_for_one_resource_of_the_stack_and_that_for_no_table() -> None:
    """It takes part in every rollback that resets a table. CloudFormation would reject a circle."""
    stack = new_stack()
    scaler = ThrottleAwareScaler(stack, "Scaler")
    BoostCoordinator(stack, "Boosts", scaler=scaler)
    held = scalable_table(stack, "Held", windows=[_LOAD], windows_held_by=scaler)
    scaler.add_table(scalable_table(stack))
    scaler.add_table(manage_capacity(_table(stack), read=READ, write=WRITE))
    held.node.add_dependency(stack.node.find_child("Jobs"))
    template = TemplateView(stack).template
    kinds = {name: each["Type"] for name, each in template["Resources"].items()}
    (units,) = (name for name, kind in kinds.items() if kind == "Custom::HighwaterUnits")
    managed = [name for name, kind in kinds.items() if kind == _TABLE and name.startswith(("Held", "Jobs", "Visits"))]
    assert len(managed) == 3
    assert all(units in depended_on(template, name) for name in managed)
    assert not all_before(template, units).intersection(managed)
    for name in kinds:
        all_before(template, name)
    needed = {name[:-8].removeprefix("HighwaterDeployment") for name in all_before(template, units)}
    assert needed == {"Bounds", "Function", "Logs", "Role", "RoleDefaultPolicy"}


def test_stack_has_one_resource_more_for_it_however_many_tables_it_has() -> None:
    stack = new_stack()
    for number in range(5):
        scalable_table(stack, f"Jobs{number}")
    assert len(TemplateView(stack).of_type("Custom::HighwaterUnits")) == 1


@pytest.mark.parametrize("is_named", [True, False])
def test_table_of_another_stack_depends_on_nothing_and_its_floors_change_with_its_units(*, is_named: bool) -> None:
    app = new_app()
    home, other = cdk.Stack(app, "Home"), cdk.Stack(app, "Other")
    table = _table(home, table_name="visits" if is_named else None)
    manage_capacity(table, scope=other, read=READ, write=WRITE)
    (found,) = TemplateView(home).of_type(_TABLE)
    assert "DependsOn" not in found
    view = TemplateView(other)
    assert view.of_type("Custom::HighwaterUnits") == []
    assert view.properties_of("Custom::HighwaterFloors")["Units"] == '[["PROVISIONED", 9, 8], ["by-day", 6, 7]]'


def test_imported_and_global_tables_have_no_units_of_ours() -> None:
    stack = new_stack()
    manage_capacity(dynamodb.Table.from_table_name(stack, "Imported", "orders"), read=READ, write=Capacity.fixed(5))
    manage_capacity(global_table(stack), read=READ, write=WRITE)
    view = TemplateView(stack)
    assert view.of_type("Custom::HighwaterUnits") == []
    assert "Units" not in view.properties_of("Custom::HighwaterFloors")
