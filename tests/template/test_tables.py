"""Reading templates that Highwater did not write."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, GlobalSecondaryIndex, HighWaterTable, Window
from highwater_lab.simulation import TableSetup, TargetSetup
from highwater_lab.template import TemplateError, find_table, load_templates, read_app

FILES = Path(__file__).parent / "files"
KEY = dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING)


def _figures(target: TargetSetup) -> tuple[int, int, int, int | None]:
    """Units, floor, ceiling, target utilization."""
    return target.units, target.min, target.max, target.tracking.target_percent if target.tracking else None


def _shape(setup: TableSetup) -> dict[str, tuple[tuple[int, int, int, int | None], ...]]:
    return {resource.label: (_figures(resource.read), _figures(resource.write)) for resource in setup.resources}


def _by_name(path: Path, **parameters: str) -> dict[str, TableSetup]:
    listed = read_app(load_templates(path), parameters).tables
    return {each.name: each.setup for each in listed if each.setup is not None}


def test_template_written_by_hand() -> None:
    tables = _by_name(FILES / "by_hand.yaml", WriteCeiling="950")
    assert list(tables) == ["Orders"]
    orders = tables["Orders"]
    assert _shape(orders) == {
        "table": ((11, 11, 11, None), (12, 40, 950, 65)),
        "index 'by_status'": ((21, 31, 310, 55), (22, 22, 22, None)),
    }
    table = orders.resources[0]
    assert table.write.tracking is not None
    assert (table.write.tracking.scale_in_cooldown, table.write.tracking.scale_out_cooldown) == (61, 62)
    assert table.write.tracking.disable_scale_in
    assert orders.is_infrequent_access
    assert (table.warm_read_units, table.warm_write_units) == (13_000, 5_000)
    assert (table.bought_read_units, table.bought_write_units) == (13_000 - 11, 5_000 - 40)
    load, after = table.write.actions
    assert (load.name, load.min, load.max, load.start) == ("load", 400, None, datetime(2026, 11, 1, tzinfo=UTC))
    assert (after.name, after.min, after.max) == ("after", 40, 900)
    # five to five in New York, in winter
    assert load.expression.next_run(datetime(2026, 11, 3, tzinfo=UTC)) == datetime(2026, 11, 3, 9, 55, tzinfo=UTC)


def test_bounds_of_a_highwater_table_are_those_of_its_plan(tmp_path: Path) -> None:
    """The template has the highest ceiling of all windows, which the deploy itself takes back."""
    app = cdk.App(outdir=str(tmp_path))
    HighWaterTable(
        cdk.Stack(app, "Shop"),
        "Orders",
        partition_key=KEY,
        read=Capacity.fixed(units=13),
        write=Capacity.autoscaled(min_capacity=41, max_capacity=800),
        windows=[
            Window.daily(
                "load", start="05:00", end="06:00", timezone="UTC", read_min=60, write_min=700, write_max=2_000
            )
        ],
        indexes=[GlobalSecondaryIndex(index_name="by-day", partition_key=KEY, windows=())],
    )
    app.synth()
    template = tmp_path / "Shop.template.json"
    orders = _by_name(template)["Shop/Orders"]
    assert _shape(orders) == {
        "table": ((1, 13, 13, None), (1, 41, 800, 70)),
        "index 'by-day'": ((1, 13, 13, None), (1, 41, 800, 70)),
    }
    load = orders.resources[0].write.actions[0]
    assert (load.min, load.max) == (700, 2_000)
    # a plan that cannot be read leaves what the template says
    template.write_text(template.read_text().replace('\\"version\\":1', '\\"version\\":999'))
    assert _shape(_by_name(template)["Shop/Orders"])["table"] == ((1, 13, 60, None), (1, 41, 2_000, 70))


def test_parameter_without_a_default_is_asked_for() -> None:
    path = FILES / "by_hand.yaml"
    with pytest.raises(TemplateError) as refused:
        find_table(load_templates(path))
    assert str(refused.value) == (
        f"{path}: WriteTarget (ScalableTarget) MaxCapacity is '${{WriteCeiling}}', a parameter whose value "
        "is known only at deployment; give it with --parameter WriteCeiling=VALUE"
    )


def test_unknown_parameter() -> None:
    with pytest.raises(TemplateError) as refused:
        find_table(load_templates(FILES / "by_hand.yaml"), parameters={"WriteCeiling": "950", "Writes": "1"})
    assert str(refused.value) == (
        "--parameter Writes: the templates have no such parameter; they have Stage, WriteCeiling, WriteFloor"
    )


def test_other_parameters_change_names_and_conditions() -> None:
    orders = _by_name(FILES / "by_hand.yaml", WriteCeiling="950", WriteFloor="3")["Orders"]
    assert orders.resources[0].write.min == 3


def test_sam_template() -> None:
    tables = _by_name(FILES / "sam.yaml")
    assert {name: (_shape(setup), setup.is_on_demand) for name, setup in tables.items()} == {
        "Jobs": ({"table": ((5, 5, 5, None), (6, 6, 6, None))}, False),
        "Sessions": ({"table": ((7, 8, 80, 75), (9, 9, 9, None))}, False),
        "Events": ({"table": ((1, 1, 1, None), (1, 1, 1, None))}, True),
    }


def _synthesized(tmp_path: Path, build: Callable[[cdk.Stack], None]) -> Path:
    app = cdk.App(outdir=str(tmp_path / "cdk.out"))
    build(cdk.Stack(app, "Shop"))
    app.synth()
    return tmp_path / "cdk.out"


def test_table_of_the_cdk(tmp_path: Path) -> None:
    def build(stack: cdk.Stack) -> None:
        table = dynamodb.Table(stack, "Orders", partition_key=KEY, read_capacity=13, write_capacity=14)
        table.add_global_secondary_index(
            index_name="by_status",
            partition_key=dynamodb.Attribute(name="status", type=dynamodb.AttributeType.STRING),
            read_capacity=23,
            write_capacity=24,
        )
        write = table.auto_scale_write_capacity(min_capacity=50, max_capacity=500)
        write.scale_on_utilization(
            target_utilization_percent=62, scale_in_cooldown=cdk.Duration.seconds(90), policy_name="writes"
        )
        write.scale_on_schedule(
            "Load",
            schedule=autoscaling.Schedule.cron(hour="5", minute="0", week_day="MON"),
            time_zone=cdk.TimeZone.EUROPE_BERLIN,
            min_capacity=300,
        )
        index = table.auto_scale_global_secondary_index_read_capacity("by_status", min_capacity=25, max_capacity=250)
        index.scale_on_utilization(target_utilization_percent=48)

    setup = find_table(load_templates(_synthesized(tmp_path, build)))
    assert setup.name == "Shop/Orders"
    assert _shape(setup) == {
        "table": ((13, 13, 13, None), (14, 50, 500, 62)),
        "index 'by_status'": ((23, 25, 250, 48), (24, 24, 24, None)),
    }
    write = setup.resources[0].write
    assert write.tracking is not None
    assert write.tracking.scale_in_cooldown == 90
    (action,) = write.actions
    assert (action.min, action.max) == (300, None)
    assert action.expression.next_run(datetime(2026, 11, 3, tzinfo=UTC)) == datetime(2026, 11, 9, 4, tzinfo=UTC)


def test_table_v2_of_the_cdk(tmp_path: Path) -> None:
    def build(stack: cdk.Stack) -> None:
        dynamodb.TableV2(
            stack,
            "Orders",
            partition_key=KEY,
            billing=dynamodb.Billing.provisioned(
                read_capacity=dynamodb.Capacity.fixed(17),
                write_capacity=dynamodb.Capacity.autoscaled(
                    min_capacity=18, max_capacity=180, seed_capacity=28, target_utilization_percent=58
                ),
            ),
            warm_throughput=dynamodb.WarmThroughput(read_units_per_second=14_000, write_units_per_second=6_000),
            global_secondary_indexes=[
                dynamodb.GlobalSecondaryIndexPropsV2(
                    index_name="by_status",
                    partition_key=dynamodb.Attribute(name="status", type=dynamodb.AttributeType.STRING),
                    read_capacity=dynamodb.Capacity.autoscaled(min_capacity=33, max_capacity=330),
                    write_capacity=dynamodb.Capacity.autoscaled(min_capacity=34, max_capacity=340),
                )
            ],
        )
        dynamodb.TableV2(
            stack,
            "Visits",
            partition_key=KEY,
            billing=dynamodb.Billing.on_demand(max_read_request_units=700, max_write_request_units=800),
        )

    tables = {name.split("/")[1]: setup for name, setup in _by_name(_synthesized(tmp_path, build)).items()}
    orders = tables["Orders"]
    assert _shape(orders) == {
        "table": ((17, 17, 17, None), (28, 18, 180, 58)),
        "index 'by_status'": ((33, 33, 330, 70), (34, 34, 340, 70)),
    }
    assert (orders.resources[0].warm_read_units, orders.resources[0].warm_write_units) == (14_000, 6_000)
    visits = tables["Visits"]
    table = visits.resources[0]
    assert (visits.is_on_demand, table.max_read_units, table.max_write_units) == (True, 700, 800)


def test_table_that_a_template_only_scales(tmp_path: Path) -> None:
    def build(stack: cdk.Stack) -> None:
        target = autoscaling.ScalableTarget(
            stack,
            "Writes",
            service_namespace=autoscaling.ServiceNamespace.DYNAMODB,
            resource_id="table/legacy-orders",
            scalable_dimension="dynamodb:table:WriteCapacityUnits",
            min_capacity=45,
            max_capacity=450,
        )
        target.scale_to_track_metric(
            "Track",
            target_value=66,
            predefined_metric=autoscaling.PredefinedMetric.DYNAMODB_WRITE_CAPACITY_UTILIZATION,
        )

    setup = find_table(load_templates(_synthesized(tmp_path, build)))
    assert setup.name == "legacy-orders"
    assert _shape(setup) == {"table": ((1, 1, 1, None), (1, 45, 450, 66))}
    assert setup.notes == (
        "legacy-orders is not defined in this template: capacity without a scalable target is taken to be 1 unit",
    )


def test_tables_of_stages_and_nested_stacks_are_found(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path / "cdk.out"))
    stage = cdk.Stage(app, "Prod")
    stack = cdk.Stack(stage, "Shop")
    dynamodb.Table(stack, "Orders", partition_key=KEY, read_capacity=3, write_capacity=4)
    dynamodb.Table(cdk.NestedStack(stack, "Inner"), "Visits", partition_key=KEY, read_capacity=5, write_capacity=6)
    app.synth()
    assert sorted(_by_name(tmp_path / "cdk.out")) == ["Prod/Shop/Inner/Visits", "Prod/Shop/Orders"]


def test_one_of_several_tables_is_named_by_the_start_of_its_id() -> None:
    templates = load_templates(FILES / "sam.yaml")
    assert find_table(templates, name="Sess").name == "Sessions"
    for name, message in (
        (None, "3 tables match: Events, Jobs, Sessions; choose one with --table"),
        ("Other", "there is no table 'Other'; the tables are Events, Jobs, Sessions"),
    ):
        with pytest.raises(TemplateError) as refused:
            find_table(templates, name=name)
        assert str(refused.value) == message


def test_name_that_cannot_be_evaluated_keeps_only_its_own_table_from_being_read(tmp_path: Path) -> None:
    units = {"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 7}}
    named = {"Fn::If": ["IsProd", "carts", "carts-dev"]}
    document = {
        "Parameters": {"Env": {"Type": "String"}},
        "Conditions": {"IsProd": {"Fn::Equals": [{"Ref": "Env"}, "prod"]}},
        "Resources": {
            "Orders": {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": "orders", **units}},
            "Carts": {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": named, **units}},
        },
    }
    path = tmp_path / "shop.json"
    path.write_text(json.dumps(document))
    templates = load_templates(path)
    assert find_table(templates, name="Orders").resources[0].write.units == 7
    problem = (
        f"{path}: a condition compares '${{Env}}', a parameter whose value is known only at deployment; give it with "
        "--parameter Env=VALUE"
    )
    assert [(each.name, each.problem) for each in read_app(templates).tables] == [("Orders", ""), ("Carts", problem)]
