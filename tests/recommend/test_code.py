"""Code that fits the table that was read: synthesized in its app, or over the form of a plan, it is that table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import hcl2
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk.assertions import Annotations, Match, Template

from highwater.core import Capacity, HighWaterMark, IndexCapacity, Plan, Window
from highwater_lab.recommend.candidates import Candidate
from highwater_lab.recommend.code import code_of, managed_code_of, scaler_code_of
from highwater_lab.recommend.hcl import hcl_of
from highwater_lab.simulation import KeyAttribute, Keys, KnownTable, TableSetup
from highwater_lab.simulation.plans import table_of
from highwater_lab.template import find_table, load_templates
from tests.template.plans import INDEX, plan, resource, saved, table

WRITE = Capacity.autoscaled(min_capacity=17, max_capacity=23_000)
NIGHT = Window.weekly("night", days="MON-FRI", start="23:30", end="01:15", timezone="Europe/Berlin", write_min=900)
PLAN = Plan(
    read=Capacity.autoscaled(min_capacity=13, max_capacity=1_300),
    write=WRITE,
    windows=(NIGHT,),
    indexes=(IndexCapacity(index_name="by-owner"),),
    mark=HighWaterMark.to_ceiling(),
)
OWNER = dynamodb.Attribute(name="owner", type=dynamodb.AttributeType.BINARY)
AT = dynamodb.Attribute(name="at", type=dynamodb.AttributeType.NUMBER)
STATE = dynamodb.Attribute(name="state", type=dynamodb.AttributeType.STRING)


def _candidate(declared: Plan | None = PLAN) -> Candidate:
    return Candidate(plan=declared, cost_per_month=1, throttled_percent=0, utilization_percent=None)


def _stack(folder: Path) -> tuple[cdk.App, cdk.Stack]:
    app = cdk.App(outdir=str(folder))
    return app, cdk.Stack(app, "Shop", env=cdk.Environment(account="111122223333", region="eu-west-1"))


def _orders(stack: cdk.Stack, **more: Any) -> dynamodb.Table:
    orders = dynamodb.Table(stack, "OrderItems", partition_key=STATE, sort_key=AT, **more)
    orders.add_global_secondary_index(
        index_name="by-owner",
        partition_key=OWNER,
        sort_key=AT,
        projection_type=dynamodb.ProjectionType.INCLUDE,
        non_key_attributes=["sum"],
    )
    orders.add_local_secondary_index(
        index_name="by-holder", sort_key=OWNER, projection_type=dynamodb.ProjectionType.KEYS_ONLY
    )
    return orders


def _setup(folder: Path, build: Callable[[cdk.Stack], object]) -> TableSetup:
    app, stack = _stack(folder)
    build(stack)
    app.synth()
    return find_table(load_templates(folder))


def _synthesized(code: str, **given: Callable[[cdk.Stack], object]) -> tuple[Mapping[str, Any], cdk.Stack]:
    """Run code in a stack in which the variables *given* are made; return the properties of its table."""
    stack = cdk.Stack(cdk.App(), "Shop", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    names = {"stack": stack} | {name: make(stack) for name, make in given.items()}
    exec(compile(code, "printed", "exec"), names)  # noqa: S102 - the project's own
    Annotations.from_stack(stack).has_no_error("*", Match.any_value())
    template = Template.from_stack(stack).to_json()["Resources"].values()
    tables = [each["Properties"] for each in template if each["Type"] == "AWS::DynamoDB::Table"]
    return (tables[0] if tables else {}), stack


def test_provisioned_table_of_an_app_is_managed_where_it_is(tmp_path: Path) -> None:
    setup = _setup(tmp_path, lambda stack: _orders(stack, read_capacity=5, write_capacity=6))
    code = code_of(_candidate(), setup)
    assert code == (
        "from cdk_highwater import Capacity, HighWaterMark, IndexCapacity, Window, manage_capacity\n\n"
        "manage_capacity(\n"
        "    order_items,  # Shop/OrderItems\n"
        "    read=Capacity.autoscaled(min_capacity=13, max_capacity=1_300),\n"
        "    write=Capacity.autoscaled(min_capacity=17, max_capacity=23_000),\n"
        "    windows=[\n"
        '        Window.weekly("night", days="MON-FRI", start="23:30", end="01:15", timezone="Europe/Berlin", '
        "write_min=900),\n"
        "    ],\n"
        "    high_water_mark=HighWaterMark.to_ceiling(),\n"
        "    indexes=[\n"
        '        IndexCapacity(index_name="by-owner"),\n'
        "    ],\n"
        ")\n"
    )
    _synthesized(code, order_items=lambda stack: _orders(stack, read_capacity=5, write_capacity=6))
    for policy in ("highwater-floor", "highwater-direct-pulse"):
        scaled = scaler_code_of(policy, _candidate(), setup)
        _, stack = _synthesized(scaled, order_items=lambda stack: _orders(stack, read_capacity=5, write_capacity=6))
        assert stack.node.find_child("Scaler")


def test_table_that_is_scaled_says_that_this_goes_first(tmp_path: Path) -> None:
    def scaled(stack: cdk.Stack) -> None:
        orders = _orders(stack, read_capacity=5, write_capacity=6)
        orders.auto_scale_write_capacity(min_capacity=7, max_capacity=70).scale_on_utilization(
            target_utilization_percent=65
        )

    assert (
        "\n\n# in place of what scales it now; highwater migrate has the deploys in their order\nmanage_capacity(\n"
    ) in code_of(_candidate(), _setup(tmp_path, scaled))


@pytest.mark.parametrize("target", [PLAN, None], ids=["to-provisioned", "to-on-demand"])
def test_table_that_changes_its_mode_is_declared_with_its_own_keys_and_indexes(
    tmp_path: Path, target: Plan | None
) -> None:
    given = {"read_capacity": 5, "write_capacity": 6}
    if target is not None:
        given = {"billing_mode": dynamodb.BillingMode.PAY_PER_REQUEST}  # type: ignore[dict-item]

    def build(stack: cdk.Stack) -> None:
        _orders(stack, table_name="order-items", **given)

    setup = _setup(tmp_path, build)
    before = json.loads((tmp_path / "Shop.template.json").read_text())["Resources"]
    (declared,) = [each["Properties"] for each in before.values() if each["Type"] == "AWS::DynamoDB::Table"]
    code = code_of(_candidate(target), setup)
    assert (
        "# in place of the construct of Shop/OrderItems, in its scope and with its id, so that its items stay; keep "
        "its other settings\n"
        "# point-in-time recovery, which costs by the GB, and deletion protection are on unless you turn them off\n"
    ) in code
    after, stack = _synthesized(code)
    assert stack.get_logical_id(stack.node.find_child("OrderItems").node.default_child) in before  # type: ignore[arg-type]
    for member in ("TableName", "KeySchema", "LocalSecondaryIndexes"):
        assert after[member] == declared[member], member
    assert sorted(map(str, after["AttributeDefinitions"])) == sorted(map(str, declared["AttributeDefinitions"]))
    (index,), (own,) = after["GlobalSecondaryIndexes"], declared["GlobalSecondaryIndexes"]
    assert (index["KeySchema"], index["Projection"]) == (own["KeySchema"], own["Projection"])
    if target is None:
        assert after["BillingMode"] == "PAY_PER_REQUEST"
    else:
        # enough for all traffic, as nothing scales it in the first minute
        units = {"ReadCapacityUnits": 1_300, "WriteCapacityUnits": 23_000}
        assert (after["ProvisionedThroughput"], index["ProvisionedThroughput"]) == (units, units)


@pytest.mark.parametrize("target", [PLAN, None], ids=["to-provisioned", "to-on-demand"])
def test_global_table_changes_its_mode_where_it_is(tmp_path: Path, target: Plan | None) -> None:
    def build(stack: cdk.Stack, **more: Any) -> dynamodb.TableV2:
        return dynamodb.TableV2(stack, "World", partition_key=STATE, **more)

    fixed = dynamodb.Capacity.fixed(5)
    provisioned = dynamodb.Billing.provisioned(
        read_capacity=fixed, write_capacity=dynamodb.Capacity.autoscaled(max_capacity=70)
    )
    now = provisioned if target is None else dynamodb.Billing.on_demand()
    setup = _setup(tmp_path, lambda stack: build(stack, billing=now))
    code = code_of(_candidate(None if target is None else replace(target, windows=(), indexes=())), setup)
    assert "# in the TableV2 of Shop/World, for its argument billing\nbilling = " in code
    head, _, rest = code.partition("manage_capacity(\n")
    names: dict[str, Any] = {}
    exec(head, names)  # noqa: S102 - the project's own
    stack = cdk.Stack(cdk.App(), "Shop", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    names |= {"world": build(stack, billing=names["billing"])}
    if rest:
        exec(f"manage_capacity(\n{rest}", names)  # noqa: S102 - the project's own
    template = Template.from_stack(stack)
    if target is None:
        template.has_resource_properties("AWS::DynamoDB::GlobalTable", {"BillingMode": "PAY_PER_REQUEST"})
    else:
        seeded = {
            "WriteCapacityAutoScalingSettings": {"MinCapacity": 17, "MaxCapacity": 23_000, "SeedCapacity": 23_000}
        }
        template.has_resource_properties("AWS::DynamoDB::GlobalTable", {"WriteProvisionedThroughputSettings": seeded})


def test_global_table_that_stays_provisioned_keeps_its_billing(tmp_path: Path) -> None:
    def build(stack: cdk.Stack) -> dynamodb.TableV2:
        capacity = dynamodb.Capacity.autoscaled(max_capacity=70)
        billing = dynamodb.Billing.provisioned(read_capacity=dynamodb.Capacity.fixed(5), write_capacity=capacity)
        return dynamodb.TableV2(stack, "World", partition_key=STATE, billing=billing)

    code = code_of(_candidate(replace(PLAN, windows=(), indexes=())), _setup(tmp_path, build))
    assert ("\n\n# the TableV2 keeps its billing, and highwater migrate has the way\nmanage_capacity(\n") in code
    _, stack = _synthesized(code, world=build)
    bounds = {"WriteCapacityAutoScalingSettings": {"MinCapacity": 17, "MaxCapacity": 23_000}}
    Template.from_stack(stack).has_resource_properties(
        "AWS::DynamoDB::GlobalTable", {"WriteProvisionedThroughputSettings": bounds}
    )


LIVE = KnownTable(
    table_name="orders.v1",
    keys={
        None: Keys(partition=(KeyAttribute("pk", "N"),), sort=(KeyAttribute("sk", "B"),)),
        "by-owner": Keys(partition=(KeyAttribute("a", "S"), KeyAttribute("b", "N")), projection="KEYS_ONLY"),
    },
    is_live=True,
)


def _live(*, is_on_demand: bool = False) -> TableSetup:
    return replace(table_of(PLAN, "orders.v1"), known=LIVE, is_on_demand=is_on_demand)


def test_table_of_an_account_is_imported_by_its_name() -> None:
    code = code_of(_candidate(), _live())
    assert 'orders_v1 = dynamodb.Table.from_table_name(stack, "orders.v1", "orders.v1")\nmanage_capacity(\n' in code
    _synthesized(code)
    _synthesized(managed_code_of(_live()))
    _synthesized(scaler_code_of("highwater-floor", _candidate(), _live()))
    after, _ = _synthesized(code_of(_candidate(), _live(is_on_demand=True)))
    assert after["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    assert [each["AttributeName"] for each in after["GlobalSecondaryIndexes"][0]["KeySchema"]] == ["a", "b"]


def test_keys_that_nobody_knows_are_placeholders_that_say_so() -> None:
    line = "AttributeType.STRING),  # a placeholder: its keys are not known\n"
    assert code_of(_candidate()).count(line) == 2
    unknown = replace(_live(is_on_demand=True), known=replace(LIVE, keys={}))
    assert code_of(_candidate(), unknown).count(line) == 2


def test_keys_of_a_template_are_evaluated_and_left_out_where_they_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(
        """\
