"""`highwater migrate`: what it says of each table, and that its code keeps what a table has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk.assertions import Annotations, Match

from cdk_highwater import Capacity, manage_capacity
from highwater.core import Dimension
from highwater_lab.commands.migrate import migration_of
from highwater_lab.template import ListedTable, TemplateError, is_plan, load_templates, read_app
from tests.command import Command, refused
from tests.template.plans import plan, state, table

CORPUS = Path(__file__).parents[1] / "template" / "corpus"
TWO = str(CORPUS / "capacity-in-another-stack" / "assembly")
KEY = dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING)


def _app(folder: Path) -> tuple[cdk.App, cdk.Stack, dynamodb.Table]:
    app = cdk.App(outdir=str(folder))
    stack = cdk.Stack(app, "Shop", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    table = dynamodb.Table(stack, "OrderItems", partition_key=KEY, read_capacity=11, write_capacity=12)
    table.add_global_secondary_index(index_name="by-owner", partition_key=KEY, read_capacity=13, write_capacity=14)
    return app, stack, table


def test_code_keeps_floors_ceilings_and_targets(command: Command, tmp_path: Path) -> None:
    app, _, table = _app(tmp_path / "before")
    table.auto_scale_write_capacity(min_capacity=21, max_capacity=2_100).scale_on_utilization(
        target_utilization_percent=61,
        scale_in_cooldown=cdk.Duration.seconds(31),
        scale_out_cooldown=cdk.Duration.seconds(32),
    )
    table.auto_scale_global_secondary_index_read_capacity(
        "by-owner", min_capacity=22, max_capacity=220
    ).scale_on_utilization(target_utilization_percent=70)
    app.synth()
    done = command("migrate", "before", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    (planned,) = json.loads(done.stdout)["tables"]
    app, _, table = _app(tmp_path / "after")
    exec(planned["code"], {"order_items": table})  # noqa: S102 - that is the test
    app.synth()
    before, after = (
        {
            (resource.index, dimension): (target.min, target.max, target.tracking)
            for (listed,) in [read_app(load_templates(tmp_path / place)).tables]
            if listed.setup is not None
            for resource in listed.setup.resources
            for dimension, target in (("read", resource.read), ("write", resource.write))
        }
        for place in ("before", "after")
    )
    assert after[None, "write"] == before[None, "write"]
    assert after["by-owner", "read"] == before["by-owner", "read"]
    # what nothing scaled is kept as it is
    assert (after[None, "read"][:2], after["by-owner", "write"][:2]) == ((11, 11), (14, 14))
    assert planned["what"] == (
        "table: read 11 fixed, write 21 to 2,100 at 61 %; index 'by-owner': read 22 to 220 at 70 %, write 14 fixed"
    )
    assert [step.split(":")[0] for step in planned["steps"]] == [
        "deploy 1, in a quiet hour",
        "deploy 2, right after it",
        "back",
    ]


def test_scalable_target_without_a_policy_keeps_its_bounds_and_takes_two_deploys(
    command: Command, tmp_path: Path
) -> None:
    """Its scheduled actions, or its bounds alone, hold capacity above the template's number."""
    app, _, table = _app(tmp_path / "app")
    table.auto_scale_write_capacity(min_capacity=21, max_capacity=2_100)
    app.synth()
    (planned,) = json.loads(command("migrate", "app", "--json").stdout)["tables"]
    assert planned["what"].startswith("table: read 11 fixed, write 21 to 2,100 without a policy; ")
    assert len(planned["steps"]) == 3
    assert "    write=Capacity.autoscaled(min_capacity=21, max_capacity=2_100),\n" in planned["code"]
    assert planned["notes"] == [
        "table write: no policy that could be read moves it between its bounds; the code has target tracking at 70 %"
    ]


def _migrations() -> Iterator[Any]:
    for folder in sorted(CORPUS.iterdir()):
        for file in folder.iterdir():
            if file.name == "right.json" or is_plan(file):
                continue
            try:
                listed = read_app(load_templates(file)).tables
            except TemplateError:
                continue
            for each in listed:
                if each.setup is not None and migration_of(each).code:
                    yield pytest.param(each, id=f"{folder.name}-{each.name}")


