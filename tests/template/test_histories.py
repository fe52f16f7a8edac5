"""The guard's answer to changes that real projects made: the shape of each change, with its place in public.

Each was read by hand, from the file of a commit and of the commit before, by AWS's and HashiCorp's documentation
(2026-11-29), before the guard was asked. Names are others than in the files; what is left out is the same before and
after, or no part of a table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from highwater_lab.template import load_prior, load_templates
from tests.template.plans import plan, saved, table
from tests.template.test_guard import Document, _attribute, _index, _key, _table
from tests.template.test_guard_cases import provisioned, scaled_table, sentences, written
from tests.template.test_guard_plans import ORDERS, PURCHASES, change

RETAINED = {"DeletionPolicy": "Retain"}
SIMPLE: Document = {"Type": "AWS::Serverless::SimpleTable", "Properties": {}}
PARTS = [_attribute("a"), _attribute("b")]


def _staged(name: Any, *, default: str | None = None, allowed: tuple[str, ...] = (), **more: Any) -> Document:
    """A template with a parameter `Stage` and a table of this name."""
    stage: Document = {"Type": "String", "AllowedValues": list(allowed)} if allowed else {"Type": "String"}
    stage |= {} if default is None else {"Default": default}
    return {"Parameters": {"Stage": stage}, "Resources": {"T": _table(TableName=name)}} | more


def _mapped(name: Any) -> Document:
    names = {"CODE": {"Is": "codes-CODE"}, "PROD": {"Is": "codes-live"}}
    return _staged(name, allowed=("CODE", "PROD"), Mappings={"Names": names})


def _conditional(*, is_conditional: bool) -> Document:
    """A table that only the stage CODE has, from a change on."""
    resources = {"T": _table(members={"Condition": "IsCode"} if is_conditional else {}, TableName="log")}
    conditions = {"IsCode": {"Fn::Equals": [{"Ref": "Stage"}, "CODE"]}}
    return _staged("log", allowed=("CODE", "PROD"), Conditions=conditions) | {"Resources": resources}


def _renamed_parameter(name: str) -> Document:
    return {"Parameters": {name: {"Type": "String"}}, "Resources": {"T": _table(TableName={"Ref": name})}}


def _renamed_target(name: str) -> Document:
    scaled = scaled_table(1)
    return {"T": scaled["T"], name: scaled["W"]}


def _indexed(*indexes: Document, **more: Any) -> Document:
    return {"T": _table(GlobalSecondaryIndexes=list(indexes), **more)}


WIDER: Document = {"Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x", "y"]}}
NARROW: Document = {"Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]}}
PROTECTED: Document = {
    "DeletionProtectionEnabled": {"Fn::If": ["IsLive", True, False]},
    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": {"Fn::If": ["IsLive", True, False]}},
}
LIVE = {"IsLive": {"Fn::Equals": [{"Ref": "Stage"}, "PROD"]}}
TURNED_KEYS: Document = {
    "KeySchema": [_key("b"), _key("a", "RANGE")],
    "AttributeDefinitions": PARTS,
    "TableName": "subs",
}
STRAIGHT_KEYS: Document = {
    "KeySchema": [_key("a"), _key("b", "RANGE")],
    "AttributeDefinitions": PARTS,
    "TableName": "subs",
}

HARMLESS = [
    pytest.param(
        {"T": provisioned(1, 1, GlobalSecondaryIndexes=[_index("g"), _index("h")])},
        _indexed(_index("g"), _index("h")),
        id="NHSDigital/eps-prescription-status-update-api@fe59672a63: on demand",
    ),
    pytest.param(
        _indexed(_index("g")),
        _indexed(_index("g"), _index("h")),
        id="NHSDigital/eps-prescription-status-update-api@db984a8ec0: one index added",
    ),
    pytest.param(_indexed(_index("g")), _indexed(), id="guardian/mobile-purchases@74124efe78: one index removed"),
    pytest.param(
        _staged("t", Conditions=LIVE),
        _staged("t", Conditions=LIVE) | {"Resources": {"T": _table(TableName="t", **PROTECTED)}},
        id="govuk-one-login/ipv-core-back@0e08a08b5d: protection and recovery, by a condition",
    ),
    pytest.param({"T": provisioned(5, 5)}, {"T": provisioned(1, 1)}, id="guardian/grid@6ced42a412: units lowered"),
    pytest.param(
        {"T": _table(TableName="reports")},
        {"T": _table(TableName="reports", members=RETAINED)},
        id="guardian/mobile-n10n@6f39103c39: retained",
    ),
    pytest.param(
        {"T": SIMPLE},
        {"T": _table(TimeToLiveSpecification={"AttributeName": "ttl", "Enabled": True})},
        id="aws-samples/sessions-with-aws-sam@98faab53c4: the table that SAM makes of a SimpleTable",
    ),
    pytest.param(
        scaled_table(9), {"T": _table()}, id="aws-solutions/instance-scheduler-on-aws@eecd7803f3: on demand, unscaled"
    ),
    pytest.param(
        {"T": _table()},
        {"T": provisioned(2, 2)},
        id="aws-samples/aws-serverless-workshop-innovator-island@57b048de6b: provisioned",
    ),
    pytest.param(
        {"T": _table(StreamSpecification={"StreamViewType": "NEW_IMAGE"})},
        {"T": _table(StreamSpecification={"StreamViewType": "NEW_AND_OLD_IMAGES"})},
        id="guardian/mobile-purchases@a5ac15c2cb: another view of the stream",
    ),
    pytest.param(
        {"T": _table(), "B": {"Type": "AWS::S3::Bucket"}},
        {"T": _table(SSESpecification={"SSEEnabled": True}, Tags=[{"Key": "a", "Value": "b"}])},
        id="aws-solutions/media-services-application-mapper@79637cdc84: encryption",
    ),
]
HARMFUL = [
    pytest.param(
        _renamed_target("W"),
        _renamed_target("V"),
        "✗ T: the scalable target of table writes changes its owner, from W to V: CloudFormation refuses the second "
        "owner",
        id="NHSDigital/eps-prescription-status-update-api@5162a8e3d5: a target's logical id, of an index there",
    ),
    pytest.param(
        _indexed(_index("g") | NARROW),
        _indexed(_index("g") | WIDER),
        "✗ T: g has other keys or another projection: CloudFormation refuses",
        id="NHSDigital/eps-prescription-status-update-api@981257f725: an index's projection",
    ),
    pytest.param(
        {"T": _table(), "U": _table()},
        {"U": _table()},
        "✗ T: removed: CloudFormation deletes it, with its data",
        id="NHSDigital/eps-prescription-status-update-api@d981321413: one of two tables removed",
    ),
    pytest.param(
        {"T": _table()},
        {"T": _table(TableName={"Fn::Sub": "${AWS::StackName}-sessions"})},
        "✗ T: replaced by an empty table, as its name, from one that CloudFormation generates to "
        "${AWS::StackName}-sessions",
        id="govuk-one-login/mobile-id-check-async@7ea59224dd: a name is given",
    ),
    pytest.param(
        {"T": _table(TableName={"Fn::Sub": "${AWS::AccountId}-test"})},
        {"T": _table()},
        "✗ T: replaced by an empty table, as its name, from ${AWS::AccountId}-test to one that CloudFormation "
        "generates",
        id="aws-samples/serverless-patterns@d6faacfefb: the name is taken away",
    ),
    pytest.param(
        {"T": _table()},
        {"T": _table(KeySchema=[_key("id"), _key("at", "RANGE")])},
        "✗ T: replaced by an empty table, as its key schema changes: CloudFormation deletes the old one",
        id="aws-samples/aws-serverless-ecommerce-platform@c0e1f4e469: a sort key",
    ),
    pytest.param(
        {"T": SIMPLE | {"Properties": {"PrimaryKey": {"Name": "PK", "Type": "String"}}}},
        {"T": SIMPLE | {"Properties": {"PrimaryKey": {"Name": "id", "Type": "String"}}}},
        "✗ T: replaced by an empty table, as its key schema changes: CloudFormation deletes the old one",
        id="aws-samples/serverless-patterns@327a424a55: the key of a SimpleTable",
    ),
    pytest.param(
        _indexed(_index("cri")),
        _indexed(_index("client")),
        "✗ T: client is created, cri is deleted: CloudFormation refuses more than one",
        id="govuk-one-login/ipv-core-back@5392b24f6a: one index for another",
    ),
    pytest.param(
        _indexed(_index("shoots", "shoot")),
        _indexed(_index("shoots", "title")),
        "✗ T: shoots has other keys or another projection: CloudFormation refuses",
        id="guardian/grid@35c95c8455: the key of an index",
    ),
    pytest.param(
        {"T": _table(**STRAIGHT_KEYS)},
        {"T": _table(**TURNED_KEYS)},
        "✗ T: its key schema changes, which replaces a table: CloudFormation refuses that for one with a name of its "
        "own",
        id="guardian/mobile-purchases@1a3ae4716f: partition and sort key change places",
    ),
    pytest.param(
        {"T": _table(TableName="log", AttributeDefinitions=[_attribute("id"), _attribute("at")])},
        {"T": _table(TableName="log", AttributeDefinitions=[_attribute("id"), _attribute("at", "N")])},
        "✗ T: the type of at changes, which replaces a table: CloudFormation refuses",
        id="guardian/mobile-purchases@30c25c1132: the type of a sort key",
    ),
    pytest.param(
        {"Trasnform": _table(TableName="records")},
        {"Transform": _table(TableName="records")},
        "✗ Transform: moved from Trasnform to Transform: CloudFormation creates before it deletes, and a table records",
        id="aws-samples/serverless-test-samples@11137e9c06: a misspelt logical id",
    ),
    pytest.param(
        {"Long": _table(members=RETAINED)},
        {"Short": _table(members=RETAINED)},
        "! Long: removed: by its DeletionPolicy, Retain, it stays in the account",
        id="awslabs/aws-solutions-constructs@6f340a6e6c: a construct renamed, with its table retained",
    ),
]
UNKNOWN = [
    pytest.param(
        _conditional(is_conditional=False),
        _conditional(is_conditional=True),
        "! T: whether it is removed is not known: it depends on a parameter without a value; give --parameter "
        "Stage=VALUE",
        id="guardian/mobile-purchases@1f0f9e1e25: a condition on the stage",
    ),
    pytest.param(
        _staged({"Fn::Sub": "data-${Stage}"}, default="DEV"),
        _staged({"Fn::Sub": "data-${Stage}"}, default="CODE"),
        "! T: whether its name changes is not known: the default of a parameter changes (Stage from DEV to CODE)",
        id="guardian/support-frontend@772dfb239b: another default",
    ),
    pytest.param(
        _mapped({"Fn::Sub": "codes-${Stage}"}),
        _mapped({"Fn::FindInMap": ["Names", {"Ref": "Stage"}, "Is"]}),
        "! T: whether its name changes is not known: it depends on a parameter without a value; give --parameter "
        "Stage=",
        id="guardian/support-frontend@730ad2ac4d: a mapping with the same name for one stage",
    ),
    pytest.param(
        _renamed_parameter("Identifer"),
        _renamed_parameter("Identifier"),
        "! T: whether its name changes is not known: it depends on a parameter without a value; give --parameter "
        "Identifer=VALUE --parameter Identifier=VALUE",
        id="widdix/aws-cf-templates@362a914592: a misspelt parameter",
    ),
]
OF_TERRAFORM = [
    pytest.param(
        [table()],
        [],
        [change(ORDERS, "forget")],
        f"! {ORDERS}: removed from the state: it stays in the account",
        id="NHSDigital/immunisation-fhir-api@84e10aa711: a removed block with destroy = false",
    ),
    pytest.param(
        [table()],
        [table(PURCHASES, name="purchases")],
        [change(ORDERS, "delete"), change(PURCHASES, "create")],
        f"✗ {ORDERS}: removed: Terraform deletes it, with its data",
        id="govuk-one-login/authentication-api@6a47d26b97: renamed without a moved block",
    ),
    pytest.param(
        [table(range_key="sub")],
        [table(range_key="name")],
        [change(ORDERS, "delete", "create", paths=[["range_key"]])],
        f"✗ {ORDERS}: replaced by an empty table (range_key): Terraform deletes the old one, with its data",
        id="cds-snc/forms-terraform@695c5b022a: another range key",
    ),
    pytest.param(
        [table("module.old.aws_dynamodb_table.t", deletion_protection_enabled=True)],
        [table("module.new.aws_dynamodb_table.t", name="pointers")],
        [change("module.old.aws_dynamodb_table.t", "delete"), change("module.new.aws_dynamodb_table.t", "create")],
        "✗ module.old.aws_dynamodb_table.t: removed, with deletion protection on: DynamoDB refuses to delete it",
        id="NHSDigital/NRLF@65ceb85d72: a module renamed, with protection on",
    ),
    pytest.param(
        [table(billing_mode="PROVISIONED")],
        [table(billing_mode="PAY_PER_REQUEST")],
        [change(ORDERS, "update")],
        "",
        id="trussworks/terraform-aws-bootstrap@213d0859ba: on demand",
    ),
]


def _of_templates(folder: Path, before: Document, after: Document) -> list[str]:
    files = [written(folder / f"{name}.json", each) for name, each in (("a", before), ("b", after))]
    old, new = map(load_templates, files)
    return sentences(old, new, {})


@pytest.mark.parametrize(("before", "after"), HARMLESS)
def test_no_alarm_for_a_change_that_loses_nothing(tmp_path: Path, before: Document, after: Document) -> None:
    assert _of_templates(tmp_path, before, after) == []


@pytest.mark.parametrize(("before", "after", "right"), [*HARMFUL, *UNKNOWN])
def test_change_of_a_template_has_one_line(tmp_path: Path, before: Document, after: Document, right: str) -> None:
    (line,) = _of_templates(tmp_path, before, after)
    assert line.startswith(right)


@pytest.mark.parametrize(("before", "after", "changes", "right"), OF_TERRAFORM)
def test_change_by_a_plan(
    tmp_path: Path, before: list[Document], after: list[Document], changes: list[Document], right: str
) -> None:
    file = saved(tmp_path, plan(*after, prior=tuple(before)) | {"resource_changes": changes})
    found = sentences(load_prior(file), load_templates(file), {})
    assert [line[: len(right)] for line in found] == ([right] if right else [])