Parameters: {Key: {Type: String, Default: id}, Open: {Type: String}}
Resources:
  Simple: {Type: AWS::Serverless::SimpleTable, Properties: {PrimaryKey: {Name: number, Type: Number}}}
  Usual: {Type: AWS::Serverless::SimpleTable}
  Named:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: !Ref Key, AttributeType: B}, {AttributeName: !Ref Open, AttributeType: S}]
      KeySchema: [{AttributeName: !Ref Key, KeyType: HASH}]
      GlobalSecondaryIndexes:
        - {IndexName: open, KeySchema: [{AttributeName: !Ref Open, KeyType: HASH}], Projection: {ProjectionType: ALL}}
  Broken:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: !Select [-1, [1, 2]]
"""
    )
    templates = load_templates(tmp_path / "t.yaml")
    known = {name: find_table(templates, name=name).known for name in ("Simple", "Usual", "Named", "Broken")}
    assert {name: dict(each.keys) for name, each in known.items() if each is not None} == {
        "Simple": {None: Keys(partition=(KeyAttribute("number", "N"),))},
        "Usual": {None: Keys(partition=(KeyAttribute("id", "S"),))},
        "Named": {None: Keys(partition=(KeyAttribute("id", "B"),))},
        "Broken": {},
    }


# -- Terraform

# Arguments of each block: the documentation of Terraform's AWS provider 6, website/docs/r/<type>.html.markdown, read
# 2026-11; lifecycle, depends_on and import are Terraform's own
META: dict[str, Any] = {"lifecycle": {"prevent_destroy": {}, "ignore_changes": {}}, "depends_on": {}}
SCALED: dict[str, Any] = {"name": {}, "service_namespace": {}, "resource_id": {}, "scalable_dimension": {}}
WARM: dict[str, Any] = {"read_units_per_second": {}, "write_units_per_second": {}}
MAXIMUMS: dict[str, Any] = {"max_read_request_units": {}, "max_write_request_units": {}}
PROJECTION: dict[str, Any] = {"projection_type": {}, "non_key_attributes": {}}
ARGUMENTS: dict[str, Any] = {
    "aws_dynamodb_table": {
        "name": {},
        "billing_mode": {},
        "table_class": {},
        "hash_key": {},
        "range_key": {},
        "read_capacity": {},
        "write_capacity": {},
        "stream_enabled": {},
        "stream_view_type": {},
        "attribute": {"name": {}, "type": {}},
        "local_secondary_index": {"name": {}, "range_key": {}} | PROJECTION,
        "replica": {"region_name": {}},
        "on_demand_throughput": MAXIMUMS,
        "warm_throughput": WARM,
    },
    "aws_dynamodb_global_secondary_index": {
        "table_name": {},
        "index_name": {},
        "key_schema": {"attribute_name": {}, "attribute_type": {}, "key_type": {}},
        "projection": PROJECTION,
        "provisioned_throughput": {"read_capacity_units": {}, "write_capacity_units": {}},
        "on_demand_throughput": MAXIMUMS,
        "warm_throughput": WARM,
    },
    "aws_appautoscaling_target": {
        "service_namespace": {},
        "resource_id": {},
        "scalable_dimension": {},
        "min_capacity": {},
        "max_capacity": {},
    },
    "aws_appautoscaling_policy": SCALED
    | {
        "policy_type": {},
        "target_tracking_scaling_policy_configuration": {
            "target_value": {},
            "scale_in_cooldown": {},
            "scale_out_cooldown": {},
            "disable_scale_in": {},
            "predefined_metric_specification": {"predefined_metric_type": {}},
        },
    },
    "aws_appautoscaling_scheduled_action": SCALED
    | {
        "schedule": {},
        "timezone": {},
        "start_time": {},
        "end_time": {},
        "scalable_target_action": {"min_capacity": {}, "max_capacity": {}},
    },
}


def _unknown(block: Any, allowed: Mapping[str, Any], where: str) -> list[str]:
    """Return the arguments of a block that the documentation does not have."""
    if isinstance(block, list):
        return [line for each in block for line in _unknown(each, allowed, where)]
    if not isinstance(block, dict):
        return []
    given = {name: each for name, each in block.items() if not name.startswith("__")}
    return [
        line
        for name, each in given.items()
        for line in (_unknown(each, allowed[name], f"{where}.{name}") if name in allowed else [f"{where}.{name}"])
    ]


def _parsed(code: str) -> dict[str, Any]:
    """Return the resources of code by address; each has only documented arguments."""
    found = {}
    for each in hcl2.loads(code).get("resource", []):
        ((kind, named),) = each.items()
        ((name, block),) = named.items()
        kind, name = json.loads(kind), json.loads(name)
        assert _unknown(block, ARGUMENTS[kind] | META, kind) == []
        found[f"{kind}.{name}"] = block
    return found


def _planned(folder: Path, *more: dict[str, Any], **values: Any) -> TableSetup:
    keys = {
        "hash_key": "pk",
        "range_key": "sk",
        "attribute": [{"name": "pk", "type": "S"}, {"name": "sk", "type": "N"}],
    }
    return find_table(load_templates(saved(folder, plan(table(**(keys | values)), *more))))


def test_every_argument_of_terraform_code_is_documented(tmp_path: Path) -> None:
    def build(stack: cdk.Stack) -> None:
        _orders(stack, read_capacity=5, write_capacity=6, table_class=dynamodb.TableClass.STANDARD_INFREQUENT_ACCESS)

    once = Window.once(
        "sale", start="2026-11-27T05:00", end="2026-11-27T09:00", timezone="Europe/Berlin", write_min=1_500
    )
    replicated = _planned(tmp_path, replica=[{"region_name": "eu-west-1"}], stream_enabled=True, region="us-east-1")
    most = _planned(
        tmp_path,
        billing_mode="PAY_PER_REQUEST",
        on_demand_throughput=[{"max_read_request_units": 9, "max_write_request_units": 7}],
    )
    for setup in (None, _setup(tmp_path / "app", build), _live(), _live(is_on_demand=True), replicated, most):
        for declared in (PLAN, replace(PLAN, windows=(once,)), None):
            assert _parsed(hcl_of(_candidate(declared), setup))


def test_table_of_an_app_keeps_its_keys_indexes_and_class(tmp_path: Path) -> None:
    def build(stack: cdk.Stack) -> None:
        _orders(stack, table_name="order-items", table_class=dynamodb.TableClass.STANDARD_INFREQUENT_ACCESS)

    found = _parsed(hcl_of(_candidate(), _setup(tmp_path, build)))
    own, index = (
        found["aws_dynamodb_table.order-items"],
        found["aws_dynamodb_global_secondary_index.order-items_index_by-owner"],
    )
    assert [own[name] for name in ("name", "hash_key", "range_key", "table_class")] == [
        '"order-items"',
        '"state"',
        '"at"',
        '"STANDARD_INFREQUENT_ACCESS"',
    ]
    assert [(each["name"], each["type"]) for each in own["attribute"]] == [
        ('"state"', '"S"'),
        ('"at"', '"N"'),
        ('"owner"', '"B"'),
    ]
    (local,) = own["local_secondary_index"]
    assert [local[name] for name in ("name", "range_key", "projection_type")] == [
        '"by-holder"',
        '"owner"',
        '"KEYS_ONLY"',
    ]
    assert [(each["attribute_name"], each["key_type"]) for each in index["key_schema"]] == [
        ('"owner"', '"HASH"'),
        ('"at"', '"RANGE"'),
    ]
    (projection,) = index["projection"]
    assert (projection["projection_type"], projection["non_key_attributes"]) == ('"INCLUDE"', ['"sum"'])


def test_keys_of_a_plan_are_those_of_its_blocks_and_of_indexes_of_their_own(tmp_path: Path) -> None:
    own = resource(
        "aws_dynamodb_global_secondary_index.own",
        table_name="orders",
        index_name="by_day",
        key_schema=[{"attribute_name": "day", "attribute_type": "B", "key_type": "HASH"}],
        projection=[{"projection_type": "INCLUDE", "non_key_attributes": ["sum"]}],
        provisioned_throughput=[{"read_capacity_units": 5, "write_capacity_units": 6}],
    )
    attributes = [{"name": "pk", "type": "S"}, {"name": "sk", "type": "N"}, {"name": "state", "type": "S"}]
    local = [{"name": "local", "range_key": "state", "projection_type": "ALL"}]
    setup = _planned(tmp_path, own, attribute=attributes, global_secondary_index=[INDEX], local_secondary_index=local)
    assert setup.known is not None
    partition, state = (KeyAttribute("pk", "S"),), KeyAttribute("state", "S")
    assert setup.known.keys == {
        None: Keys(partition=partition, sort=(KeyAttribute("sk", "N"),)),
        "by_state": Keys(partition=(state,)),
        "by_day": Keys(partition=(KeyAttribute("day", "B"),), projection="INCLUDE", non_key=("sum",)),
    }
    assert setup.known.local_keys == {"local": Keys(partition=partition, sort=(state,))}
    assert (setup.known.table_name, setup.known.is_in_app) == ("orders", False)
    assert "aws_dynamodb_table.orders" in _parsed(hcl_of(_candidate(), setup))


@pytest.mark.parametrize("attribute", [None, "UNKNOWN", [{"name": "pk", "type": "Q"}], [5], [{"name": ["pk"]}]])
def test_keys_that_cannot_be_read_are_not_known(tmp_path: Path, attribute: Any) -> None:
    setup = _planned(tmp_path, attribute=attribute)
    assert setup.known is not None
    assert setup.known.keys == {}


def test_warm_throughput_of_a_table_that_exists_is_never_lowered_and_its_growth_is_ignored(tmp_path: Path) -> None:
    warm = [{"read_units_per_second": 180_000, "write_units_per_second": 60_000}]
    grown, cold = _planned(tmp_path, warm_throughput=warm), _planned(tmp_path)
    for setup in (grown, cold, _live(), replace(_live(), known=replace(LIVE, is_in_app=True, is_live=False))):
        code = hcl_of(_candidate(replace(PLAN, indexes=(IndexCapacity(index_name="by-owner"),))), setup)
        own, *others = [each for address, each in _parsed(code).items() if address.startswith("aws_dynamodb_")]
        assert not any("warm_throughput" in each for each in (own, *others))
        assert own["lifecycle"][0]["prevent_destroy"] is True
        assert all("warm_throughput" in each["lifecycle"][0]["ignore_changes"] for each in (own, *others))
    raise_it = "aws dynamodb update-table --table-name orders --warm-throughput WriteUnitsPerSecond=23000\n"
    assert raise_it not in hcl_of(_candidate(), grown)
    assert raise_it in hcl_of(_candidate(), cold)
    new = _parsed(hcl_of(_candidate()))["aws_dynamodb_table.table"]
    assert new["warm_throughput"][0]["write_units_per_second"] == 23_000
    assert "warm_throughput" in new["lifecycle"][0]["ignore_changes"]


def test_changes_of_one_target_are_made_one_after_the_other() -> None:
    found = _parsed(
        hcl_of(_candidate(replace(PLAN, windows=(NIGHT, replace(NIGHT, name="more", start="05:00", end="06:00")))))
    )
    actions = [each for each in found if each.startswith("aws_appautoscaling_scheduled_action.table_write_")]
    assert len(actions) >= 3
    before = ["aws_appautoscaling_policy.table_write", *actions]
    for action, last in zip(actions, before, strict=False):
        assert found[action]["depends_on"] == [f"${{{last}}}"]


def test_table_of_an_account_is_imported_with_its_indexes() -> None:
    imports = hcl2.loads(hcl_of(_candidate(), _live()))["import"]
    assert [(each["to"], each["id"]) for each in imports] == [
        ("${aws_dynamodb_table.orders_v1}", '"orders.v1"'),
        ("${aws_dynamodb_global_secondary_index.orders_v1_index_by-owner}", '"orders.v1,by-owner"'),
    ]


def test_on_demand_table_is_switched_to_enough_for_all_traffic(tmp_path: Path) -> None:
    code = hcl_of(_candidate(), _planned(tmp_path, billing_mode="PAY_PER_REQUEST"))
    own = _parsed(code)["aws_dynamodb_table.orders"]
    assert (own["read_capacity"], own["write_capacity"]) == (1_300, 23_000)
    assert own["lifecycle"][0]["ignore_changes"] == ["warm_throughput"]
    assert (
        "    # add read_capacity, write_capacity after the apply that switches the mode, which else is to 1 unit;\n"
        in code
    )


def test_replicas_are_kept(tmp_path: Path) -> None:
    setup = _planned(tmp_path, replica=[{"region_name": "eu-west-1"}], stream_enabled=True, region="us-east-1")
    own = _parsed(hcl_of(_candidate(), setup))["aws_dynamodb_table.orders"]
    assert [each["region_name"] for each in own["replica"]] == ['"eu-west-1"']
    assert (own["stream_enabled"], own["stream_view_type"]) == (True, '"NEW_AND_OLD_IMAGES"')
