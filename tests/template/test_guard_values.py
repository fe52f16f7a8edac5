"""The guard's answer to changes that depend on values: of parameters, conditions, and stacks around a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.template import load_templates
from tests.template.test_guard import Document, _key, _table
from tests.template.test_guard_cases import LOST, _by_stage, _replicas, _replicated, sentences, written

TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
WRITES_OF_ORDERS = {
    "ServiceNamespace": "dynamodb",
    "ResourceId": "table/orders",
    "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
    "MinCapacity": 7,
    "MaxCapacity": 70,
}
STAGE: Document = {"Stage": {"Type": "String"}}
PRODUCTION = {"Fn::Equals": [{"Ref": "Stage"}, "prod"]}
NO_VALUE = {"Ref": "AWS::NoValue"}


def _of_stage(condition: Any = PRODUCTION, **table_properties: Any) -> Document:
    """A template of one table, with a parameter without a value and a condition of it."""
    return {"Parameters": STAGE, "Conditions": {"C": condition}, "Resources": {"T": _table(**table_properties)}}


def _keyed(key: Any, **names: str) -> Document:
    """A template whose table's name is found by a key in a mapping."""
    found = {"Fn::FindInMap": ["Names", key, "Is"]}
    return _by_stage(name=found) | {"Mappings": {"Names": {stage: {"Is": name} for stage, name in names.items()}}}


def _named_by_four(name: Any) -> Document:
    """A template with more choices of its parameters than are tried."""
    parameters = {f"P{number}": {"Type": "String", "AllowedValues": list("abcde")} for number in range(4)}
    every = {"Fn::And": [{"Fn::Equals": [{"Ref": each}, "e"]} for each in parameters]}
    return {
        "Parameters": parameters,
        "Conditions": {"C": every},
        "Resources": {"T": _table(TableName={"Fn::If": ["C", name, "orders"]})},
    }


def _of_parameter(default: str) -> Document:
    stored = {"Type": "AWS::SSM::Parameter::Value<String>", "Default": default}
    return {"Parameters": {"Name": stored}, "Resources": {"T": _table(TableName={"Ref": "Name"})}}


def _global(*regions: str, by_condition: bool = False) -> Document:
    """A template of a provisioned global table, whose scaling is behind a condition."""
    scaling = {"WriteCapacityAutoScalingSettings": {"MinCapacity": 5, "MaxCapacity": 50}}
    settings = {"Fn::If": ["C", scaling, NO_VALUE]} if by_condition else scaling
    made = _replicas(*regions, BillingMode="PROVISIONED", WriteProvisionedThroughputSettings=settings)
    return {"Conditions": {"C": {"Fn::Equals": ["a", "a"]}}, "Resources": made}


def _replica_with(**members: Any) -> Document:
    made = _replicated("eu-west-1")
    condition = {"C": {"Fn::Equals": ["a", "b"]}}
    return {"Conditions": condition, "Resources": made | {"R0": _merged(made["R0"], members)}}


def _merged(resource: Document, members: Document) -> Document:
    properties = resource["Properties"] | members.pop("Properties", {})
    return resource | members | {"Properties": properties}


REMOVED_UNKNOWN = "! T: whether it is removed is not known"
NAME_UNKNOWN = "! T: whether its name changes is not known"


