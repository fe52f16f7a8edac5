"""The guard's answer to one change of a table after another: before, after, and the right sentences, with their mark.

Cases from public reports and from attacks on the guard; the mark is that of the terminal, ✗ for a finding.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, ThrottleAwareScaler, manage_capacity
from highwater_lab.report.app import hazard_sentence
from highwater_lab.template import hazards_of, load_prior, load_templates, read_app
from tests.template.plans import plan, policy, resource, saved, state, table, target
from tests.template.test_guard import KEEP, Document, _attribute, _index, _key, _table

LOST = "DynamoDB deletes the table of that region with its items"
KEEP_REPLICA = "keep the replica; remove it when nothing reads or writes in that region"
RETAIN = "keep it with DeletionPolicy: Retain, remove it from the template, and import it"
ORDERS, PURCHASES = "aws_dynamodb_table.orders", "aws_dynamodb_table.purchases"
WRITES = "aws_appautoscaling_target.write"


def _sentences(before: list[Any], after: list[Any], parameters: dict[str, str]) -> list[str]:
    old, new = (read_app(templates, parameters) for templates in (before, after))
    return [hazard_sentence(each) for each in hazards_of(old.tables, new.tables, new.remarks, new.plans)]


def _written(file: Path, template: Document) -> Path:
    file.write_text(json.dumps(template if "Resources" in template else {"Resources": template}))
    return file


def _by_stage(*, name: Any, default: str | None = None) -> Document:
    """A template whose table's name is *name*, with a mapping and a parameter to choose from it."""
    stage: Document = {"Type": "String"} | ({} if default is None else {"Default": default})
    return {
        "Parameters": {"Stage": stage},
        "Mappings": {"Names": {"prod": {"Is": "events"}, "dev": {"Is": "events-dev"}}},
        "Resources": {"T": _table(TableName=name)},
    }


def _by_region(keys: dict[str, str]) -> Document:
    """A template whose table's key is chosen by the region of a stack that may be deployed to any."""
    key = {"Fn::FindInMap": ["Keys", {"Ref": "AWS::Region"}, "Is"]}
    return {
        "Mappings": {"Keys": {region: {"Is": name} for region, name in keys.items()}},
        "Resources": {"T": _table(KeySchema=[{"AttributeName": key, "KeyType": "HASH"}])},
    }


def _replicas(*regions: Any, **more: Any) -> Document:
    return {"T": _table(kind="GlobalTable", Replicas=[{"Region": region} for region in regions], **more)}


def _replicated(*regions: str, **table_properties: Any) -> Document:
    """A table with the CDK's `replicationRegions`."""
    made = {
        f"R{number}": {"Type": "Custom::DynamoDBReplica", "Properties": {"TableName": {"Ref": "T"}, "Region": region}}
        for number, region in enumerate(regions)
    }
    return {"T": _table(**table_properties), **made}


def _provisioned(reads: int, writes: int, **more: Any) -> Document:
    units = {"ReadCapacityUnits": reads, "WriteCapacityUnits": writes}
    return _table(BillingMode="PROVISIONED", ProvisionedThroughput=units, **more)


def _scaled(writes: int) -> Document:
    properties = {
        "ServiceNamespace": "dynamodb",
        "ResourceId": {"Fn::Sub": "table/${T}"},
        "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
        "MinCapacity": 7,
        "MaxCapacity": 90,
    }
    return {
        "T": _provisioned(11, writes),
        "W": {"Type": "AWS::ApplicationAutoScaling::ScalableTarget", "Properties": properties},
    }


MODE_UNKNOWN = (
    "! T: whether its name changes is not known: it depends on a parameter without a value; give --parameter "
    "Stage=VALUE"
)
NAME_OF_STAGE = {"Fn::FindInMap": ["Names", {"Ref": "Stage"}, "Is"]}
TWO_KEYS: Document = {"GlobalSecondaryIndexes": [_index("g") | {"KeySchema": [_key("a"), _key("b")]}]}
TURNED: Document = {"GlobalSecondaryIndexes": [_index("g") | {"KeySchema": [_key("b"), _key("a")]}]}


