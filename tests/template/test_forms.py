"""Files as tools write them: each is read, or refused in one line that names the tool and the fix."""

from __future__ import annotations

import codecs
import json
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.template import TemplateError, find_table, is_plan, load_prior, load_templates, read_app
from tests.template.plans import UNKNOWN, plan, saved, table, target

TEMPLATE = """\
Resources:
  Orders:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: !Sub shop-orders
      ProvisionedThroughput: {ReadCapacityUnits: 7, WriteCapacityUnits: 8}
"""
AS_OBJECT = {
    "Resources": {
        "Orders": {
            "Type": "AWS::DynamoDB::Table",
            "Properties": {"ProvisionedThroughput": {"ReadCapacityUnits": 7, "WriteCapacityUnits": 8}},
        }
    }
}


def _refused(path: Path) -> str:
    with pytest.raises(TemplateError) as refused:
        load_templates(path)
    return str(refused.value)


def _units(path: Path, name: str | None = None) -> tuple[int, int]:
    resource = find_table(load_templates(path), name=name).resources[0]
    return resource.read.units, resource.write.units


def _in_folder(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_LE, b""])
def test_plan_that_powershell_wrote_in_utf_16_is_read(mark: bytes, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(mark + f"{json.dumps(plan(table()))}\r\n".encode("utf-16-le"))
    assert _units(file) == (5, 6)


def test_template_in_utf_16_is_read_and_other_bytes_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_bytes(TEMPLATE.encode("utf-16"))
    assert _units(file) == (7, 8)
    file.write_bytes(b"\xff\x00\xd8")
    assert _refused(file) == f"{file}: cannot be read: it is neither UTF-8 nor UTF-16 text"


def test_lines_of_the_wrapper_of_setup_terraform_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    printed = json.dumps(plan(table()), indent=1)
    file.write_text(f"[command]/opt/terraform-bin show -json plan.bin\n{printed}\n\n::debug::exited with code 0\n")
    assert _units(file) == (5, 6)
    file.write_text("[command]/opt/terraform-bin show -json plan.bin\n{\n 7}\n")
    assert _refused(file) == f"{file}, line 3: is not valid JSON: Expecting property name enclosed in double quotes"


WITHOUT = "write standard output alone to the file, without 2>&1"
WRAPPER = "the wrapper of setup-terraform wrote it: set terraform_wrapper: false there"


@pytest.mark.parametrize("name", ["plan.json", "plan.txt"])
@pytest.mark.parametrize(
    ("before", "behind", "said"),
    [
        ("Warning: Argument is deprecated\n", "", f"before its JSON, 'Warning: Argument is deprecated'; {WITHOUT}"),
        ("\n\u2577\n\u2502 Warning: 1\n", "", f"before its JSON, '\u2577'; {WITHOUT}"),
        ("[INFO] show\n", "", f"before its JSON, '[INFO] show'; {WITHOUT}"),
        ("::debug::show\n", "", f"before its JSON, '::debug::show'; {WRAPPER}"),
        ("show\n[command]/opt/terraform-bin show\n", "", f"before its JSON, 'show'; {WRAPPER}"),
        ("", "Error: no lock\n", f"behind its JSON, 'Error: no lock'; {WITHOUT}"),
        (f"{'x' * 70}\n", "", f"before its JSON, '{'x' * 60}...'; {WITHOUT}"),
    ],
)
def test_text_around_a_plan_is_shown_with_its_cause(
    tmp_path: Path, name: str, before: str, behind: str, said: str
) -> None:
    file = tmp_path / name
    file.write_text(f"{before}{json.dumps(plan(table()))}\n{behind}")
    assert _refused(file) == f"{file}: has text {said}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[1,\n{"a": 1}\n', ", line 3: is not valid JSON: Expecting ',' delimiter"),
        ('{"a": 1}\n{"b":\n', ", line 3: is not valid JSON: Expecting value"),
        ('{"a": {"b": 1}\n', ", line 2: is not valid JSON: Expecting ',' delimiter"),
    ],
)
def test_json_that_is_broken_is_no_text_around_it(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.json").write_text(text)
    assert _refused(tmp_path / "t.json") == f"{tmp_path}/t.json{message}"


def test_plans_one_after_another_are_read_as_stacks_of_one_app(tmp_path: Path) -> None:
    file = tmp_path / "plans.json"
    plans = [plan(table(), target(), region="eu-west-1"), plan(table(name="carts", write_capacity=66))]
    file.write_text("".join(f"{json.dumps(each)}\n" for each in plans))
    listed = read_app(load_templates(file)).tables
    assert [(each.name, each.physical) for each in listed] == [
        ("plans.json, line 1/aws_dynamodb_table.orders", "orders"),
        ("plans.json, line 2/aws_dynamodb_table.orders", "carts"),
    ]
    assert find_table(load_templates(file), name="carts").resources[0].write.units == 66
    assert is_plan(file)


def test_targets_of_plans_with_equal_addresses_stay_with_their_own_table(tmp_path: Path) -> None:
    """A target whose table is known only after apply has its address, which another plan has too."""
    folder = tmp_path / "plans"
    folder.mkdir()
    for name, most in (("dev", 71), ("prod", 7_100)):
        references = {"resource_id": {"references": ["aws_dynamodb_table.orders.name", "aws_dynamodb_table.orders"]}}
        root = {
            "resources": [
                {
                    "address": "aws_appautoscaling_target.write",
                    "mode": "managed",
                    "type": "aws_appautoscaling_target",
                    "name": "write",
                    "expressions": references,
                }
            ]
        }
        planned = plan(table(name=UNKNOWN), target(max_capacity=most, resource_id=UNKNOWN), root=root)
        saved(folder, planned, f"{name}.json")
    listed = {each.name: each.setup for each in read_app(load_templates(folder)).tables}
    assert {name: setup and setup.resources[0].write.max for name, setup in listed.items()} == {
        "dev.json/aws_dynamodb_table.orders": 71,
        "prod.json/aws_dynamodb_table.orders": 7_100,
    }


def test_templates_one_after_another_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(f"{json.dumps(AS_OBJECT)}\n{json.dumps(AS_OBJECT)}\n")
    assert _refused(file) == (
        f"{file}: has 2 JSON documents, and only Terraform plans are read from one file; give each template in a file "
        "of its own"
    )
    file.write_text(f"{json.dumps(AS_OBJECT)}\nDone.\n")
    assert _refused(file) == f"{file}, line 2: is not valid JSON: Extra data"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"TemplateBody": AS_OBJECT, "StagesAvailable": ["Original"]}, id="of a template in JSON"),
        pytest.param({"TemplateBody": TEMPLATE, "StagesAvailable": ["Original"]}, id="of a template in YAML"),
        pytest.param({"TemplateBody": json.dumps(AS_OBJECT)}, id="of boto3"),
        pytest.param(TEMPLATE, id="with --query TemplateBody"),
    ],
)
def test_answer_of_get_template_is_read(answer: Any, tmp_path: Path) -> None:
    file = tmp_path / "deployed.json"
    file.write_text(json.dumps(answer))
    assert _units(file) == (7, 8)