@pytest.mark.parametrize(
    ("before", "after", "right"),
    [
        pytest.param(_of_stage(), _of_stage(TableName=NO_VALUE), [], id="name-without-a-value"),
        pytest.param(_of_stage(), _of_stage(LocalSecondaryIndexes=NO_VALUE), [], id="indexes-without-a-value"),
        pytest.param(
            _keyed({"Fn::Sub": "${Stage}"}, prod="a", dev="b"),
            _keyed({"Fn::Sub": "${Stage}"}, prod="c", dev="d"),
            ["✗ T: replaced"],
            id="key-of-a-mapping-in-a-text",
        ),
        pytest.param(
            _keyed({"Ref": "Stage"}, prod="a", dev="b"),
            _keyed({"Ref": "Stage"}, prod="a", dev="b", test="c"),
            [],
            id="a-mapping-gets-another-key",
        ),
        pytest.param(
            _of_stage(),
            _of_stage({"Fn::Equals": [{"Fn::Sub": "x-${Stage}"}, "x-prod"]}, members={"Condition": "C"}),
            [REMOVED_UNKNOWN],
            id="condition-on-a-text",
        ),
        pytest.param(
            _of_stage(),
            _of_stage({"Fn::Not": [PRODUCTION]}, members={"Condition": "C"}),
            [REMOVED_UNKNOWN],
            id="condition-that-is-not-met-for-one-value",
        ),
        pytest.param(
            _of_stage(),
            _of_stage({"Fn::Equals": [{"Ref": "AWS::Region"}, "eu-west-1"]}, members={"Condition": "C"}),
            [REMOVED_UNKNOWN],
            id="condition-on-the-region",
        ),
        pytest.param(
            _of_stage({"Fn::Equals": [{"Ref": "Stage"}, ""]}, TableName={"Fn::If": ["C", NO_VALUE, "orders"]}),
            _of_stage({"Fn::Equals": [{"Ref": "Stage"}, ""]}, TableName={"Fn::If": ["C", NO_VALUE, "carts"]}),
            [NAME_UNKNOWN],
            id="empty-parameter",
        ),
        pytest.param(
            _named_by_four("orders"), _named_by_four("carts"), ["! T: whether it is replaced"], id="too-many-values"
        ),
        pytest.param(_named_by_four("orders"), _named_by_four("orders"), [], id="too-many-values-of-one-template"),
        pytest.param(_of_parameter("/a"), _of_parameter("/b"), [NAME_UNKNOWN], id="another-stored-parameter"),
        pytest.param(
            _global("us-east-1"), _global("us-east-1", "eu-west-1", by_condition=True), [], id="scaling-by-condition"
        ),
        pytest.param(
            _replica_with(Properties={"SkipReplicaDeletion": "false"}),
            {"T": _table()},
            [f"✗ T: replica eu-west-1 is removed: {LOST}"],
            id="replica-that-is-not-skipped",
        ),
        pytest.param(
            _replicated("eu-west-1"),
            _replica_with(Condition="C"),
            [f"✗ T: replica eu-west-1 is removed: {LOST}"],
            id="replica-behind-a-condition",
        ),
        pytest.param(
            {
                "Conditions": {"C": {"Fn::Equals": ["a", "a"]}},
                "Resources": {"T": _table(members={"DeletionPolicy": {"Fn::If": ["C", "Retain", "Delete"]}})},
            },
            {"U": _table()},
            ["! T: removed: by its DeletionPolicy"],
            id="deletion-policy-by-condition",
        ),
        pytest.param(
            {"T": _table(members={"UpdateReplacePolicy": "Retain"})},
            {"T": _table(KeySchema=[_key("pk")])},
            ["✗ T: replaced by an empty table, as its key schema changes: CloudFormation deletes the old one"],
            id="policy-no-longer-retains",
        ),
        pytest.param(
            {"T": _table(TableName="orders")} | {"W": {"Type": TARGET, "Properties": WRITES_OF_ORDERS}},
            {"W": {"Type": TARGET, "Properties": WRITES_OF_ORDERS}},
            ["✗ T: removed: CloudFormation deletes it"],
            id="its-targets-stay",
        ),
    ],
)
def test_change_that_depends_on_values(tmp_path: Path, before: Document, after: Document, right: list[str]) -> None:
    old, new = (
        load_templates(written(tmp_path / f"{name}.json", each)) for name, each in (("a", before), ("b", after))
    )
    found = sentences(old, new, {})
    assert [line[: len(start)] for line, start in zip(found, right, strict=True)] == right


def _stacks(folder: Path, **stacks: tuple[str, Document]) -> list[Any]:
    """Load an assembly: by artifact the stack's name and template; a nested template is in its resource."""
    folder.mkdir()
    artifacts = {}
    for artifact, (name, template) in stacks.items():
        for logical_id, made in template["Resources"].items():
            if nested := made.pop("Nested", None):
                file = f"{artifact}{logical_id}.nested.template.json"
                made |= {"Type": "AWS::CloudFormation::Stack", "Metadata": {"aws:asset:path": file}}
                written(folder / file, nested)
        written(folder / f"{artifact}.template.json", template)
        artifacts[artifact] = {
            "type": "aws:cloudformation:stack",
            "environment": "aws://111122223333/eu-west-1",
            "properties": {"templateFile": f"{artifact}.template.json", "stackName": name},
        }
    (folder / "manifest.json").write_text(json.dumps({"version": "36.0.0", "artifacts": artifacts}))
    return load_templates(folder)


