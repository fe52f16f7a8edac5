"""`highwater rehearse` of an app and of its change: what is printed, how it ends, an old app from a revision of git."""

from __future__ import annotations

import html
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.commands.rehearse import rehearse_command
from tests.cdk_cli import ROOT
from tests.command import SCRIPT, Command, refused
from tests.commands.pipelines import ACTION, JOB
from tests.template.plans import action, plan, state, table, target

pytestmark = pytest.mark.xdist_group("rehearsed app")
CORPUS = Path(__file__).parents[1] / "template" / "corpus"
TWO = str(CORPUS / "capacity-in-another-stack" / "assembly")
APP = """
import sys
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from cdk_highwater import BoostCoordinator, Capacity, HighWaterTable, ThrottleAwareScaler
app = cdk.App(outdir=sys.argv[1] if len(sys.argv) > 1 else None)
stage = cdk.Stage(app, "Prod", env=cdk.Environment(account="111122223333", region="eu-west-1"))
stack = cdk.Stack(stage, "Shop")
key = dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING)
follow = Capacity.autoscaled(min_capacity=13, max_capacity=5_000)
orders = HighWaterTable(
    stack, "Orders", table_name="orders", partition_key=key, read=follow,
    write=Capacity.autoscaled(min_capacity=FLOOR, max_capacity=9_000),
)
HighWaterTable(stack, "Carts", partition_key=key, read=follow, write=follow)
scaler = ThrottleAwareScaler(stack, "Scaler")
scaler.add_table(orders)
BoostCoordinator(stack, "Boosts", scaler=scaler)
app.synth()
"""
TABLES = ("orders", "Carts")
RISE = "bin_60s,table,writes\n" + "".join(
    f"{minute},{table},{60 * (2_000 if minute > 60 else 90 + minute % 7)}\n" for minute in range(90) for table in TABLES
)