@pytest.mark.parametrize("listed", list(_migrations()))
def test_no_table_of_the_corpus_has_less_at_any_time_than_it_had(listed: ListedTable) -> None:
    assert listed.setup is not None
    stack = cdk.Stack(cdk.App(), "Shop", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    code = migration_of(listed).code.replace("\nmanage_capacity(", "\nmanaged = manage_capacity(")
    (variable,) = re.findall(r"manage_capacity\(\n    (\w+),", code)
    names: dict[str, Any] = {"stack": stack, variable: dynamodb.Table.from_table_name(stack, "Own", "own")}
    exec(code, names)  # noqa: S102 - that is the test
    Annotations.from_stack(stack).has_no_error("*", Match.any_value())
    targets = {target.key: target.capacity for target in names["managed"].plan.targets()}
    for resource in listed.setup.resources:
        for dimension in Dimension:
            before, after = resource.target(dimension), targets[resource.index, dimension]
            floors = [before.capacity.min_capacity, *(action.min or 0 for action in before.actions)]
            assert after.min_capacity >= max(floors)
            assert after.max_capacity >= before.max
            if before.tracking is not None:
                percent = after.target_utilization_percent
                assert percent is not None
                assert percent <= before.tracking.target_percent
                assert after.scale_in_cooldown.total_seconds() == before.tracking.scale_in_cooldown
                assert after.scale_out_cooldown.total_seconds() == before.tracking.scale_out_cooldown
                assert after.disable_scale_in == before.tracking.disable_scale_in


@pytest.mark.parametrize("order", [1, -1])
def test_replicas_that_differ_get_the_most_of_each(command: Command, tmp_path: Path, order: int) -> None:
    app = cdk.App(outdir=str(tmp_path / "app"))
    stack = cdk.Stack(app, "Shop", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    reads = [
        dynamodb.Capacity.autoscaled(min_capacity=31, max_capacity=310, target_utilization_percent=60),
        dynamodb.Capacity.autoscaled(min_capacity=47, max_capacity=270, target_utilization_percent=80),
    ][::order]
    writes = dynamodb.Capacity.autoscaled(max_capacity=70)
    dynamodb.TableV2(
        stack,
        "World",
        partition_key=KEY,
        billing=dynamodb.Billing.provisioned(read_capacity=reads[0], write_capacity=writes),
        replicas=[dynamodb.ReplicaTableProps(region="us-east-1", read_capacity=reads[1])],
    )
    app.synth()
    (planned,) = json.loads(command("migrate", "app", "--json").stdout)["tables"]
    assert (
        "    read=Capacity.autoscaled(min_capacity=47, max_capacity=310, target_utilization_percent=60),\n"
        in (planned["code"])
    )
    assert planned["notes"] == [
        "table read: replicas differ, and manage_capacity gives all the same; the code has the most of each"
    ]


def test_ceiling_above_the_default_quota_says_the_quota(command: Command, tmp_path: Path) -> None:
    app, _, table = _app(tmp_path / "app")
    table.auto_scale_write_capacity(min_capacity=21, max_capacity=71_000).scale_on_utilization(
        target_utilization_percent=61.9
    )
    app.synth()
    (planned,) = json.loads(command("migrate", "app", "--json").stdout)["tables"]
    assert "max_capacity=71_000, target_utilization_percent=61)," in planned["code"]
    assert "    table_quota_units=71_000,\n" in planned["code"]


def test_plan_of_a_table_is_text_with_the_code_set_off(command: Command) -> None:
    done = command("migrate", TWO, "--table", "Visits")
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout
        == """\
Data/Visits: table: read 42 fixed, write 43 fixed
  deploy: add the code below; nothing has to be removed before.
  back: remove manage_capacity and deploy. The capacity stays as it is, and nothing scales it.

    from cdk_highwater import Capacity, manage_capacity

    manage_capacity(
        visits,  # Data/Visits
        read=Capacity.fixed(42),
        write=Capacity.fixed(43),
    )


data: 12 resources come with 1 managed table.
Where AWS Config records continuously, each change of capacity is an item of the table, and two of each alarm of \
target tracking: highwater rehearse counts them, and docs/cost.md tells what to leave out.
"""
    )
    orders = command("migrate", TWO, "--table", "Data/Orders").stdout
    assert (
        "! table write: scheduled action 'load' (min 442) becomes a floor at all times, so that nothing is lost; "
        "declare it as a Window, which opens and closes, and lower the floor."
    ) in orders
    assert "write=Capacity.autoscaled(min_capacity=442, max_capacity=442, target_utilization_percent=67)" in orders


def test_table_that_needs_nothing_says_why(command: Command, tmp_path: Path) -> None:
    app, stack, table = _app(tmp_path / "app")
    follow = Capacity.autoscaled(min_capacity=5, max_capacity=50)
    manage_capacity(table, read=follow, write=follow)
    dynamodb.Table(stack, "Logs", partition_key=KEY, billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST)
    dynamodb.TableV2(
        stack,
        "World",
        partition_key=KEY,
        billing=dynamodb.Billing.provisioned(
            read_capacity=dynamodb.Capacity.fixed(5), write_capacity=dynamodb.Capacity.autoscaled(max_capacity=70)
        ),
    )
    app.synth()
    document = json.loads(command("migrate", "app", "--json").stdout)
    assert document["not_read"] == []
    found = {each["table"]: each for each in document["tables"]}
    assert found["Shop/OrderItems"]["what"] == "Highwater manages its capacity already"
    assert found["Shop/Logs"]["what"] == "is on demand; highwater recommend says whether provisioned costs less"
    assert found["Shop/World"]["steps"][0] == (
        "deploy: add the code below. CloudFormation keeps the scalable targets of a global table, and changes their "
        "bounds"
    )
    assert found["Shop/World"]["steps"][1:] == [
        "back: remove manage_capacity and deploy. CloudFormation keeps the scalable targets, with the bounds that the "
        "table's own billing declares"
    ]
    assert [each["code"] is None for each in found.values()] == [True, True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([TWO, "--table", "Nope"], "there is no table 'Nope'; the tables are Data/Orders, Data/Visits"),
        (["none.json"], "none.json: does not exist; give a cdk.out folder (made by cdk synth) or a template file"),
    ],
)
def test_misuse_is_told_in_a_line(command: Command, arguments: list[str], message: str) -> None:
    assert refused(command("migrate", *arguments)) == f"highwater migrate: {message}"