def test_fault_in_an_answer_of_get_template_is_placed_in_it(tmp_path: Path) -> None:
    file = tmp_path / "deployed.json"
    file.write_text(json.dumps({"TemplateBody": "Resources:\n\tOrders: 1\n"}))
    assert _refused(file) == (
        f"{file}, TemplateBody, line 2: is not valid YAML: found character '\\t' that cannot start any token"
    )
    twice = '{"ReadCapacityUnits": 7, "ReadCapacityUnits": 9, "WriteCapacityUnits": 8}'
    orders = f'{{"Type": "AWS::DynamoDB::Table", "Properties": {{"ProvisionedThroughput": {twice}}}}}'
    file.write_text(f'{{"TemplateBody": {{"Resources": {{"Orders": {orders}}}}}}}')
    with pytest.raises(TemplateError) as refused:
        find_table(load_templates(file))
    assert str(refused.value) == (f"{file}: is not valid JSON: the key 'ReadCapacityUnits' occurs twice in one mapping")


def test_serverless_framework_is_refused_and_what_it_packages_is_read(tmp_path: Path) -> None:
    file = tmp_path / "serverless.yml"
    resources = "".join(f"  {line}\n" for line in TEMPLATE.splitlines())
    file.write_text(f"service: shop\nprovider: {{name: aws}}\nresources:\n{resources}")
    message = (
        f"{file}: is of the Serverless Framework, which makes another template of it to deploy; run serverless "
        f"package, and give {tmp_path}/.serverless/cloudformation-template-update-stack.json"
    )
    assert _refused(file) == message
    assert _refused(tmp_path) == message
    packaged = _in_folder(
        tmp_path / ".serverless",
        **{
            "cloudformation-template-create-stack__json": '{"Resources": {"Bucket": {"Type": "AWS::S3::Bucket"}}}',
            "cloudformation-template-update-stack__json": json.dumps(AS_OBJECT),
            "serverless-state__json": json.dumps({"service": {}, "provider": {}, "DynamoDB": {"Resources": {}}}),
        },
    )
    assert [Path(each.where).name for each in load_templates(packaged)] == ["cloudformation-template-update-stack.json"]
    assert _units(packaged) == (7, 8)
    assert _refused(packaged / "serverless-state.json") == (
        f"{packaged}/serverless-state.json: is the state of the Serverless Framework, and no template; give the folder "
        f"{packaged}, or {packaged}/cloudformation-template-update-stack.json"
    )