def _synthesized(folder: Path, floor: int) -> str:
    folder.mkdir()
    (folder / "app.py").write_text(APP.replace("FLOOR", str(floor)))
    done = subprocess.run(
        [sys.executable, "app.py", "cdk.out"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return str(folder / "cdk.out")


@pytest.fixture(scope="module")
def apps(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The app with a floor of 17 writes, and with one of 2,900."""
    folder = tmp_path_factory.mktemp("apps")
    return _synthesized(folder / "old", 17), _synthesized(folder / "new", 2_900)


def test_all_tables_but_highwaters_own_are_rehearsed_each_under_its_own_traffic(
    command: Command, apps: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "traffic.csv").write_text(RISE)
    done = command("rehearse", apps[1], "--traffic", "traffic.csv")
    assert (done.returncode, done.stderr) == (0, "")
    first, *lines = done.stdout.splitlines()
    assert first.startswith("2 tables, 14 alarms, 1 scaler: ")
    assert [line.split(":")[0] for line in lines] == [
        "Prod/Shop/Carts",
        "Prod/Shop/Orders",
        "Prod",
        "Prod",
        "0.1 days from Mon 2026-11-02 00",
    ]
    assert "On demand: " in lines[1]
    assert lines[2:4] == [
        "Prod: 14 alarms, whatever the traffic: 1.40 USD a month.",
        "Prod: 1 scaler, whatever the traffic: 0.64 USD a month.",
    ]
    assert "; without AWS Config: at most " in lines[4]
    recorded = command("rehearse", apps[1], "--traffic", "traffic.csv", "--config-recorder")
    assert ", 2026-11, with AWS Config: at most " in recorded.stdout
    assert recorded.stdout.splitlines()[0] != first


def test_change_is_told_with_its_limits_in_text_markdown_and_json(
    command: Command, apps: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "traffic.csv").write_text(RISE)
    against = ("rehearse", apps[1], "--against", apps[0], "--traffic", "traffic.csv", "--max-cost-rise", "5")
    done = command(*against)
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert f"Before ({apps[0]}): " in lines[0]
    assert lines[1].startswith("Prod/Shop/Orders: ")
    assert lines[2] == "1 is unchanged."
    assert lines[-1].startswith("✗ Prod: the cost rises by $")
    markdown = command(*against, "--format", "markdown").stdout
    assert markdown.startswith("<!-- highwater::Prod -->\n### DynamoDB capacity, Prod\n")
    assert "\n- ❌ Prod: the cost rises by $" in markdown
    page = command(*against, "--html", "page.html").stdout.splitlines()
    assert [line for line in page if line not in lines] == ["written: page.html"]
    assert html.unescape((tmp_path / "page.html").read_text()).count(lines[0]) == 1
    document = json.loads(command(*against, "--json").stdout)
    assert document["passed"] == ["cost-rise"]
    orders = next(table for table in document["tables"] if table["name"] == "Prod/Shop/Orders")
    assert orders["before"]["throttled_percent"] > 1
    assert orders["after"]["throttled_percent"] == 0
    assert json.loads(command(*against, "--format", "json").stdout) == document


def test_table_without_traffic_is_unknown_and_in_no_sum(
    command: Command, apps: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "orders.csv").write_text("bin_60s,writes\n0,54000\n1,54000\n")
    done = command("rehearse", apps[1], "--traffic", "orders.csv", "--json")
    assert done.returncode == 0
    carts, orders = json.loads(done.stdout)["tables"]
    assert carts["unknown"] == "there is no traffic of Prod/Shop/Carts"
    assert carts["after"] is None
    failed = command("rehearse", apps[1], "--traffic", "orders.csv", "--fail-on-unknown")
    assert (failed.returncode, failed.stdout.splitlines()[-1]) == (
        1,
        "✗ Prod/Shop/Carts: unknown: there is no traffic of Prod/Shop/Carts; no table may be unknown",
    )
    assert orders["unknown"] is None


def test_cheapest_plan_of_a_table_is_searched_for(command: Command, apps: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("bin_60s,writes\n" + "".join(f"{minute},54000\n" for minute in range(60)))
    options = ("--against", apps[0], "--table", "Orders", "--traffic", "orders.csv", "--cheapest-within", "0.01")
    done = command("rehearse", apps[1], *options, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    (orders,) = json.loads(done.stdout)["tables"]
    cheapest = orders["cheapest"]
    assert cheapest["throttled_percent"] <= 0.01
    assert cheapest["cost_per_month_usd"] < orders["after"]["cost_per_month_usd"]
    assert f"with {cheapest['summary']}." in command("rehearse", apps[1], *options).stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--html", "."], "--html '.' is a folder; give the name of a file"),
        (
            ["--max-cost-rise", "1"],
            "--max-throttled-rise and --max-cost-rise compare with an older app; give it with --against",
        ),
        (["--table", "Nope"], "there is no table 'Nope'; the tables are Data/Orders, Data/Visits"),
        (["--against", TWO, "--table", "Nope"], "there is no table 'Nope'; the tables are Data/Orders, Data/Visits"),
        (
            ["--against", "--upload-pack=x"],
            "--against --upload-pack=x: is neither a folder or template nor a revision of git",
        ),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_options_that_have_no_meaning_are_refused(command: Command, options: list[str], message: str) -> None:
    said = refused(command("rehearse", TWO, "--scenario", "step", *options))
    # git's own words follow where the checkout has no repository
    assert said.partition(": fatal:")[0] == f"highwater rehearse: {message}"


@pytest.mark.parametrize("name", ["rehearse", "simulate", "recommend", "migrate"])
def test_app_whose_only_table_has_a_false_condition_is_refused_with_that_condition(
    command: Command, tmp_path: Path, name: str
) -> None:
    document = {
        "Parameters": {"Stage": {"Type": "String", "Default": "dev"}},
        "Conditions": {"IsProd": {"Fn::Equals": [{"Ref": "Stage"}, "prod"]}},
        "Resources": {"Orders": {"Type": "AWS::DynamoDB::Table", "Condition": "IsProd"}},
    }
    (tmp_path / "t.json").write_text(json.dumps(document))
    traffic = () if name == "migrate" else ("--scenario", "step")
    assert refused(command(name, "t.json", *traffic)) == (
        f"highwater {name}: t.json: no DynamoDB table and no scalable target for one; Orders has the condition IsProd, "
        "which is false; give its --parameter"
    )


def test_source_of_all_tables_is_told(command: Command) -> None:
    assert refused(command("rehearse", TWO)) == (
        "highwater rehearse: give the traffic with exactly one of --traffic FILE, --scenario NAME and --live"
    )
    assert refused(command("rehearse", TWO, "--scenario", "step", "--days", "3")) == (
        "highwater rehearse: --days is of --live; remove it beside --scenario"
    )


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose app is in a folder below it, with a floor of 17 in its only commit and of 2,900 since."""
    folder = tmp_path / "work" / "infra"
    folder.mkdir(parents=True)
    (folder / "app.py").write_text(APP.replace("FLOOR", "17"))
    (folder / "cdk.json").write_text(json.dumps({"app": f"{sys.executable} app.py"}))
    (folder / "traffic.csv").write_text(RISE)
    _git(folder.parent, "init")
    _git(folder.parent, "add", ".")
    _git(folder.parent, "commit", "-m", "old")
    (folder / "app.py").write_text(APP.replace("FLOOR", "2_900"))
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    return folder


@pytest.mark.cloud
def test_old_app_is_synthesized_from_a_revision_which_leaves_nothing_behind(repository: Path) -> None:
    environment = os.environ | {"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20"}
    cdk = str(ROOT / "node_modules" / ".bin" / "cdk")
    subprocess.run([cdk, "synth", "--quiet"], cwd=repository, check=True, capture_output=True, env=environment)
    command = [SCRIPT, "rehearse", "cdk.out", "--against", "main"]
    done = subprocess.run(
        [*command, "--traffic", "traffic.csv", "--json"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, "")
    tables = {table["name"]: table["change"] for table in json.loads(done.stdout)["tables"]}
    assert tables == {"Prod/Shop/Carts": "unchanged", "Prod/Shop/Orders": "changed"}
    listed = subprocess.run(["git", "worktree", "list"], cwd=repository, capture_output=True, text=True, check=True)
    assert len(listed.stdout.splitlines()) == 1
    (repository / "cdk.json").write_text("{")
    _git(repository.parent, "commit", "-am", "broken")
    broken = subprocess.run(
        [*command[:-1], "HEAD", "--traffic", "traffic.csv"], cwd=repository, capture_output=True, text=True, check=False
    )
    assert broken.returncode == 2
    assert broken.stderr.startswith("highwater rehearse: --against HEAD: cdk synth: ")
    assert len(broken.stderr.splitlines()) == 1


def test_plan_of_terraform_is_compared_with_the_state_that_it_was_made_from(command: Command, tmp_path: Path) -> None:
    carts = "aws_dynamodb_table.carts"
    same = (
        table(carts, name="carts"),
        target("aws_appautoscaling_target.carts", resource_id="table/carts"),
        action("aws_appautoscaling_scheduled_action.carts", resource_id="table/carts"),
    )
    planned = plan(
        *same, table(), target(min_capacity=2_900, max_capacity=9_000), action(), prior=(*same, table(), target())
    )
    (tmp_path / "plan.json").write_text(json.dumps(planned))
    (tmp_path / "traffic.csv").write_text(RISE.replace("Carts", "carts"))
    done = command("rehearse", "plan.json", "--against", "prior", "--traffic", "traffic.csv")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert "Before (prior): " in lines[0]
    assert lines[1].startswith("aws_dynamodb_table.orders: ")
    assert lines[2] == "1 is unchanged."
    every = command("rehearse", "plan.json", "--traffic", "traffic.csv", "--json")
    assert (every.returncode, every.stderr) == (0, "")
    assert [each["name"] for each in json.loads(every.stdout)["tables"]] == [carts, "aws_dynamodb_table.orders"]
    one = command(
        "rehearse", "plan.json", "--against", "prior", "--table", "orders", "--traffic", "traffic.csv", "--json"
    )
    assert [each["name"] for each in json.loads(one.stdout)["tables"]] == ["aws_dynamodb_table.orders"]


def test_table_that_a_plan_moves_is_compared_with_itself(command: Command, tmp_path: Path) -> None:
    old, new = table("aws_dynamodb_table.old"), table("aws_dynamodb_table.new", name="orders-2", write_capacity=60)
    planned = plan(new, prior=(old,))
    planned["resource_changes"] = [
        {"address": new["address"], "previous_address": old["address"], "change": {"actions": ["update"]}}
    ]
    (tmp_path / "plan.json").write_text(json.dumps(planned))
    done = command("rehearse", "plan.json", "--against", "prior", "--scenario", "step", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    (moved,) = document["tables"]
    assert (moved["name"], moved["change"], moved["moved_from"]) == (new["address"], "changed", old["address"])
    assert moved["declared_changes"] == [f"moved from {old['address']}", "write 6 units → 60 units"]
    assert moved["before"]["cost_per_month_usd"] < moved["after"]["cost_per_month_usd"]
    assert document["hazards"] == []


@pytest.mark.parametrize(
    ("policy", "status", "first"),
    [
        pytest.param(
            "Delete",
            1,
            "✗ Orders: removed: CloudFormation deletes it, with its data; to keep it, deploy it with DeletionPolicy: "
            "Retain before (in the CDK: RemovalPolicy.RETAIN)",
            id="deleted",
        ),
        pytest.param(
            "Retain",
            0,
            "! Orders: removed: by its DeletionPolicy, Retain, it stays in the account, with its data, and is only no "
            "longer managed",
            id="retained",
        ),
    ],
)
def test_comparison_begins_with_a_lost_table_and_fails_by_it(
    command: Command, tmp_path: Path, policy: str, status: int, first: str
) -> None:
    key = {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}], "BillingMode": "PAY_PER_REQUEST"}
    both = {name: {"Type": "AWS::DynamoDB::Table", "DeletionPolicy": policy, "Properties": key} for name in TABLES}
    both["Orders"] = both.pop("orders")
    (tmp_path / "old.json").write_text(json.dumps({"Resources": both}))
    (tmp_path / "new.json").write_text(json.dumps({"Resources": {"Carts": both["Carts"]}}))
    done = command("rehearse", "new.json", "--against", "old.json", "--scenario", "step")
    assert (done.returncode, done.stderr) == (status, "")
    lines = done.stdout.splitlines()
    assert lines[0] == first
    assert lines[1].startswith("1 table: ")
    # people who look at another table hear nothing of this one
    alone = command("rehearse", "new.json", "--against", "old.json", "--scenario", "step", "--table", "Carts")
    assert (alone.returncode, alone.stdout.startswith("1 table: ")) == (0, True)


def test_accepted_line_does_not_fail_and_one_that_fits_no_line_is_named(command: Command, tmp_path: Path) -> None:
    key = {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}], "BillingMode": "PAY_PER_REQUEST"}
    both = {name: {"Type": "AWS::DynamoDB::Table", "Properties": key} for name in TABLES}
    (tmp_path / "old.json").write_text(json.dumps({"Resources": both}))
    (tmp_path / "new.json").write_text(json.dumps({"Resources": {"Carts": both["Carts"]}}))
    compared = ("rehearse", "new.json", "--against", "old.json", "--scenario", "step")
    done = command(*compared)
    assert (done.returncode, done.stdout.splitlines()[-2]) == (1, "To accept this: --accept removed=orders")
    done = command(*compared, "--accept", "removed=orders", "--accept", "moved=orders")
    assert done.returncode == 0
    first, *_, named, _ = done.stdout.splitlines()
    assert first.startswith("! accepted: orders: removed: CloudFormation deletes it, with its data")
    assert named == "--accept moved=orders: no line has this kind and name"
    document = json.loads(command(*compared, "--accept", "removed=orders", "--accept", "moved=x", "--json").stdout)
    assert [(each["is_accepted"], each["is_finding"]) for each in document["hazards"]] == [(True, False)]
    assert document["accepted_without_line"] == ["moved=x"]
    assert refused(command(*compared, "--accept", "lost=orders")) == (
        "highwater rehearse: --accept lost=orders: is not KIND=TABLE as a line has them, such as "
        "removed=Prod/Shop/Orders; the kinds are removed, replaced, moved, mark-lowered, two-targets, owner-changed, "
        "indexes, replica, capacity, unknown"
    )
    assert refused(command("rehearse", "new.json", "--scenario", "step", "--accept", "removed=orders")) == (
        "highwater rehearse: --accept is for the lines of a comparison; give the older app with --against"
    )


def test_unknown_change_fails_only_on_request(command: Command, tmp_path: Path) -> None:
    def template(name: Any) -> str:
        table = {"TableName": name, "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}
        properties = table | {"BillingMode": "PAY_PER_REQUEST"}
        resources = {"T": {"Type": "AWS::DynamoDB::Table", "Properties": properties}}
        return json.dumps({"Parameters": {"Name": {"Type": "String"}}, "Resources": resources})

    (tmp_path / "old.json").write_text(template("orders"))
    (tmp_path / "new.json").write_text(template({"Ref": "Name"}))
    compared = ("rehearse", "new.json", "--against", "old.json", "--scenario", "step")
    line = (
        "T: whether its name changes is not known: it depends on a parameter without a value; give --parameter "
        "Name=VALUE"
    )
    done = command(*compared)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, f"! {line}")
    assert "unchanged" not in done.stdout
    done = command(*compared, "--fail-on-unknown")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, f"✗ {line}")
    assert command(*compared, "--fail-on-unknown", "--accept", "unknown=T").returncode == 0
    assert "is not known" not in command(*compared, "--parameter", "Name=orders").stdout