@pytest.mark.parametrize(
    ("before", "after", "right"),
    [
        pytest.param(_by_stage(name="events"), _by_stage(name=NAME_OF_STAGE), [MODE_UNKNOWN], id="69-name-by-mapping"),
        pytest.param(
            _by_stage(name="orders"),
            _by_stage(name=NAME_OF_STAGE),
            [
                "✗ T: replaced by an empty table, as its name, from orders to events-dev, changes: CloudFormation "
                "deletes "
                f"the old one, with its data; {KEEP}"
            ],
            id="no-value-of-the-mapping-is-the-name",
        ),
        pytest.param(
            _by_stage(name="events"), _by_stage(name={"Ref": "Stage"}), [MODE_UNKNOWN], id="name-of-a-parameter"
        ),
        pytest.param(
            _by_stage(name="orders"),
            _by_stage(name={"Fn::Sub": "events-${Stage}"}),
            [
                "✗ T: replaced by an empty table, as its name, from orders to events-${Stage}, changes: CloudFormation "
                f"deletes the old one, with its data; {KEEP}"
            ],
            id="name-that-no-value-makes",
        ),
        pytest.param(_by_stage(name={"Ref": "Stage"}), _by_stage(name={"Ref": "Stage"}), [], id="same-reference"),
        pytest.param(
            _by_stage(name={"Ref": "Stage"}, default="events"),
            _by_stage(name={"Ref": "Stage"}, default="orders"),
            [
                "! T: whether its name changes is not known: the default of a parameter changes (Stage from events to "
                "orders), and a stack may keep its value; give --parameter Stage=VALUE"
            ],
            id="default-of-a-parameter",
        ),
        pytest.param(
            _by_region({"eu-west-1": "id", "us-east-1": "id"}),
            _by_region({"eu-west-1": "pk", "us-east-1": "pk"}),
            [
                "✗ T: replaced by an empty table, as its key schema changes: CloudFormation deletes the old one, with "
                "its "
                f"data; {KEEP}"
            ],
            id="mapping-changes-behind-the-same-reference",
        ),
        pytest.param(
            _by_region({"eu-west-1": "id", "us-east-1": "id"}),
            _by_region({"eu-west-1": "id", "us-east-1": "pk"}),
            ["! T: whether its key schema changes is not known: it depends on a value of the deployment"],
            id="mapping-changes-for-one-region",
        ),
        pytest.param(
            {"T": _table(KeySchema={"id": "HASH"})},
            {"T": _table()},
            ["! T: whether its key schema changes is not known: it depends on a value of the deployment"],
            id="keys-that-cannot-be-read",
        ),
        pytest.param(
            {"T": _table()},
            _replicas("us-east-1"),
            [
                "✗ T: its type changes, from AWS::DynamoDB::Table to AWS::DynamoDB::GlobalTable: CloudFormation "
                "refuses to "
                f"change the type of a resource, and deletes nothing; {RETAIN} as AWS::DynamoDB::GlobalTable, under "
                "another "
                "logical id"
            ],
            id="type-under-one-logical-id",
        ),
        pytest.param(
            {"T": _table(TableName="carts")},
            {"V": _replicas("us-east-1", TableName="carts")["T"]},
            [
                "✗ V: moved from T to V as AWS::DynamoDB::GlobalTable: CloudFormation creates before it deletes, and a "
                "table carts exists; keep it with DeletionPolicy: Retain, and import it as AWS::DynamoDB::GlobalTable"
            ],
            id="63-type-under-another-logical-id",
        ),
        pytest.param(
            {"T": {"Type": "AWS::Serverless::SimpleTable", "Properties": {}}},
            {"T": _table()},
            [],
            id="simple-table-becomes-the-table-that-it-is",
        ),
        pytest.param(
            {"T": {"Type": "AWS::Serverless::SimpleTable", "Properties": {}}},
            {"T": _table(KeySchema=[_key("pk")])},
            [
                "✗ T: replaced by an empty table, as its key schema changes: CloudFormation deletes the old one, with "
                "its "
                f"data; {KEEP}"
            ],
            id="simple-table-gets-another-key",
        ),
        pytest.param(
            _replicas("us-east-1"),
            _replicas("us-east-1", AttributeDefinitions=[_attribute("id", "N")]),
            [f"✗ T: the type of id changes: DynamoDB refuses to change the type of a key; {KEEP}"],
            id="type-of-a-key-of-a-global-table",
        ),
        pytest.param(
            {"T": _table(**TWO_KEYS)},
            {"T": _table(**TURNED)},
            [
                "✗ T: g has other keys or another projection: CloudFormation refuses more than one index created or "
                "deleted "
                "in an update; deploy one of these changes after the other, each when the index before it is ACTIVE or "
                "gone; "
                "add an index with other keys under another name, and delete the old one later"
            ],
            id="key-attributes-of-an-index-in-another-order",
        ),
        pytest.param(
            _replicas("us-east-1", "eu-west-1"),
            _replicas("us-east-1"),
            [f"✗ T: replica eu-west-1 is removed: {LOST}; {KEEP_REPLICA}"],
            id="replica-removed",
        ),
        pytest.param(
            _replicas("us-east-1", "eu-west-1"),
            _replicas("us-east-1", "ap-south-1"),
            [
                "✗ T: replicas: ap-south-1 is added, eu-west-1 is removed: CloudFormation refuses to add or remove "
                "more than "
                "one replica in an update; deploy one of these changes after the other; when a replica is removed, "
                f"{LOST}"
            ],
            id="replica-exchanged",
        ),
        pytest.param(
            _replicas("us-east-1"),
            _replicas("us-east-1", "eu-west-1", "ap-south-1"),
            [
                "✗ T: replicas: eu-west-1 is added, ap-south-1 is added: CloudFormation refuses to add or remove more "
                "than "
                "one replica in an update; deploy one of these changes after the other"
            ],
            id="two-replicas-added",
        ),
        pytest.param(
            _replicas("us-east-1"),
            _replicas("us-east-1", "us-east-2", "us-west-2", MultiRegionConsistency="STRONG"),
            [],
            id="two-replicas-added-of-strong-consistency",
        ),
        pytest.param(
            _replicas({"Ref": "AWS::Region"}, "eu-west-1"),
            _replicas("eu-west-1"),
            [
                "✗ T: the replica of the stack's region, ${AWS::Region}, is removed: CloudFormation refuses that; keep "
                "it; to "
                "leave the region, import the table into a stack of another region"
            ],
            id="replica-of-the-own-region-removed",
        ),
        pytest.param(
            {
                "T": _table(
                    kind="GlobalTable",
                    Replicas=[{"Region": "us-east-1"}, {"Region": "eu-west-1", "DeletionProtectionEnabled": True}],
                )
            },
            _replicas("us-east-1"),
            [
                "✗ T: replica eu-west-1 is removed, with deletion protection on: DynamoDB refuses to delete it; keep "
                "the "
                "replica, or turn the protection off before"
            ],
            id="protected-replica-removed",
        ),
        pytest.param(
            _replicated("eu-west-1", "ap-south-1"),
            _replicated("eu-west-1"),
            [f"✗ T: replica ap-south-1 is removed: {LOST}; {KEEP_REPLICA}"],
            id="replication-region-removed",
        ),
        pytest.param(
            _replicated("eu-west-1", BillingMode="PROVISIONED"),
            _replicated("eu-west-1", BillingMode="PROVISIONED", GlobalSecondaryIndexes=[_index("g")]),
            [
                "✗ T: g is created on a provisioned table with replicas: DynamoDB refuses an index whose writes are "
                "not auto "
                "scaled, and its scaling can be added only after it; deploy 1: set BillingMode to PAY_PER_REQUEST, and "
                "add "
                "the index. Deploy 2: set it back to PROVISIONED, with auto scaling of the index. A GlobalTable (the "
                "CDK's "
                "TableV2) accepts the index at once"
            ],
            id="index-on-a-provisioned-table-with-replication-regions",
        ),
        pytest.param(
            _replicated("eu-west-1"),
            _replicated("eu-west-1", GlobalSecondaryIndexes=[_index("g")]),
            [],
            id="index-on-an-on-demand-table-with-replication-regions",
        ),
        pytest.param(
            _scaled(400),
            _scaled(5),
            [
                "! T: the units in the template change (table writes from 400 to 5 units): CloudFormation sets the "
                "live "
                "capacity to them, whatever auto scaling has made of it; leave the units in the template as they are"
            ],
            id="units-of-a-scaled-table",
        ),
        pytest.param(
            {"T": _provisioned(11, 400)}, {"T": _provisioned(11, 5)}, [], id="units-of-a-table-without-scaling"
        ),
    ],
)
def test_change_by_cloudformation(tmp_path: Path, before: Document, after: Document, right: list[str]) -> None:
    old, new = (
        load_templates(_written(tmp_path / f"{name}.json", each)) for name, each in (("a", before), ("b", after))
    )
    assert _sentences(old, new, {}) == right


