"""Templates that would become very large: refused in a line, before they are, or read in a second."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.template import TemplateError, find_table, load_templates, read_app

TABLE: dict[str, Any] = {
    "Type": "AWS::DynamoDB::Table",
    "Properties": {
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6},
    },
}
RESOURCE = """Resources:
  Orders:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: *last
      ProvisionedThroughput: {ReadCapacityUnits: 5, WriteCapacityUnits: 6}
"""
MOST_MEMORY = 150 * 2**20
LONG = "x" * 4_096


def _named(name: Any) -> str:
    orders = {**TABLE, "Properties": {**TABLE["Properties"], "TableName": name}}
    parameters = {"P": {"Type": "String", "Default": LONG}}
    return json.dumps({"Parameters": parameters, "Resources": {"Orders": orders}})


def _join(parts: list[Any]) -> dict[str, Any]:
    return {"Fn::Join": ["", parts]}


def _grown(levels: int, of: str) -> str:
    """Anchors that each name the one before nine times."""
    head = f"A0: &a0 {of}\n"
    body = "".join(
        f"A{level}: &{'last' if level == levels else f'a{level}'} [{', '.join([f'*a{level - 1}'] * 9)}]\n"
        for level in range(1, levels + 1)
    )
    return head + body + RESOURCE


MERGED = "A: &b0 {x: 1}\n" + "".join(
    f"B{level}: &{'last' if level == 12 else f'b{level}'} {{<<: [{', '.join([f'*b{level - 1}'] * 30)}]}}\n"
    for level in range(1, 13)
)
QUOTED: Any = "\\"
for _ in range(50):
    QUOTED = {"Fn::ToJsonString": QUOTED}
CASES = {
    "aliases": ("yaml", _grown(11, "[x, x, x]"), "is too large once its YAML aliases are expanded"),
    "long texts": ("yaml", _grown(4, LONG * 4), "is too large once its YAML aliases are expanded"),
    "merges": ("yaml", MERGED + RESOURCE, "is too large once its YAML aliases are expanded"),
    "circle": (
        "yaml",
        RESOURCE.replace("*last", "&p [*p]"),
        "an alias of its YAML leads to a part that it is in itself",
    ),
    "YAML": (
        "yaml",
        f"{RESOURCE.replace('*last', 'x')}#{'x' * 2**21}",
        "has more than 2,097,152 characters of YAML, which no template may have",
    ),
    "JSON": ("json", _named([{}] * 1_000_001), "has more than 1,000,000 values, which no template may have"),
    "join": (
        "json",
        _named(_join([_join([{"Ref": "P"}] * 200)] * 200)),
        "Fn::Join makes a text of more than 1,048,576 characters, or too many long ones",
    ),
    "many joins": (
        "json",
        _named({"Fn::Select": [0, [_join([{"Ref": "P"}] * 200) for _ in range(100)]]}),
        "Fn::Join makes a text of more than 1,048,576 characters, or too many long ones",
    ),
    "sub": (
        "json",
        _named({"Fn::Sub": ["${X}" * 1_000, {"X": LONG}]}),
        "Fn::Sub makes a text of more than 1,048,576 characters, or too many long ones",
    ),
    "quotes in quotes": (
        "json",
        _named(QUOTED),
        "Fn::ToJsonString makes a text of more than 1,048,576 characters, or too many long ones",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_template_that_would_become_very_large_is_refused_before_it_does(case: str, tmp_path: Path) -> None:
    kind, text, why = CASES[case]
    file = tmp_path / f"t.{kind}"
    file.write_text(text)
    tracemalloc.start()
    with pytest.raises(TemplateError) as refused:
        find_table(load_templates(file))
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(refused.value) == f"{file}: {why}"
    assert memory < MOST_MEMORY


@pytest.mark.parametrize(
    "name", ["${" * 100_000, "{{resolve:" * 100_000, {"Fn::Sub": "${!" * 100_000}], ids=["$", "{", "!"]
)
def test_text_that_begins_many_references_is_read_once(name: Any, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(_named(name))
    assert find_table(load_templates(file)).name


def test_stacks_that_each_nest_the_next_twice_are_refused(tmp_path: Path) -> None:
    for level in range(30):
        nested = {
            "Type": "AWS::CloudFormation::Stack",
            "Metadata": {"aws:asset:path": f"L{level + 1}.template.json"},
            "Properties": {"TemplateURL": "x"},
        }
        resources = {"A": nested, "B": nested} if level < 29 else {"Orders": TABLE}
        (tmp_path / f"L{level}.template.json").write_text(json.dumps({"Resources": resources}))
    top = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "L0.template.json"}}
    (tmp_path / "manifest.json").write_text(json.dumps({"version": "40.0.0", "artifacts": {"Top": top}}))
    with pytest.raises(TemplateError) as refused:
        load_templates(tmp_path)
    assert str(refused.value) == f"{tmp_path / 'L0.template.json'}: nests more than 1,000 stacks"


@pytest.mark.parametrize("name", [".", "inner/.."])
def test_stage_that_is_its_own_folder_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    stage = {"type": "cdk:cloud-assembly", "properties": {"directoryName": name}}
    (tmp_path / "manifest.json").write_text(json.dumps({"version": "40.0.0", "artifacts": {"S": stage}}))
    with pytest.raises(TemplateError) as refused:
        load_templates(tmp_path)
    assert str(refused.value) == f"{tmp_path / name}: is within itself, or in too many folders"


class Walked(dict[str, Any]):
    """A section of a template that counts how often it is gone through."""

    walks = 0

    def items(self) -> Any:
        """The items."""
        self.walks += 1
        return super().items()


def test_template_of_many_tables_is_gone_through_as_often_as_one_of_few(tmp_path: Path) -> None:
    walks = []
    for tables in (3, 60):
        file = tmp_path / f"{tables}.template.json"
        file.write_text(json.dumps({"Resources": {f"T{number}": TABLE for number in range(tables)}}))
        (template,) = load_templates(file)
        template.body["Resources"] = section = Walked(template.body["Resources"])
        assert len(read_app([template]).tables) == tables
        walks.append(section.walks)
    assert walks[0] == walks[1] > 0
