"""Assemblies of the real CDK in which a table and its capacity are in different stacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from highwater_lab.template import TemplateError, find_table, load_templates

KEY = dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING)
IRELAND = cdk.Environment(account="123456789012", region="eu-west-1")


def _table(scope: Construct, name: str, units: int, table_name: str | None = None) -> dynamodb.Table:
    return dynamodb.Table(
        scope, name, partition_key=KEY, read_capacity=units, write_capacity=units + 1, table_name=table_name
    )


def _scale(scope: Construct, name: str, table_name: str, low: int, high: int) -> None:
    target = autoscaling.ScalableTarget(
        scope,
        name,
        service_namespace=autoscaling.ServiceNamespace.DYNAMODB,
        resource_id=f"table/{table_name}",
        scalable_dimension="dynamodb:table:WriteCapacityUnits",
        min_capacity=low,
        max_capacity=high,
    )
    target.scale_to_track_metric(
        "Track",
        target_value=61,
        predefined_metric=autoscaling.PredefinedMetric.DYNAMODB_WRITE_CAPACITY_UTILIZATION,
    )
    target.scale_on_schedule("Load", schedule=autoscaling.Schedule.cron(hour="5", minute="0"), min_capacity=2 * low)


def _cross_stack(app: cdk.App) -> None:
    table = _table(cdk.Stack(app, "Data", env=IRELAND), "Orders", 11)
    _scale(cdk.Stack(app, "Capacity", env=IRELAND), "Writes", table.table_name, 20, 200)


def _cross_stack_anywhere(app: cdk.App) -> None:
    table = _table(cdk.Stack(app, "Data"), "Orders", 11)
    _scale(cdk.Stack(app, "Capacity"), "Writes", table.table_name, 20, 200)


def _by_name(app: cdk.App) -> None:
    _table(cdk.Stack(app, "Data"), "Orders", 11, table_name="orders")
    stack = cdk.Stack(app, "Capacity")
    _scale(stack, "Writes", dynamodb.Table.from_table_name(stack, "Orders", "orders").table_name, 20, 200)


def _child_scales(app: cdk.App) -> None:
    stack = cdk.Stack(app, "Data")
    table = _table(stack, "Orders", 11)
    _scale(cdk.NestedStack(stack, "Capacity"), "Writes", table.table_name, 20, 200)


def _parent_scales(app: cdk.App) -> None:
    stack = cdk.Stack(app, "Shop")
    table = _table(cdk.NestedStack(stack, "Data"), "Orders", 11)
    _scale(stack, "Writes", table.table_name, 20, 200)


def _sibling_scales(app: cdk.App) -> None:
    stack = cdk.Stack(app, "Shop")
    table = _table(cdk.NestedStack(stack, "Data"), "Orders", 11)
    _scale(cdk.NestedStack(stack, "Capacity"), "Writes", table.table_name, 20, 200)


@pytest.mark.parametrize(
    ("build", "name", "region"),
    [
        (_cross_stack, "Data/Orders", "eu-west-1"),
        (_cross_stack_anywhere, "Data/Orders", None),
        (_by_name, "Data/Orders", None),
        (_child_scales, "Data/Orders", None),
        (_parent_scales, "Shop/Data/Orders", None),
        (_sibling_scales, "Shop/Data/Orders", None),
    ],
)
def test_capacity_in_another_stack_is_joined(
    build: Callable[[cdk.App], None], name: str, region: str | None, tmp_path: Path
) -> None:
    app = cdk.App(outdir=str(tmp_path))
    build(app)
    app.synth()
    setup = find_table(load_templates(tmp_path))
    write = setup.resources[0].write
    assert (setup.name, setup.region, setup.notes) == (name, region, ())
    assert (write.units, write.min, write.max, len(write.actions)) == (12, 20, 200, 1)
    assert write.tracking is not None
    assert write.tracking.target_percent == 61


def test_tables_of_stages_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path))
    for stage, units in (("Dev", 3), ("Prod", 30)):
        stack = cdk.Stack(cdk.Stage(app, stage, env=IRELAND), "Shop")
        _table(stack, "Orders", units, table_name=f"orders-{stage.lower()}")
    app.synth()
    templates = load_templates(tmp_path)
    assert find_table(templates, name="Prod/Shop/Orders").resources[0].read.units == 30
    assert find_table(templates, name="orders-dev").resources[0].read.units == 3
    with pytest.raises(TemplateError) as refused:
        find_table(templates, name="Orders")
    assert str(refused.value) == "2 tables match: Dev/Shop/Orders, Prod/Shop/Orders; choose one with --table"


def test_nested_stack_that_leads_to_itself_is_told(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(
        '{"artifacts": {"A": {"type": "aws:cloudformation:stack", "properties": {"templateFile": "a.template.json"}}}}'
    )
    own = '{"Type": "AWS::CloudFormation::Stack", "Metadata": {"aws:asset:path": "a.template.json"}}'
    (tmp_path / "a.template.json").write_text(f'{{"Resources": {{"Own": {own}}}}}')
    with pytest.raises(TemplateError) as refused:
        load_templates(tmp_path)
    assert str(refused.value) == f"{tmp_path}/a.template.json: is nested in itself"
