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
from highwater_lab.template import hazards_of, load_templates, read_app
from tests.template.test_guard import KEEP, Document, _attribute, _index, _key, _table

LOST = "DynamoDB deletes the table of that region with its items"
KEEP_REPLICA = "keep the replica; remove it when nothing reads or writes in that region"
RETAIN = "keep it with DeletionPolicy: Retain, remove it from the template, and import it"


def sentences(before: list[Any], after: list[Any], parameters: dict[str, str]) -> list[str]:
    """Return the lines of the guard with their marks."""
    old, new = (read_app(templates, parameters) for templates in (before, after))
    found = hazards_of(old.tables, new.tables, new.remarks, new.plans, absent=new.absent, stacks=new.stacks)
    return [hazard_sentence(each) for each in found]


def written(file: Path, template: Document) -> Path:
    """Write a template, or the resources of one, to a file."""
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


def provisioned(reads: int, writes: int, **more: Any) -> Document:
    """Return a provisioned table."""
    units = {"ReadCapacityUnits": reads, "WriteCapacityUnits": writes}
    return _table(BillingMode="PROVISIONED", ProvisionedThroughput=units, **more)


def scaled_table(writes: int) -> Document:
    """Return a table whose writes a scalable target scales."""
    properties = {
        "ServiceNamespace": "dynamodb",
        "ResourceId": {"Fn::Sub": "table/${T}"},
        "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
        "MinCapacity": 7,
        "MaxCapacity": 90,
    }
    return {
        "T": provisioned(11, writes),
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
            scaled_table(400),
            scaled_table(5),
            [
                "! T: the units in the template change (table writes from 400 to 5 units): CloudFormation sets the "
                "live "
                "capacity to them, whatever auto scaling has made of it; leave the units in the template as they are"
            ],
            id="units-of-a-scaled-table",
        ),
        pytest.param({"T": provisioned(11, 400)}, {"T": provisioned(11, 5)}, [], id="units-of-a-table-without-scaling"),
    ],
)
def test_change_by_cloudformation(tmp_path: Path, before: Document, after: Document, right: list[str]) -> None:
    old, new = (
        load_templates(written(tmp_path / f"{name}.json", each)) for name, each in (("a", before), ("b", after))
    )
    assert sentences(old, new, {}) == right


@pytest.mark.parametrize(("stage", "is_same"), [("prod", True), ("dev", False)])
def test_value_of_a_parameter_decides(tmp_path: Path, stage: str, is_same: bool) -> None:
    old, new = (
        load_templates(written(tmp_path / f"{name}.json", _by_stage(name=each)))
        for name, each in (("a", "events"), ("b", NAME_OF_STAGE))
    )
    found = sentences(old, new, {"Stage": stage})
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
    assert sentences(old, new, {}) == right


def _assembly(folder: Path, region: str, account: str) -> Path:
    folder.mkdir()
    written(folder / "Shop.template.json", {"T": _table()})
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
    assert sentences(old, new, {}) == [
        f"✗ T: {places}: CloudFormation creates an empty table there; the old one and its stack stay where they are, "
        "with "
        f"the data; leave the stack in {was}, or copy the data, and remove the stack there later"
    ]
