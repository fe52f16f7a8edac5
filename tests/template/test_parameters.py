"""Values of parameters from the files that AWS's tools have them in."""

from __future__ import annotations

import json
from collections import ChainMap
from pathlib import Path

import pytest

from highwater_lab.template import TemplateError, check_given, find_table, load_templates, read_app, read_parameters

SAM = """\
version = 0.1
[default.deploy.parameters]
stack_name = "shop"
parameter_overrides = "Floor=\\"11\\" Ceiling=1100 Name='the shop'"
"""
FORMS = (
    'give an object of names and values, a list of {"ParameterKey": NAME, "ParameterValue": VALUE} or "NAME=VALUE", or '
    'either of them under "Parameters"; or a samconfig.toml with parameter_overrides'
)
ASKED = """\
Parameters:
  Floor: {Type: Number}
  Ceiling: {Type: Number}
  Stage: {Type: String}
  Target: {Type: Number, Default: 70}
  Vpc: {Type: "AWS::EC2::VPC::Id"}
Conditions:
  IsProd: !Equals [!Ref Stage, prod]
Resources:
  Orders:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: !Sub "orders-${AWS::Region}"
      ProvisionedThroughput: {ReadCapacityUnits: !Ref Floor, WriteCapacityUnits: !If [IsProd, !Ref Ceiling, 3]}
  Group: {Type: "AWS::EC2::SecurityGroup", Properties: {VpcId: !Ref Vpc}}
"""


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        pytest.param(
            "p.json",
            '[{"ParameterKey": "Floor", "ParameterValue": "11"}, {"ParameterKey": "Old", "UsePreviousValue": true}]',
            {"Floor": "11"},
            id="create-stack, where what is deployed is not known",
        ),
        pytest.param("p.json", '["Floor=11", "Where=a=b"]', {"Floor": "11", "Where": "a=b"}, id="deploy"),
        pytest.param(
            "p.json",
            '{"Parameters": {"Floor": "11"}, "Tags": {"Team": "shop"}, "StackPolicy": {}}',
            {"Floor": "11"},
            id="CodePipeline",
        ),
        pytest.param(
            "p.json",
            '{"StackName": "shop", "Parameters": [{"ParameterKey": "Floor", "ParameterValue": "11"}]}',
            {"Floor": "11"},
            id="a skeleton of the AWS CLI",
        ),
        pytest.param(
            "p.yaml",
            "Floor: 11\nIsOn: true\nDay: 2026-11-02\nZones: [a, b]\n",
            {"Floor": "11", "IsOn": "true", "Day": "2026-11-02", "Zones": "a,b"},
            id="an object",
        ),
        pytest.param("samconfig.toml", SAM, {"Floor": "11", "Ceiling": "1100", "Name": "the shop"}, id="SAM"),
        pytest.param(
            "samconfig.toml",
            '[prod.global.parameters]\nparameter_overrides = ["Floor=11", "Name=the shop"]\n',
            {"Floor": "11", "Name": "the shop"},
            id="SAM, a list",
        ),
        pytest.param(
            "samconfig.yaml",
            "default: {deploy: {parameters: {parameter_overrides: 'ParameterKey=Floor,ParameterValue=11'}}}\n",
            {"Floor": "11"},
            id="SAM, in YAML and an old form",
        ),
    ],
)
def test_values_are_read(name: str, text: str, values: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert read_parameters(str(tmp_path / name)) == values


def test_environment_of_sam_is_chosen_behind_a_colon(tmp_path: Path) -> None:
    file = tmp_path / "samconfig.toml"
    file.write_text(f'{SAM}[prod.deploy.parameters]\nparameter_overrides = "Floor=12"\n')
    assert read_parameters(f"{file}:prod") == {"Floor": "12"}
    for place, message in (
        (
            str(file),
            f"{file}: has parameter_overrides of 2 environments, default, prod; give one of them behind a colon, as "
            f"{file}:default",
        ),
        (
            f"{file}:test",
            f"{file}: has no parameter_overrides of environment 'test'; it has those of default, prod",
        ),
    ):
        with pytest.raises(TemplateError) as refused:
            read_parameters(place)
        assert str(refused.value) == message


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.json", "7", "{file}: has no values of parameters; " + FORMS),
        ("p.json", '["=7"]', "{file}: '=7' is no value of a parameter; " + FORMS),
        ("p.json", '[{"Key": 7}]', "{file}: {'Key': 7} is no value of a parameter; " + FORMS),
        ("p.json", '{"Floor": {"a": 1}}', "{file}: Floor is {'a': 1}; expected a text, a number or a list of them"),
        ("p.json", '{"Floor": null}', "{file}: Floor is None; expected a text, a number or a list of them"),
        ("p.json", "{}\n{}", "{file}: has 2 JSON documents; give a file for each"),
        ("p.json", "{", "{file}, line 1: is not valid JSON: Expecting property name enclosed in double quotes"),
        ("s.toml", "a = 1", "{file}: has no parameter_overrides; " + FORMS),
        (
            "s.toml",
            '[default.deploy.parameters]\nparameter_overrides = "Name=\'a"',
            '{file}: parameter_overrides "Name=\'a" cannot be split: No closing quotation',
        ),
        ("s.toml", "a", "{file}: is not valid TOML: Expected '=' after a key in a key/value pair (at end of document)"),
    ],
)
def test_file_of_another_form_is_refused(name: str, text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(TemplateError) as refused:
        read_parameters(str(file))
    assert str(refused.value) == message.replace("{file}", str(file))


@pytest.mark.parametrize("name", ["missing.json", "missing.toml"])
def test_missing_file_is_said(name: str, tmp_path: Path) -> None:
    with pytest.raises(TemplateError) as refused:
        read_parameters(str(tmp_path / name))
    assert str(refused.value) == f"{tmp_path / name}: cannot be read: No such file or directory"


def test_all_parameters_that_tables_need_are_named_at_once(tmp_path: Path) -> None:
    """Not Vpc, which no table refers to, and not Target, which has a default."""
    file = tmp_path / "t.yaml"
    file.write_text(ASKED)
    asks = (
        "a parameter whose value is known only at deployment; give all that the tables refer to with --parameter "
        "NAME=VALUE, or in a file with --parameters: "
    )
    (listed,) = read_app(load_templates(file)).tables
    assert listed.problem == f"{file}: a condition compares '${{Stage}}', {asks}Ceiling, Floor, Stage"
    (listed,) = read_app(load_templates(file), {"Stage": "prod"}).tables
    assert listed.problem == f"{file}: Orders ReadCapacityUnits is '${{Floor}}', {asks}Ceiling, Floor"
    given = {"Floor": "11", "Stage": "prod"}
    with pytest.raises(TemplateError) as refused:
        find_table(load_templates(file), parameters=given)
    assert str(refused.value) == (
        f"{file}: Orders WriteCapacityUnits is '${{Ceiling}}', a parameter whose value is known only at deployment; "
        "give it with --parameter Ceiling=VALUE"
    )
    assert find_table(load_templates(file), parameters={**given, "Ceiling": "1100"}).resources[0].write.units == 1100


MAPPED = """\
Parameters: {Stage: {Type: String}, Zones: {Type: CommaDelimitedList}}
Mappings: {By: {PROD: {Units: 400, Mode: PROVISIONED, Zone: UTC}}}
Conditions: {IsProd: !Equals [!FindInMap [By, !Ref Stage, Mode], PROVISIONED]}
Resources:
  Orders:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PROVISIONED
      ProvisionedThroughput: {ReadCapacityUnits: 7, WriteCapacityUnits: 9}
  Writes:
    Type: AWS::ApplicationAutoScaling::ScalableTarget
    Properties:
      ResourceId: !Sub table/${Orders}
      ScalableDimension: dynamodb:table:WriteCapacityUnits
      MinCapacity: 11
      MaxCapacity: 700
      ScheduledActions:
        - ScheduledActionName: load
          Schedule: "cron(0 5 * * ? *)"
          Timezone: UTC
          ScalableTargetAction: {MinCapacity: 40}
"""


@pytest.mark.parametrize(
    ("was", "now", "names"),
    [
        ("MinCapacity: 11", "MinCapacity: !FindInMap [By, !Ref Stage, Units]", "Stage"),
        ("MinCapacity: 11", 'MinCapacity: !FindInMap [By, !Sub "${Stage}-1", Units]', "Stage"),
        ("MinCapacity: 11", 'MinCapacity: !FindInMap [By, !Join ["", [!Ref Stage, "1"]], Units]', "Stage"),
        ("MinCapacity: 11", "MinCapacity: !If [IsProd, 11, 12]", "Stage"),
        ("MinCapacity: 11", "MinCapacity: !Select [0, !Ref Zones]", "Zones"),
        ("MinCapacity: 11", 'MinCapacity: !Select [1, !Split ["-", !Ref Stage]]', "Stage"),
        ("MinCapacity: 11", "MinCapacity: !FindInMap [By, !Ref 'AWS::Region', Units]", "AWS::Region"),
        ("BillingMode: PROVISIONED", "BillingMode: !FindInMap [By, !Ref Stage, Mode]", "Stage"),
        ("BillingMode: PROVISIONED", "TableClass: !Ref Stage", "Stage"),
        ("Throughput: {", "Throughput: !FindInMap [By, !Ref Stage, Units] #", "Stage"),
        ("Timezone: UTC", "Timezone: !FindInMap [By, !Ref Stage, Zone]", "Stage"),
        ('Schedule: "cron(0 5 * * ? *)"', "Schedule: !Ref Stage", "Stage"),
        ("ResourceId: !Sub table/${Orders}", "ResourceId: !Sub table/${Stage}", "Stage"),
    ],
)
def test_parameter_without_a_value_is_named_below_every_function(
    was: str, now: str, names: str, tmp_path: Path
) -> None:
    file = tmp_path / "t.yaml"
    assert MAPPED.count(was) == 1
    file.write_text(MAPPED.replace(was, now))
    (listed,) = [each for each in read_app(load_templates(file)).tables if each.logical_id == "Orders"]
    assert f"; give it with --parameter {names}=VALUE" in listed.problem
    assert "write the number itself" not in listed.problem


def test_value_behind_a_map_is_shown_with_its_parameter_and_read_with_it(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(MAPPED.replace("MinCapacity: 11", "MinCapacity: !FindInMap [By, !Ref Stage, Units]"))
    (listed,) = read_app(load_templates(file)).tables
    assert listed.problem == (
        f"{file}: Writes (ScalableTarget) MinCapacity is \"${{Fn::FindInMap ['By', '<Stage>', 'Units']}}\", which "
        "depends on a parameter whose value is known only at deployment; give it with --parameter Stage=VALUE"
    )
    setup = find_table(load_templates(file), parameters={"Stage": "PROD"})
    assert setup.resources[0].write.min == 400


def test_parameter_of_the_stack_around_a_nested_one_is_named(tmp_path: Path) -> None:
    inner = MAPPED.replace("Stage: {Type: String}", "Mode: {Type: String}").replace("Ref Stage", "Ref Mode")
    (tmp_path / "inner.yaml").write_text(
        inner.replace("MinCapacity: 11", "MinCapacity: !FindInMap [By, !Ref Mode, Units]")
    )
    outer = {
        "Parameters": {"Stage": {"Type": "String"}},
        "Resources": {
            "Inner": {
                "Type": "AWS::CloudFormation::Stack",
                "Metadata": {"aws:asset:path": "inner.yaml"},
                "Properties": {"TemplateURL": "inner", "Parameters": {"Mode": {"Ref": "Stage"}}},
            }
        },
    }
    stack = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "outer.json"}}
    (tmp_path / "outer.json").write_text(json.dumps(outer))
    (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": {"Shop": stack}}))
    (listed,) = read_app(load_templates(tmp_path)).tables
    assert listed.problem.endswith("; give it with --parameter Stage=VALUE")
    (listed,) = read_app(load_templates(tmp_path), {"Stage": "PROD"}).tables
    assert listed.problem == ""


def test_parameter_that_no_template_has_is_an_error_and_one_in_a_file_is_not(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(MAPPED)
    templates = load_templates(file)
    check_given(templates, {"Stage": "PROD", "AWS::Region": "eu-west-1"}, ())
    check_given(templates, ChainMap({"Stage": "PROD"}, {"Vpc": "vpc-1"}), ())
    with pytest.raises(TemplateError) as refused:
        check_given(templates, ChainMap({"Stge": "PROD"}, {}), ())
    assert str(refused.value) == "--parameter Stge: the templates have no such parameter; they have Stage, Zones"
    with pytest.raises(TemplateError, match="--parameter AWS::Regin: the templates have no such parameter"):
        check_given(templates, {"AWS::Regin": "eu-west-1"}, ())