def test_template_is_compared_with_its_version_in_a_revision(
    command: Command, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def template(*names: str) -> str:
        key = {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}], "BillingMode": "PAY_PER_REQUEST"}
        return json.dumps({"Resources": {name: {"Type": "AWS::DynamoDB::Table", "Properties": key} for name in names}})

    def git(*arguments: str) -> None:
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *arguments], cwd=tmp_path, check=True)

    file = tmp_path / "stacks" / "shop.json"
    file.parent.mkdir()
    file.write_text(template("Orders", "Carts"))
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "before")
    file.write_text(template("Carts"))
    for path in ("stacks/shop.json", "stacks", str(file)):
        done = command("rehearse", path, "--against", "HEAD", "--scenario", "step")
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.startswith("✗ Orders: removed: CloudFormation deletes it, with its data")
    # git runs where the template is
    elsewhere = Command(tmp_path_factory.mktemp("elsewhere"))
    done = elsewhere("rehearse", str(file), "--against", "HEAD", "--scenario", "step")
    assert (done.returncode, done.stderr) == (1, "")
    (tmp_path / "new.json").write_text(template("Carts"))
    done = command("rehearse", "new.json", "--against", "HEAD", "--scenario", "step")
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / ".gitignore").write_text("new.json\n")
    assert refused(command("rehearse", "new.json", "--against", "HEAD", "--scenario", "step")) == (
        "highwater rehearse: --against HEAD: has no new.json, which git ignores or does not have, and no cdk.json of "
        "an app to synthesize; give the old app's folder or template"
    )
    assert refused(command("rehearse", "new.json", "--against", "", "--scenario", "step")) == (
        "highwater rehearse: --against is empty; give a folder, a template, a Terraform plan or state, or a revision "
        "of git"
    )