@pytest.mark.parametrize(
    ("was", "now", "what"),
    [
        ("ReadCapacityUnits: 7", "ReadCapacityUnits: '${self:custom.units.${opt:stage}}'", "Orders ReadCapacityUnits"),
        (
            "{ReadCapacityUnits: 7, WriteCapacityUnits: 8}",
            "'${file(units.yml):orders}'",
            "Orders ProvisionedThroughput",
        ),
        ("TableName: !Sub shop-orders", "BillingMode: '${param:mode}'", "Orders BillingMode"),
    ],
)
def test_variable_of_the_serverless_framework_names_the_command_that_fills_it_in(
    tmp_path: Path, was: str, now: str, what: str
) -> None:
    file = tmp_path / "orders.yml"
    file.write_text(TEMPLATE.replace(was, now))
    value = now.partition("'")[2].rstrip("'")
    (listed,) = read_app(load_templates(file)).tables
    fix = "run serverless package, and give .serverless/cloudformation-template-update-stack.json"
    assert listed.problem == f"{file}: {what} is '{value}', a variable of the Serverless Framework; {fix}"
    resources = file.read_text().replace("Resources:\n", "")
    file.write_text(resources)
    assert _refused(file) == f"{file}: is a part of a configuration of the Serverless Framework; {fix}"


def test_list_of_templates_is_refused_as_a_list(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps([AS_OBJECT, AS_OBJECT, AS_OBJECT]))
    assert _refused(file) == (
        f"{file}: is a list of 3, and neither a CloudFormation template nor a Terraform plan or state as JSON; give "
        "each template in a file of its own"
    )


def test_log_of_terraform_plan_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    lines = [
        {"@level": "info", "@message": "Terraform 1.14.0", "type": "version"},
        {"@level": "info", "@message": "aws_dynamodb_table.orders: Plan to create", "type": "planned_change"},
    ]
    file.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    assert _refused(file) == (
        f"{file}: is the log that terraform plan -json prints, which has no capacity; run terraform plan -out "
        "PLANFILE, and give what terraform show -json PLANFILE prints"
    )


def test_folder_of_plans_is_read_with_the_folders_in_it(tmp_path: Path) -> None:
    """As terragrunt run --all plan --json-out-dir lays them."""
    plans = tmp_path / "plans"
    for unit, units in (("orders", 61), ("carts", 62)):
        _in_folder(plans / "prod" / unit)
        planned = plan(table(name=unit, write_capacity=units), prior=(table(name=unit, write_capacity=units - 50),))
        saved(plans / "prod" / unit, planned, "tfplan.json")
        (plans / "prod" / unit / "tfplan.tfplan").write_bytes(b"PK\x03\x04")
    assert _units(plans, "carts/tfplan.json/aws_dynamodb_table.orders") == (5, 62)
    assert _units(plans, "orders/tfplan.json/aws_dynamodb_table.orders") == (5, 61)
    assert is_plan(plans)
    before = [each.setup for each in read_app(load_prior(plans)).tables]
    assert [setup and setup.resources[0].write.units for setup in before] == [12, 11]


def test_folder_of_templates_is_read_and_other_files_are_ignored(tmp_path: Path) -> None:
    folder = _in_folder(
        tmp_path / "infra",
        orders__yml=TEMPLATE,
        carts__template=json.dumps(AS_OBJECT).replace("Orders", "Carts"),
        README__md="Resources: AWS::DynamoDB::Table",
        tsconfig__json="{/* Resources */}",
        values__yaml="Resources: [{{ .Values }}]",
        **{"parameters.prod.json": '[{"ParameterKey": "DynamoDBResources", "ParameterValue": "1"}]'},
    )
    _in_folder(folder / ".git", old__yaml=TEMPLATE)
    _in_folder(folder / "node_modules", example__yaml=TEMPLATE)
    (folder / "again").symlink_to(folder)
    assert [each.name for each in read_app(load_templates(folder)).tables] == ["Carts", "Orders"]
    saved(folder, plan(table()))
    assert [each.name for each in read_app(load_templates(folder)).tables] == [
        "Carts",
        "Orders",
        "aws_dynamodb_table.orders",
    ]
    assert not is_plan(folder)


def test_broken_file_of_a_folder_is_said_where_it_may_have_tables(tmp_path: Path) -> None:
    folder = _in_folder(tmp_path / "infra", orders__yml=TEMPLATE, carts__yml=TEMPLATE + "\t")
    assert _refused(folder) == (
        f"{folder}/carts.yml, line 7: is not valid YAML: found character '\\t' that cannot start any token"
    )


def test_broken_file_of_a_folder_is_said_where_it_is_all_there_is(tmp_path: Path) -> None:
    folder = _in_folder(tmp_path / "infra", plan__json='{"format_version": "1.2" "planned_values": {}}')
    message = f"{folder}/plan.json, line 1: is not valid JSON: Expecting ',' delimiter"
    assert _refused(folder) == message
    (folder / "orders.yml").write_text(TEMPLATE)
    assert _units(folder) == (7, 8)


def test_files_of_a_folder_without_a_template_are_named(tmp_path: Path) -> None:
    folder = _in_folder(tmp_path / "infra", **{f"{letter}__json": "{}" for letter in "abcdefgh"})
    assert _refused(folder) == (
        f"{folder}: contains no template and no plan; run cdk synth first, or give a template file; neither are "
        "a.json, b.json, c.json, d.json, e.json, f.json and 2 more"
    )
