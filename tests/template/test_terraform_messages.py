"""Messages about plans of Terraform: one line each, with the file, the address, and Terraform's words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.template import TemplateError, find_table, load_templates, read_app
from tests.template.plans import INDEX, UNKNOWN, action, plan, policy, saved, table, target

Document = dict[str, Any]


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        (
            [table(read_capacity=None)],
            "aws_dynamodb_table.orders: has provisioned billing but no read_capacity; set it, or "
            "set billing_mode to PAY_PER_REQUEST",
        ),
        (
            [table(billing_mode="x")],
            "aws_dynamodb_table.orders has billing_mode 'x'; expected PROVISIONED or PAY_PER_REQUEST",
        ),
        (
            [table(read_capacity=-4)],
            "aws_dynamodb_table.orders read_capacity is -4; expected a whole number from 0 to 10,000,000",
        ),
        (
            [table(write_capacity=UNKNOWN)],
            "aws_dynamodb_table.orders write_capacity is "
            "'${aws_dynamodb_table.orders.write_capacity}', whose value is known only after apply; write the number "
            "itself, or give the state",
        ),
        ([table(warm_throughput=[4])], "aws_dynamodb_table.orders warm_throughput is 4; expected an object"),
        (
            [table(global_secondary_index=[INDEX, INDEX])],
            "aws_dynamodb_table.orders has two indexes named by_state; rename or remove one",
        ),
        (
            [table(global_secondary_index=[7])],
            "aws_dynamodb_table.orders indexes[0] is 7; expected an object",
        ),
        (
            [table(global_secondary_index=10**30)],
            "aws_dynamodb_table.orders indexes is 1000000000000000000000000000000; expected a list",
        ),
        (
            [table(replica=[5])],
            "aws_dynamodb_table.orders replica[0] is 5; expected an object",
        ),
        (
            [table(replica=[{}])],
            "aws_dynamodb_table.orders replica's region_name is None; expected a name",
        ),
        (
            [table(), target(min_capacity=99)],
            "aws_appautoscaling_target.write has min_capacity 99 above max_capacity 70; "
            "lower the one or raise the other",
        ),
        (
            [table(), target(max_capacity="many")],
            "aws_appautoscaling_target.write max_capacity is 'many'; expected a number",
        ),
        (
            [table(), target(), policy(tracking={"target_value": 95})],
            "aws_appautoscaling_policy.write: target_value is 95, allowed: 20 to 90 percent",
        ),
        (
            [table(), target(), policy(target_tracking_scaling_policy_configuration=[3])],
            "aws_appautoscaling_policy.write target_tracking_scaling_policy_configuration is 3; expected an object",
        ),
        (
            [table(), target(), action(schedule="daily")],
            "aws_appautoscaling_target.write scheduled action 'load' has "
            "schedule 'daily'; expected at(...), rate(...) or cron(...)",
        ),
        (
            [table(), target(), action(timezone="Mars")],
            "aws_appautoscaling_target.write scheduled action 'load' has unknown "
            "timezone 'Mars'; use an IANA name such as Europe/Berlin",
        ),
        (
            [table(), target(), action(start_time="soon")],
            "aws_appautoscaling_target.write scheduled action 'load' has "
            "start_time 'soon'; write it as 2026-11-02T05:00:00Z",
        ),
    ],
)
def test_message_names_file_and_address_in_terraform_s_words(
    resources: list[Document], message: str, tmp_path: Path
) -> None:
    file = saved(
        tmp_path,
        plan(*(json.loads(json.dumps(each)) if UNKNOWN not in each["values"].values() else each for each in resources)),
    )
    with pytest.raises(TemplateError) as refused:
        find_table(load_templates(file))
    assert str(refused.value) == f"{file}: {message}"


def test_error_of_one_table_does_not_stop_another(tmp_path: Path) -> None:
    planned = plan(table(), target(max_capacity=3), table("aws_dynamodb_table.carts", name="carts"))
    listed = read_app(load_templates(saved(tmp_path, planned))).tables
    assert [(each.name, bool(each.problem)) for each in listed] == [
        ("aws_dynamodb_table.orders", True),
        ("aws_dynamodb_table.carts", False),
    ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "x", "resources": []},
            "is a Terraform state file; give what terraform show -json prints",
        ),
        (
            {"format_version": "2.0", "planned_values": {}},
            "has format_version '2.0'; expected 1.x, as Terraform 1 writes it",
        ),
        (
            {"format_version": "1.0", "provider_schemas": {}},
            "has neither planned_values, as a plan has, nor values, as a "
            "state has; give what terraform show -json prints of a plan or a state",
        ),
        (
            {"format_version": "1.2", "planned_values": [1]},
            "planned_values is [1]; expected an object, as terraform show -json has",
        ),
        (
            {"format_version": "1.2", "planned_values": {"root_module": {"resources": {"a": 1}}}},
            "resources of root_module is {'a': 1}; expected a list, as terraform show -json has",
        ),
        (
            {"format_version": "1.2", "planned_values": {}},
            "no DynamoDB table and no scalable target for one",
        ),
    ],
)
def test_document_of_another_form_is_refused(document: Document, message: str, tmp_path: Path) -> None:
    file = saved(tmp_path, document)
    with pytest.raises(TemplateError) as refused:
        find_table(load_templates(file))
    assert str(refused.value) == f"{file}: {message}"


def test_binary_plan_says_how_to_print_it(tmp_path: Path) -> None:
    file = tmp_path / "plan.bin"
    file.write_bytes(b"PK\x03\x04\x14\x00")
    with pytest.raises(TemplateError) as refused:
        load_templates(file)
    assert str(refused.value) == (
        f"{file}: is a ZIP file, which Terraform writes plans in; give what terraform show -json {file} prints"
    )