@pytest.mark.parametrize(("stage", "is_same"), [("prod", True), ("dev", False)])
def test_value_of_a_parameter_decides(tmp_path: Path, stage: str, is_same: bool) -> None:
    old, new = (
        load_templates(_written(tmp_path / f"{name}.json", _by_stage(name=each)))
        for name, each in (("a", "events"), ("b", NAME_OF_STAGE))
    )
    found = _sentences(old, new, {"Stage": stage})
    assert [each[:3] for each in found] == ([] if is_same else ["✗ T"])


def _managed(folder: Path, *, units: int = 1, is_on_demand: bool = False, has_scaler: bool = False) -> Path:
    """An app with a table that Highwater manages, or with the same table on demand."""
    app = cdk.App(outdir=str(folder))
    stack = cdk.Stack(app, "Shop")
    key = dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING)
    if is_on_demand:
        dynamodb.Table(stack, "Orders", partition_key=key, billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST)
    else:
        orders = dynamodb.Table(stack, "Orders", partition_key=key, read_capacity=units, write_capacity=units + 1)
        plan = manage_capacity(
            orders, read=Capacity.fixed(70), write=Capacity.autoscaled(min_capacity=60, max_capacity=90)
        )
        if has_scaler:
            ThrottleAwareScaler(stack, "Scaler").add_table(plan)
    app.synth()
    return folder


