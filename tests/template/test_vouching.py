"""Resources that are not read and scale nothing, as a person says, or because their tables are on demand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.template import Remark, TemplateError, check_given, find_table, load_templates, read_app
from tests.template.plans import plan, saved, table

TABLE = {
    "Type": "AWS::DynamoDB::Table",
    "Properties": {"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}},
}
ON_DEMAND = {"Type": "AWS::DynamoDB::Table", "Properties": {"BillingMode": "PAY_PER_REQUEST"}}


def _made(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


def _remarks(folder: Path, resources: dict[str, Any], given: tuple[str, ...] = ()) -> tuple[Remark, ...]:
    """The remarks on a template of the tables `Orders` and `Carts` with these resources."""
    file = folder / "t.json"
    file.write_text(json.dumps({"Resources": {"Orders": TABLE, "Carts": TABLE, **resources}}))
    return read_app(load_templates(file), {}, given).remarks


@pytest.mark.parametrize(
    ("given", "metadata", "kind", "what"),
    [
        ((), None, "not read", "is not read, and may scale Orders"),
        ((), {"highwater:scales": True}, "not read", "is not read, and may scale Orders"),
        (
            (),
            {"highwater:scales": False},
            "vouched",
            "is not read, and names Orders; its metadata highwater:scales says that it does not scale",
        ),
        (
            ("Odd",),
            None,
            "vouched",
            "is not read, and names Orders; --no-scaling Odd says that it does not scale",
        ),
    ],
)
@pytest.mark.parametrize(
    "made",
    [
        _made("Custom::DynamoDBAlarms", TableName={"Ref": "Orders"}),
        _made("AWS::CloudFormation::CustomResource", Of={"Fn::GetAtt": ["Orders", "Arn"]}),
    ],
    ids=["Custom", "CustomResource"],
)
def test_custom_resource_is_vouched_for_by_its_metadata_or_by_the_option(
    tmp_path: Path, made: dict[str, Any], given: tuple[str, ...], metadata: Any, kind: str, what: str
) -> None:
    odd = {**made, "Metadata": metadata} if metadata else made
    (remark,) = _remarks(tmp_path, {"Odd": odd}, given)
    assert (str(remark.kind), remark.text, remark.tables) == (kind, f"Odd ({made['Type']}) {what}", ("Orders",))
    setup = find_table(load_templates(tmp_path / "t.json"), name="Orders", no_scaling=given)
    assert setup.notes == (remark.text,), "of one table, too"


def test_vouching_is_for_what_may_scale_alone(tmp_path: Path) -> None:
    calling = _made("Custom::AWS", Create={"service": "DynamoDB", "action": "updateTable", "table": {"Ref": "Orders"}})
    stack = _made("AWS::CloudFormation::Stack", TemplateURL="u") | {"Metadata": {"highwater:scales": False}}
    remarks = _remarks(tmp_path, {"More": stack, "Odd": calling}, ("Odd",))
    assert [str(each.kind) for each in remarks] == ["not read", "vouched"]
    templates = load_templates(tmp_path / "t.json")
    with pytest.raises(TemplateError) as refused:
        check_given(templates, {}, ("Odd", "More"))
    assert str(refused.value) == (
        "--no-scaling More: the templates have no such resource that may scale a table; they have Odd"
    )
    file = saved(tmp_path, plan(table()))
    with pytest.raises(
        TemplateError, match=r"--no-scaling aws_lambda\.x: the templates have no such .*; they have none"
    ):
        find_table(load_templates(file), no_scaling=("aws_lambda.x",))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (_made("Custom::Alarms", Tables=[{"Ref": "Visits"}, {"Ref": "Sessions"}]), []),
        (_made("Custom::Alarms", Tables=[{"Ref": "Visits"}, {"Ref": "Carts"}]), ["Carts"]),
        # such a call may make it provisioned
        (
            _made("Custom::AWS", Create={"service": "DynamoDB", "action": "updateTable", "table": {"Ref": "Visits"}}),
            ["Visits"],
        ),
    ],
    ids=["on demand alone", "beside a provisioned one", "a call of UpdateTable"],
)
def test_custom_resource_beside_tables_on_demand_does_not_count(
    tmp_path: Path, made: dict[str, Any], said: list[str]
) -> None:
    simple = _made("AWS::Serverless::SimpleTable")
    remarks = _remarks(tmp_path, {"Visits": ON_DEMAND, "Sessions": simple, "Odd": made})
    assert [name for each in remarks for name in each.tables] == said
