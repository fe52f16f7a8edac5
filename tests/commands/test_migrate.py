"""`highwater migrate`: what it says of each table, and that its code keeps what a table has."""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, manage_capacity
from highwater_lab.template import list_tables, load_templates
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
            for (listed,) in [list_tables(load_templates(tmp_path / place))]
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


def test_scalable_target_without_a_policy_keeps_its_floor_and_takes_two_deploys(
    command: Command, tmp_path: Path
) -> None:
    """Its scheduled actions, or its bounds alone, hold capacity above the template's number."""
    app, _, table = _app(tmp_path / "app")
    table.auto_scale_write_capacity(min_capacity=21, max_capacity=2_100)
    app.synth()
    (planned,) = json.loads(command("migrate", "app", "--json").stdout)["tables"]
    assert planned["what"].startswith("table: read 11 fixed, write 21 to 2,100 without a policy; ")
    assert len(planned["steps"]) == 3
    assert "    write=Capacity.fixed(21),\n" in planned["code"]


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

"""
    )
    orders = command("migrate", TWO, "--table", "Data/Orders").stdout
    assert "! table write: scheduled action 'load' (min 442) is not in the code; declare it as a Window" in orders


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
    assert refused(command("migrate", *arguments)).startswith(f"highwater migrate: {message}")


@pytest.mark.parametrize("body", [plan(table()), state(table())])
def test_plan_and_state_of_terraform_are_refused(command: Command, tmp_path: Path, body: object) -> None:
    (tmp_path / "tf.json").write_text(json.dumps(body))
    assert refused(command("migrate", "tf.json")) == (
        "highwater migrate: tf.json: is a plan or state of Terraform, and manage_capacity is for apps of the CDK; for "
        "Terraform, highwater recommend --code hcl prints tables with their scaling"
    )