@pytest.mark.parametrize(
    ("before", "after", "right"),
    [
        pytest.param(
            {"units": 80},
            {"units": 5},
            [
                "! Shop/Orders: the units in the template change (table reads from 80 to 5 units, table writes from 81 "
                "to 6 "
                "units): CloudFormation sets the live capacity to them, whatever auto scaling has made of it; "
                "Highwater sets "
                "the floors again before the deploy ends; leave the units in the template as they are"
            ],
            id="units",
        ),
        pytest.param(
            {"units": 3},
            {"is_on_demand": True},
            [
                "! Shop/Orders: switches to on demand: if this deploy fails, the table is rolled back to 3 read and 4 "
                "write "
                "units; after a failed deploy: highwater resume NAME"
            ],
            id="on-demand",
        ),
        pytest.param({"has_scaler": True}, {"is_on_demand": True}, [], id="on-demand-with-a-scaler"),
        pytest.param({"is_on_demand": True}, {"units": 3}, [], id="provisioned"),
    ],
)
def test_managed_table(tmp_path: Path, before: dict[str, Any], after: dict[str, Any], right: list[str]) -> None:
    old, new = (load_templates(_managed(tmp_path / name, **each)) for name, each in (("a", before), ("b", after)))
    assert _sentences(old, new, {}) == right


def _assembly(folder: Path, region: str, account: str) -> Path:
    folder.mkdir()
    _written(folder / "Shop.template.json", {"T": _table()})
    stack = {
        "type": "aws:cloudformation:stack",
        "environment": f"aws://{account}/{region}",
        "properties": {"templateFile": "Shop.template.json"},
    }
    (folder / "manifest.json").write_text(json.dumps({"version": "36.0.0", "artifacts": {"Shop": stack}}))
    return folder


@pytest.mark.parametrize(
    ("region", "account", "places"),
    [
        ("us-east-1", "111122223333", "its stack goes to us-east-1, and was in eu-west-1"),
        ("eu-west-1", "444455556666", "its stack goes to 444455556666, and was in 111122223333"),
    ],
)
def test_stack_goes_elsewhere(tmp_path: Path, region: str, account: str, places: str) -> None:
    old, new = (
        load_templates(_assembly(tmp_path / name, *place))
        for name, place in (("a", ("eu-west-1", "111122223333")), ("b", (region, account)))
    )
    was = places.rpartition(" ")[2]
    assert _sentences(old, new, {}) == [
        f"✗ T: {places}: CloudFormation creates an empty table there; the old one and its stack stay where they are, "
        "with "
        f"the data; leave the stack in {was}, or copy the data, and remove the stack there later"
    ]