@pytest.mark.parametrize("body", [plan(table()), state(table())])
def test_plan_and_state_of_terraform_are_refused(command: Command, tmp_path: Path, body: object) -> None:
    (tmp_path / "tf.json").write_text(json.dumps(body))
    assert refused(command("migrate", "tf.json")) == (
        "highwater migrate: tf.json: is a plan or state of Terraform, and manage_capacity is for apps of the CDK; for "
        "Terraform, highwater recommend --code hcl prints tables with their scaling"
    )


def test_default_of_a_parameter_is_said_where_it_is_taken_for_capacity(command: Command, tmp_path: Path) -> None:
    key = {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": {"Ref": "MaxWrite"}}
    plain = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 9}
    resources = {
        name: {"Type": "AWS::DynamoDB::Table", "Properties": {**key, "ProvisionedThroughput": each}}
        for name, each in (("Orders", units), ("Carts", plain))
    }
    body = {"Parameters": {"MaxWrite": {"Type": "Number", "Default": 1}}, "Resources": resources}
    (tmp_path / "t.json").write_text(json.dumps(body))
    said = "the default of parameter MaxWrite, 1, is taken for Orders ProvisionedThroughput; give --parameter "
    said += "MaxWrite=VALUE if the stack has another"
    migrated = json.loads(command("migrate", "t.json", "--json").stdout)["tables"]
    assert {each["table"]: each["notes"] for each in migrated} == {"Orders": [said], "Carts": []}
    given = json.loads(command("migrate", "t.json", "--parameter", "MaxWrite=30", "--json").stdout)["tables"]
    assert {each["table"]: each["notes"] for each in given} == {"Orders": [], "Carts": []}
    assert "write=Capacity.fixed(30)" in given[0]["code"]
    rehearsed = command("rehearse", "t.json", "--scenario", "constant", "--json")
    notes = {each["name"]: each["notes"] for each in json.loads(rehearsed.stdout)["tables"]}
    assert notes == {"Orders": [said], "Carts": []}


def test_table_is_left_out_where_a_macro_may_change_it_or_its_index_has_no_known_name(
    command: Command, tmp_path: Path
) -> None:
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 7}
    index = {"IndexName": {"Fn::Sub": "${Name}-index"}, "ProvisionedThroughput": units}
    orders = {"ProvisionedThroughput": units, "GlobalSecondaryIndexes": [index]}
    resources = {"Orders": {"Type": "AWS::DynamoDB::Table", "Properties": orders}}
    body = {"Parameters": {"Name": {"Type": "String"}}, "Resources": resources}
    (tmp_path / "t.json").write_text(json.dumps(body))
    (table,) = json.loads(command("migrate", "t.json", "--json").stdout)["tables"]
    assert (table["what"], table["code"]) == (
        "is left out: the name of index ${Name}-index is not known; give it with --parameter Name=VALUE",
        None,
    )
    (tmp_path / "t.json").write_text(json.dumps(body | {"Transform": ["MakeMany"]}))
    (table,) = json.loads(command("migrate", "t.json", "--parameter", "Name=day", "--json").stdout)["tables"]
    assert (table["what"], table["code"]) == (
        "is left out: Transform MakeMany is a macro, which is not run here, and may make or change tables. Code made "
        "without that could lower its capacity",
        None,
    )