def _nesting(nested: Document, parameters: Document | None = None, **members: Any) -> tuple[str, Document]:
    """A stack with a nested one, which passes `Stage` to it."""
    properties = {"Parameters": parameters} if parameters else {}
    queue = {"Type": "AWS::SQS::Queue"}
    resources = {"Q": queue, "N": {"Nested": nested, "Properties": properties, **members}}
    return "shop", {"Parameters": STAGE, "Conditions": {"C": PRODUCTION}, "Resources": resources}


def _with_path(**table_properties: Any) -> Document:
    return {"Resources": {"T": _table(members={"Metadata": {"aws:cdk:path": "Shop/T/Resource"}}, **table_properties)}}


ALONE = {"Resources": {"Q": {"Type": "AWS::SQS::Queue"}}}
PASSED = {"Stage": {"Ref": "Stage"}}
CHOSEN = {"Stage": {"Fn::If": ["C", "p", "d"]}}


@pytest.mark.parametrize(
    ("before", "after", "right"),
    [
        pytest.param(
            {"Shop": ("old", _with_path())},
            {"Shop": ("new", _with_path())},
            ["✗ Shop/T: replaced by an empty table in another stack; the old one stays"],
            id="stack-renamed",
        ),
        pytest.param(
            {"Shop": ("old", _with_path(TableName="orders"))},
            {"Shop": ("new", _with_path(TableName="orders"))},
            ["✗ Shop/T: moved from T of old to T of new: CloudFormation creates before"],
            id="stack-with-a-named-table-renamed",
        ),
        pytest.param(
            {"Shop": ("shop", _with_path()), "Other": ("other", ALONE)},
            {"Other": ("other", ALONE)},
            ["! Shop/T: removed: stays, with its data, in stack shop"],
            id="stack-leaves-the-app",
        ),
        pytest.param(
            {"Shop": _nesting({"T": _table()}, DeletionPolicy="Retain")},
            {"Shop": ("shop", ALONE)},
            ["! T: removed: stays, with its data, in nested stack N"],
            id="retained-nested-stack-removed",
        ),
        pytest.param(
            {"Shop": _nesting({"T": _table()})}, {"Shop": ("shop", ALONE)}, ["✗ T: removed"], id="nested-stack-removed"
        ),
        pytest.param(
            {"Shop": _nesting({"T": _table()})},
            {"Shop": _nesting({"T": _table()}, Condition="C")},
            [REMOVED_UNKNOWN],
            id="nested-stack-gets-a-condition",
        ),
        pytest.param(
            {"Shop": _nesting(_of_stage(), PASSED)},
            {"Shop": _nesting(_of_stage(members={"Condition": "C"}), PASSED)},
            [REMOVED_UNKNOWN],
            id="parameter-of-the-parent",
        ),
        pytest.param(
            {"Shop": _nesting(_keyed({"Ref": "Stage"}, prod="a", dev="b"), PASSED)},
            {"Shop": _nesting(_keyed({"Ref": "Stage"}, prod="c", dev="d"), PASSED)},
            ["✗ T: replaced"],
            id="mapping-by-a-parameter-of-the-parent",
        ),
        pytest.param(
            {"Shop": _nesting(_of_stage(TableName="o-d"), CHOSEN)},
            {"Shop": _nesting(_of_stage(TableName={"Fn::Sub": "o-${Stage}"}), CHOSEN)},
            [NAME_UNKNOWN],
            id="parameter-by-a-condition-of-the-parent",
        ),
    ],
)
def test_change_of_stacks(tmp_path: Path, before: Document, after: Document, right: list[str]) -> None:
    old, new = (_stacks(tmp_path / name, **each) for name, each in (("a", before), ("b", after)))
    found = sentences(old, new, {})
    assert [line[: len(start)] for line, start in zip(found, right, strict=True)] == right