# -- Terraform


def _change(address: str, *actions: str, previous: str = "", **more: Any) -> Document:
    change = {"actions": list(actions), "replace_paths": more.pop("paths", [])} | more
    return {"address": address, "type": "aws_dynamodb_table", "change": change} | (
        {"previous_address": previous} if previous else {}
    )


def _carts(*regions: str, **values: Any) -> Document:
    return table(billing_mode="PAY_PER_REQUEST", replica=[{"region_name": each} for each in regions], **values)


def _indexed(key: str, *others: str, projection: str = "INCLUDE", source: str = "") -> list[Document]:
    """A table with an index in a block, or in a resource of its own with the address *source*."""
    if source:
        keys = [{"attribute_name": key, "attribute_type": "S", "key_type": "HASH"}]
        own = resource(source, table_name="orders", index_name="by-g", key_schema=keys, projection=[{}])
        return [table(), own]
    block = {"name": "by-g", "hash_key": key, "projection_type": projection, "non_key_attributes": list(others)}
    return [table(global_secondary_index=[block])]


REPLICA = resource(
    "aws_dynamodb_table_replica.eu",
    global_table_arn="arn:aws:dynamodb:us-east-1:111122223333:table/orders",
    arn="arn:aws:dynamodb:eu-west-1:111122223333:table/orders",
)
REMOVED = "removed: Terraform deletes it, with its data"
CREATED = f"{PURCHASES} creates another, empty table orders"
MOVED_BLOCK = f"add a moved block from {ORDERS} to {PURCHASES}"
REBUILT = (
    "index by-g: Terraform deletes it and builds it again with other keys or another projection; queries fail "
    "meanwhile; "
    "add an index under another name, and delete the old one when nothing queries it"
)
GSI = "aws_dynamodb_global_secondary_index.g"