def test_plan_of_terraform_is_compared_with_no_revision_of_git(command: Command, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(plan(table(), target())))
    assert refused(command("rehearse", "plan.json", "--against", "main", "--scenario", "step")) == (
        "highwater rehearse: --against main: is no file, and no plan of Terraform is made of a revision of git; "
        "compare with the state that the plan was made from: --against prior"
    )


def test_what_is_no_plan_has_no_prior_state(command: Command, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps(state(table())))
    assert refused(command("rehearse", "state.json", "--against", "prior", "--scenario", "step")) == (
        "highwater rehearse: state.json: is no plan, so it has no prior state; give terraform show -json of a plan"
    )


def test_folder_of_plans_is_compared_with_the_states_before_them(command: Command, tmp_path: Path) -> None:
    for unit, floor in (("orders", 2_900), ("carts", 5)):
        (tmp_path / "plans" / unit).mkdir(parents=True)
        planned = plan(table(name=unit, write_capacity=floor), prior=(table(name=unit),))
        (tmp_path / "plans" / unit / "tfplan.json").write_text(json.dumps(planned))
    done = command("rehearse", "plans", "--against", "prior", "--scenario", "step", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(each["name"] for each in json.loads(done.stdout)["tables"]) == [
        "carts/tfplan.json/aws_dynamodb_table.orders",
        "orders/tfplan.json/aws_dynamodb_table.orders",
    ]


def test_parameter_wins_over_a_file_which_may_have_more(command: Command, tmp_path: Path) -> None:
    units = "{ReadCapacityUnits: !Ref Floor, WriteCapacityUnits: !Ref Floor}"
    (tmp_path / "t.yaml").write_text(
        "Parameters: {Floor: {Type: Number}}\n"
        "Resources:\n  Orders:\n    Type: AWS::DynamoDB::Table\n"
        f"    Properties: {{ProvisionedThroughput: {units}}}\n"
    )
    (tmp_path / "prod.json").write_text('{"Parameters": {"Floor": 70, "Vpc": "vpc-1"}}')
    (tmp_path / "more.yaml").write_text("Floor: 80\n")
    rehearsed = ("rehearse", "t.yaml", "--scenario", "constant", "--mean", "9", "--json")
    costs = [
        json.loads(command(*rehearsed, *given).stdout)["after"]["cost_per_month_usd"]
        for given in (
            ("--parameter", "Floor=70"),
            ("--parameters", "prod.json"),
            ("--parameters", "more.yaml", "--parameters", "prod.json"),
            ("--parameters", "prod.json", "--parameter", "Floor=140"),
        )
    ]
    assert costs[0] == costs[1] == costs[2]
    assert costs[3] > 1.9 * costs[0]
    assert json.loads(command("migrate", "t.yaml", "--parameters", "prod.json", "--json").stdout)["tables"][0][
        "what"
    ] == ("table: read 70 fixed, write 70 fixed")
    assert refused(command("migrate", "t.yaml", "--parameters", "t.toml")) == (
        "highwater migrate: t.toml: cannot be read: No such file or directory"
    )


def test_limits_may_be_set_for_pull_requests_and_merge_requests_too() -> None:
    flags = {name.removeprefix("--") for option in rehearse_command.params for name in option.opts}
    kinds = ("max-", "fail-", "accept")
    limits = {flag for flag in flags if flag.startswith(kinds)}
    assert limits == {name for name in ACTION["inputs"] if name.startswith(kinds)}
    variables = {f"HIGHWATER_{limit.replace('-', '_').upper()}" for limit in limits}
    names = tuple(f"HIGHWATER_{kind.replace('-', '_').upper()}" for kind in kinds)
    assert variables == {name for name in JOB["variables"] if name.startswith(names)}
