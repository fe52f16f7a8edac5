"""Templates of odd shapes are read correctly or refused with one line that names the place, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from highwater.core import Dimension
from highwater_lab.simulation import TableSetup
from highwater_lab.template import TemplateError, find_table, load_templates

SIMPLE = "Resources:\n  Orders:\n    Type: AWS::DynamoDB::Table\n    Properties:\n"
UNITS = "      ProvisionedThroughput: {ReadCapacityUnits: 5, WriteCapacityUnits: 6}\n"
TARGET = """\
  Target:
    Type: AWS::ApplicationAutoScaling::ScalableTarget
    Properties:
      ResourceId: !Sub table/${Orders}
      ScalableDimension: dynamodb:table:WriteCapacityUnits
      MinCapacity: 7
      MaxCapacity: 70
"""
POLICY = """\
  Policy:
    Type: AWS::ApplicationAutoScaling::ScalingPolicy
    Properties:
      ScalingTargetId: !Ref Target
      TargetTrackingScalingPolicyConfiguration: """


def _read(tmp_path: Path, text: str, name: str = "t.yaml", **options: Any) -> TableSetup:
    file = tmp_path / name
    file.write_text(text)
    return find_table(load_templates(file), **options)


def _refused(tmp_path: Path, text: str, name: str = "t.yaml", **options: Any) -> str:
    with pytest.raises(TemplateError) as refused:
        _read(tmp_path, text, name, **options)
    return str(refused.value).removeprefix(f"{tmp_path / name}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{SIMPLE}      ProvisionedThroughput: 5\n", ": Orders ProvisionedThroughput is 5; expected an object"),
        (f"{SIMPLE}{UNITS}      GlobalSecondaryIndexes: abc\n", ": Orders indexes is 'abc'; expected a list"),
        (f"{SIMPLE}{UNITS}      GlobalSecondaryIndexes: [5]\n", ": Orders indexes[0] is 5; expected an object"),
        (
            f"{SIMPLE}{UNITS}      GlobalSecondaryIndexes: [{{IndexName: [a]}}]\n",
            ": Orders index 0 IndexName is ['a']; expected a name",
        ),
        (
            f"{SIMPLE}{UNITS}      GlobalSecondaryIndexes:\n"
            + 2 * "      - {IndexName: by_day, ProvisionedThroughput: {ReadCapacityUnits: 1, WriteCapacityUnits: 1}}\n",
            ": Orders has two indexes named by_day; rename or remove one",
        ),
        (f"{SIMPLE}{UNITS}      WarmThroughput: abc\n", ": Orders WarmThroughput is 'abc'; expected an object"),
        (f"{SIMPLE}{UNITS}      OnDemandThroughput: [1]\n", ": Orders OnDemandThroughput is [1]; expected an object"),
        (
            f"{SIMPLE}{UNITS}      BillingMode: NONSENSE\n",
            ": Orders has BillingMode 'NONSENSE'; expected PROVISIONED or PAY_PER_REQUEST",
        ),
        (
            f"{SIMPLE}      ProvisionedThroughput: {{ReadCapacityUnits: 5, WriteCapacityUnits: 1e300}}\n",
            ": Orders WriteCapacityUnits is '1e300'; expected a whole number from 0 to 10,000,000",
        ),
        (
            f"{SIMPLE}{UNITS}{UNITS}",
            ", line 6: is not valid YAML: the key 'ProvisionedThroughput' occurs twice in one mapping",
        ),
        (
            f"{SIMPLE}{UNITS}{TARGET}".replace("MinCapacity: 7", "MinCapacity: 500"),
            ": Target (ScalableTarget) has MinCapacity 500 above MaxCapacity 70; lower the one or raise the other",
        ),
        (
            f"{SIMPLE}{UNITS}{TARGET}      ScheduledActions: 5\n",
            ": Target (ScalableTarget) ScheduledActions is 5; expected a list",
        ),
        (
            f"{SIMPLE}{UNITS}{TARGET}      ScheduledActions: "
            "[{ScheduledActionName: a, Schedule: 'cron(0 5 * * ? *)', ScalableTargetAction: [1]}]\n",
            ": Target (ScalableTarget) scheduled action 'a' ScalableTargetAction is [1]; expected an object",
        ),
        (
            f"{SIMPLE}{UNITS}".replace("6}", "!If [IsPord, 600, 6]}"),
            ": condition 'IsPord' is not defined; the template's conditions: none",
        ),
        (
            "Conditions: {Big: !Equals [!Ref Stage, prod]}\nParameters: {Stage: {Type: String}}\n"
            + f"{SIMPLE}{UNITS}".replace("6}", "!If [Big, 600, 6]}"),
            ": a condition compares '${Stage}', a parameter whose value is known only at deployment; give it with "
            "--parameter Stage=VALUE",
        ),
        (
            f"{SIMPLE}{UNITS}".replace("6}", "!Select [-1, [1, 7]]}"),
            ": Fn::Select cannot be evaluated with [-1, [1, 7]]",
        ),
        (f"{SIMPLE}{UNITS}".replace("6}", "!Join 5}"), ": Fn::Join cannot be evaluated with '5'"),
        (
            "x: &a [1,1,1,1,1,1,1,1,1]\n"
            + "".join(f"x{n}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9))
            + f"{SIMPLE}{UNITS}      GlobalSecondaryIndexes: *j\n",
            ": is too large once its YAML aliases are expanded",
        ),
    ],
)
def test_odd_shape_is_reported_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    assert _refused(tmp_path, text) == message


@pytest.mark.parametrize("value", ["!!float abc", '!!int "0x"', "!!bool abc", f"1{'0' * 5_000}"])
def test_odd_scalars_are_reported_in_one_line(value: str, tmp_path: Path) -> None:
    message = _refused(tmp_path, f"{SIMPLE}{UNITS}      Odd: {value}\n")
    assert message.startswith((": contains a value that cannot be read: ", ", line 6: is not valid YAML: "))
    assert "\n" not in message


def test_invalid_marks_are_reported(tmp_path: Path) -> None:
    marks = "  Marks:\n    Type: Custom::HighwaterMarks\n    Properties: {TableName: !Ref Orders, Marks: '[5]'}\n"
    assert _refused(tmp_path, f"{SIMPLE}{UNITS}{marks}") == ": Marks Marks[0] is 5; expected an object"


def test_lists_and_objects_may_be_chosen_by_conditions(tmp_path: Path) -> None:
    conditions = "Conditions: {Big: !Equals [a, a]}\n"
    actions = (
        "      ScheduledActions: !If [Big, [{ScheduledActionName: a, Schedule: 'cron(0 5 * * ? *)', "
        "ScalableTargetAction: {MinCapacity: 9}}], !Ref 'AWS::NoValue']\n"
    )
    policy = f"{POLICY}!If [Big, {{TargetValue: 55}}, {{TargetValue: 30}}]\n"
    write = (
        _read(tmp_path, f"{conditions}{SIMPLE}{UNITS}{TARGET}{actions}{policy}").resources[0].target(Dimension.WRITE)
    )
    assert [action.min for action in write.actions] == [9]
    assert write.tracking is not None
    assert write.tracking.target_percent == 55


def test_condition_on_a_value_known_only_at_deployment_is_noted(tmp_path: Path) -> None:
    conditions = "Conditions: {Here: !Equals [!Ref 'AWS::Region', eu-west-1]}\n"
    setup = _read(tmp_path, conditions + f"{SIMPLE}{UNITS}".replace("6}", "!If [Here, 600, 6]}"))
    assert setup.resources[0].write.units == 6
    assert setup.notes == (
        "a condition compares '${AWS::Region}', whose value is known only at deployment; the rehearsal assumes that "
        "the two values differ; give it with --parameter AWS::Region=VALUE",
    )


def test_tables_imported_under_two_names_are_two(tmp_path: Path) -> None:
    second = TARGET.replace("  Target:", "  Other:")
    text = "Resources:\n" + TARGET.replace("!Sub table/${Orders}", "!Join [/, [table, !ImportValue X1]]")
    text += second.replace("!Sub table/${Orders}", "!Join [/, [table, !ImportValue X2]]")
    message = _refused(tmp_path, text)
    assert message == "2 tables match: ${Fn::ImportValue X1}, ${Fn::ImportValue X2}; choose one with --table"


def test_tables_of_one_name_are_distinguished_by_their_files(tmp_path: Path) -> None:
    for number, stack in enumerate(("A", "B"), 5):
        table = {"ReadCapacityUnits": number, "WriteCapacityUnits": number}
        resources = {"Orders": {"Type": "AWS::DynamoDB::Table", "Properties": {"ProvisionedThroughput": table}}}
        (tmp_path / f"{stack}.template.json").write_text(json.dumps({"Resources": resources}))
    first, second = (f"{stack}.template.json/Orders" for stack in ("A", "B"))
    templates = load_templates(tmp_path)
    with pytest.raises(TemplateError) as refused:
        find_table(templates, name="Orders")
    assert str(refused.value) == f"2 tables match: {first}, {second}; choose one with --table"
    assert find_table(templates, name=second).resources[0].read.units == 6


def test_pipe_is_no_template(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(TemplateError) as refused:
        load_templates(tmp_path / "pipe.yaml")
    assert str(refused.value) == f"{tmp_path / 'pipe.yaml'}: cannot be read: it is not a regular file"