@pytest.mark.parametrize(
    ("before", "after", "changes", "right"),
    [
        pytest.param(
            [table()],
            [table(PURCHASES)],
            [_change(ORDERS, "delete"), _change(PURCHASES, "create")],
            [f"✗ {ORDERS}: {REMOVED}; {CREATED}; to keep it, {MOVED_BLOCK}"],
            id="44-label-renamed-without-a-moved-block",
        ),
        pytest.param(
            [table('aws_dynamodb_table.t["a"]')],
            [table('module.shop.aws_dynamodb_table.t["b"]')],
            [
                _change('aws_dynamodb_table.t["a"]', "delete"),
                _change('module.shop.aws_dynamodb_table.t["b"]', "create"),
            ],
            [
                f'✗ aws_dynamodb_table.t["a"]: {REMOVED}; module.shop.aws_dynamodb_table.t["b"] creates another, empty '
                "table "
                'orders; to keep it, add a moved block from aws_dynamodb_table.t["a"] to '
                'module.shop.aws_dynamodb_table.t["b"]'
            ],
            id="for-each-and-a-module",
        ),
        pytest.param(
            [table(deletion_protection_enabled=True)],
            [table(PURCHASES)],
            [_change(ORDERS, "delete"), _change(PURCHASES, "create")],
            [
                f"✗ {ORDERS}: removed, with deletion protection on: DynamoDB refuses to delete it, and the apply "
                "fails; to "
                f"keep it, {MOVED_BLOCK}; to lose it, turn the protection off before"
            ],
            id="renamed-with-deletion-protection",
        ),
        pytest.param(
            [table()], [table(PURCHASES)], [_change(PURCHASES, "no-op", previous=ORDERS)], [], id="moved-block"
        ),
        pytest.param(
            [table()],
            [table(PURCHASES, hash_key="pk")],
            [_change(PURCHASES, "delete", "create", previous=ORDERS)],
            [
                f"✗ {PURCHASES}: replaced by an empty table (the plan says so): Terraform deletes the old one, with "
                "its data; "
                f"{KEEP}"
            ],
            id="moved-and-replaced-without-paths",
        ),
        pytest.param(
            [table()],
            [table(PURCHASES), table()],
            [_change(PURCHASES, "no-op", previous=ORDERS), _change(ORDERS, "create")],
            [],
            id="moved-and-another-table-at-the-old-address",
        ),
        pytest.param(
            [table()],
            [table(PURCHASES)],
            [_change(ORDERS, "forget"), _change(PURCHASES, "create")],
            [
                f"✗ {ORDERS}: removed from the state, and created at {PURCHASES}: a table orders exists, and AWS "
                "refuses a "
                f"second one; {MOVED_BLOCK}, or an import block for the latter"
            ],
            id="forgotten-and-created",
        ),
        pytest.param(
            [table()],
            [table(PURCHASES)],
            [_change(ORDERS, "forget"), _change(PURCHASES, "no-op", importing={"id": "orders"})],
            [],
            id="forgotten-and-imported",
        ),
        *(
            pytest.param(
                [table()],
                [table(name="orders-2")],
                [_change(ORDERS, *actions, paths=[["name"]])],
                [
                    f"✗ {ORDERS}: replaced by an empty table (name): Terraform forgets the old one; it stays in the "
                    "account, "
                    f"with its data, and is no longer managed; {KEEP}"
                ],
                id="-then-".join(actions),
            )
            for actions in (("create", "forget"), ("forget", "create"))
        ),
        pytest.param(
            [table()],
            [table()],
            [_change(ORDERS, "forget", "create")],
            [
                f"✗ {ORDERS}: replaced by an empty table (the plan says so): Terraform forgets the old one, and AWS "
                "refuses "
                f"a second table orders; {KEEP}"
            ],
            id="forgotten-and-created-under-its-name",
        ),
        pytest.param(
            [_carts("eu-west-1", "ap-southeast-2")],
            [_carts("eu-west-1")],
            [_change(ORDERS, "update")],
            [f"✗ {ORDERS}: replica ap-southeast-2 is removed: {LOST}; {KEEP_REPLICA}"],
            id="72-replica-removed",
        ),
        pytest.param(
            [_carts("eu-west-1")],
            [_carts("ap-southeast-2")],
            [_change(ORDERS, "update")],
            [f"✗ {ORDERS}: replica eu-west-1 is removed: {LOST}; {KEEP_REPLICA}"],
            id="replica-exchanged",
        ),
        pytest.param(
            [_carts()],
            [_carts("eu-west-1", "ap-southeast-2")],
            [_change(ORDERS, "update")],
            [],
            id="two-replicas-added-one-request-after-the-other",
        ),
        pytest.param(
            [_carts(), REPLICA],
            [_carts()],
            [_change(REPLICA["address"], "delete")],
            [f"✗ {ORDERS}: replica eu-west-1 is removed: {LOST}; {KEEP_REPLICA}"],
            id="own-replica-removed",
        ),
        pytest.param(
            [_carts(), REPLICA],
            [_carts(), REPLICA],
            [_change(REPLICA["address"], "delete", "create")],
            [f"✗ {ORDERS}: replica eu-west-1 is deleted and created again: {LOST}; {KEEP_REPLICA}"],
            id="own-replica-replaced",
        ),
        pytest.param(
            [_carts(), REPLICA],
            [_carts()],
            [_change(REPLICA["address"], "forget")],
            [
                f"! {ORDERS}: replica eu-west-1 is removed from the state: it stays in the account, with its data, and "
                "is "
                "only no longer managed"
            ],
            id="own-replica-forgotten",
        ),
        pytest.param(
            [table()],
            [table(replica=[{"region_name": "eu-west-1"}]), target(), policy()],
            [_change(ORDERS, "update"), _change(WRITES, "create")],
            [
                f"✗ {ORDERS}: replica eu-west-1 is added by the apply that adds auto scaling of the writes of table: "
                "the "
                "table comes first, and DynamoDB refuses a replica of a provisioned table whose writes are not auto "
                "scaled; "
                "apply twice: first the target and its policy, then the replica, or set billing_mode to PAY_PER_REQUEST"
            ],
            id="51-replica-and-scaling-at-once",
        ),
        pytest.param(
            _indexed("g", "x", "y"),
            _indexed("h", "x", "y"),
            [_change(ORDERS, "update")],
            [f"✗ {ORDERS}: {REBUILT}"],
            id="73-index-gets-another-key",
        ),
        pytest.param(
            _indexed("g", "x", "y"),
            _indexed("g", "x"),
            [_change(ORDERS, "update")],
            [f"✗ {ORDERS}: {REBUILT}"],
            id="index-gets-other-attributes",
        ),
        pytest.param(
            _indexed("g", "x", "y"),
            _indexed("g", "y", "x"),
            [_change(ORDERS, "update")],
            [],
            id="order-of-non-key-attributes",
        ),
        pytest.param(
            _indexed("g", source=GSI),
            _indexed("h", source=GSI),
            [_change(ORDERS, "no-op"), _change(GSI, "delete", "create")],
            [f"✗ {ORDERS}: {REBUILT}"],
            id="own-index-replaced",
        ),
        pytest.param(
            _indexed("g", source=GSI),
            _indexed("g", source=GSI),
            [_change(ORDERS, "no-op"), _change(GSI, "update")],
            [],
            id="own-index-updated",
        ),
        pytest.param(
            [table(write_capacity=400), target(), policy()],
            [table(write_capacity=5), target(), policy()],
            [_change(ORDERS, "update")],
            [
                f"✗ {ORDERS}: the apply sets scaled capacity to the units of the configuration (table writes from 400 "
                "to 5 "
                "units): requests are throttled until it has scaled out again, and it costs one of the day's "
                "decreases; "
                "ignore changes of read_capacity and write_capacity (lifecycle, ignore_changes)"
            ],
            id="74-apply-resets-scaled-capacity",
        ),
        pytest.param(
            [table(write_capacity=5), target(), policy()],
            [table(write_capacity=400), target(), policy()],
            [_change(ORDERS, "update")],
            [
                f"! {ORDERS}: the apply sets scaled capacity to the units of the configuration (table writes from 5 to "
                "400 "
                "units), whatever auto scaling has made of it; ignore changes of read_capacity and write_capacity "
                "(lifecycle, ignore_changes)"
            ],
            id="apply-raises-scaled-capacity",
        ),
        pytest.param(
            [table(write_capacity=400)],
            [table(write_capacity=5)],
            [_change(ORDERS, "update")],
            [],
            id="units-without-a-target",
        ),
    ],
)
def test_change_by_terraform(
    tmp_path: Path, before: list[Document], after: list[Document], changes: list[Document], right: list[str]
) -> None:
    document = plan(*after, prior=tuple(before), region="us-east-1") | {"resource_changes": changes}
    file = saved(tmp_path, document)
    assert _sentences(load_prior(file), load_templates(file), {}) == right


