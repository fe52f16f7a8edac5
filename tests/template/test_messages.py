"""Messages for templates that cannot be rehearsed: one line that names the place and the fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.template import TemplateError, find_table, load_templates

TABLE: dict[str, Any] = {
    "Type": "AWS::DynamoDB::Table",
    "Properties": {"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}},
}


NEITHER = (
    "{file}: is neither a CloudFormation template, as it has no Resources section, nor a Terraform plan or state as "
    "JSON; give a template, or what terraform show -json prints"
)


def _target(**properties: Any) -> dict[str, Any]:
    return {
        "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
        "Properties": {
            "ResourceId": {"Fn::Join": ["/", ["table", {"Ref": "Orders"}]]},
            "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
            "MinCapacity": 7,
            "MaxCapacity": 70,
        }
        | properties,
    }


def _policy(**configuration: Any) -> dict[str, Any]:
    return {
        "Type": "AWS::ApplicationAutoScaling::ScalingPolicy",
        "Properties": {
            "ScalingTargetId": {"Ref": "Target"},
            "TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70} | configuration,
        },
    }


def _action(**members: Any) -> dict[str, Any]:
    return {
        "ScheduledActionName": "load",
        "Schedule": "cron(0 5 * * ? *)",
        "ScalableTargetAction": {"MinCapacity": 9},
    } | members


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        pytest.param(
            {"Bucket": {"Type": "AWS::S3::Bucket"}},
            "{file}: no DynamoDB table and no scalable target for one",
            id="no table",
        ),
        pytest.param(
            {"Orders": {"Type": "AWS::DynamoDB::Table", "Properties": {}}},
            "{file}: Orders: has provisioned billing but no ReadCapacityUnits; set it, or set BillingMode to "
            "PAY_PER_REQUEST",
            id="no throughput",
        ),
        pytest.param(
            {"Orders": TABLE, "Target": _target(MinCapacity={"Fn::GetAtt": ["Custom", "Floor"]})},
            "{file}: Target (ScalableTarget) MinCapacity is '${{Custom.Floor}}', whose value is known only at "
            "deployment; write the number itself, or use a parameter with a default",
            id="unresolvable",
        ),
        pytest.param(
            {"Orders": TABLE, "Target": _target(MaxCapacity="many")},
            "{file}: Target (ScalableTarget) MaxCapacity is 'many'; expected a number",
            id="no number",
        ),
        pytest.param(
            {"Orders": TABLE, "Target": _target(MaxCapacity=None)},
            "{file}: Target (ScalableTarget) needs both MinCapacity and MaxCapacity",
            id="one bound",
        ),
        pytest.param(
            {"Orders": TABLE, "Target": _target(), "Policy": _policy(TargetValue=95)},
            "{file}: Policy (ScalingPolicy): TargetValue is 95, allowed: 20 to 90 percent",
            id="target out of range",
        ),
        pytest.param(
            {"Orders": TABLE, "Target": _target(ScheduledActions=[_action(Schedule="daily at five")])},
            "{file}: Target (ScalableTarget) scheduled action 'load' has Schedule 'daily at five'; expected at(...), "
            "rate(...) or cron(...)",
            id="no schedule",
        ),
        pytest.param(
            {"Orders": TABLE, "Target": _target(ScheduledActions=[_action(Timezone="Europe/Belrin")])},
            "{file}: Target (ScalableTarget) scheduled action 'load' has unknown Timezone 'Europe/Belrin'; use an IANA "
            "name such as Europe/Berlin",
            id="unknown zone",
        ),
        pytest.param(
            {"Orders": TABLE, "Target": _target(ScheduledActions=[_action(StartTime="soon")])},
            "{file}: Target (ScalableTarget) scheduled action 'load' has StartTime 'soon'; write it as "
            "2026-11-02T05:00:00Z",
            id="no start",
        ),
        pytest.param(
            {"Orders": {"Type": "AWS::DynamoDB::GlobalTable", "Properties": {"Replicas": [{"Region": "eu-west-1"}]}}},
            "{file}: Orders: has provisioned billing but no ReadCapacity settings; add them, or set BillingMode to "
            "PAY_PER_REQUEST",
            id="global table without settings",
        ),
    ],
)
def test_template_that_cannot_be_rehearsed(resources: dict[str, Any], message: str, tmp_path: Path) -> None:
    file = tmp_path / "template.json"
    file.write_text(json.dumps({"Resources": resources}))
    with pytest.raises(TemplateError) as refused:
        find_table(load_templates(file))
    assert str(refused.value) == message.format(file=file)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.json", "{", "{file}, line 1: is not valid JSON: Expecting property name enclosed in double quotes"),
        ("t.json", "7", NEITHER),
        (
            "t.yaml",
            "Resources:\n\tOrders: 1\n",
            "{file}, line 2: is not valid YAML: found character '\\t' that cannot start any token",
        ),
        ("t.yaml", "", NEITHER),
    ],
)
def test_file_that_is_no_template(name: str, text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(TemplateError) as refused:
        load_templates(file)
    assert str(refused.value) == message.replace("{file}", str(file))


def test_places_without_a_template(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path, f"{tmp_path}: contains no template and no plan; run cdk synth first, or give a template file"),
        (
            tmp_path / "cdk.out",
            f"{tmp_path / 'cdk.out'}: does not exist; give a cdk.out folder (made by cdk synth) or a template file",
        ),
    ):
        with pytest.raises(TemplateError) as refused:
            load_templates(path)
        assert str(refused.value) == message


def test_references_in_a_circle(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    orders = TABLE | {"Properties": TABLE["Properties"] | {"TableName": {"Ref": "Orders"}}}
    file.write_text(json.dumps({"Resources": {"Orders": orders}}))
    with pytest.raises(TemplateError) as refused:
        find_table(load_templates(file))
    assert str(refused.value) == f"{file}: references form a circle, or are nested too deeply"


def test_vector_indexes_are_for_on_demand_tables(tmp_path: Path) -> None:
    """17: CloudFormation refuses the template."""
    properties = TABLE["Properties"] | {"VectorIndexes": [{"IndexName": "by-meaning"}]}
    path = tmp_path / "t.template.json"
    path.write_text(json.dumps({"Resources": {"Orders": TABLE | {"Properties": properties}}}))
    with pytest.raises(TemplateError) as refused:
        find_table(load_templates(path))
    assert str(refused.value).endswith(
        "Orders has vector indexes, which DynamoDB allows on on-demand tables only; set its BillingMode to "
        "PAY_PER_REQUEST"
    )
    on_demand = {"BillingMode": "PAY_PER_REQUEST", "VectorIndexes": [{"IndexName": "by-meaning"}]}
    path.write_text(json.dumps({"Resources": {"Orders": TABLE | {"Properties": on_demand}}}))
    assert find_table(load_templates(path)).notes == (
        "vector indexes are allowed on on-demand tables only; their own requests are not simulated",
    )