def test_plan_decides_for_another_state_too(tmp_path: Path) -> None:
    changes = [_change(ORDERS, "delete"), _change(PURCHASES, "create")]
    new = saved(tmp_path, plan(table(PURCHASES), prior=(table(),)) | {"resource_changes": changes})
    old = saved(tmp_path, state(table()), "state.json")
    assert _sentences(load_templates(old), load_templates(new), {}) == [
        f"✗ {ORDERS}: {REMOVED}; {CREATED}; to keep it, {MOVED_BLOCK}"
    ]


def test_states_do_not_tell_a_move_from_a_loss(tmp_path: Path) -> None:
    old, new = saved(tmp_path, state(table()), "a.json"), saved(tmp_path, state(table(PURCHASES)), "b.json")
    assert _sentences(load_templates(old), load_templates(new), {}) == [
        f"! {PURCHASES}: its address was {ORDERS}: whether the table was moved, or deleted and made again, two states "
        "do not "
        "say; compare with a plan: terraform show -json of the plan, with --against prior"
    ]
    gone = saved(tmp_path, state(), "c.json")
    assert _sentences(load_templates(old), load_templates(gone), {}) == [
        f"✗ {ORDERS}: {REMOVED}, or only forgets it, which two states do not tell apart; to keep it, give it a removed "
        "block "
        "with destroy = false"
    ]
