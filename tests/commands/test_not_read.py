"""What an app declares that is not read: said once in every form, compared, and left out by `migrate`."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cdk_cli import ROOT
from tests.command import Command, refused
from tests.template.plans import plan, resource, saved
from tests.template.plans import table as planned_table

STACK_SAID = "More (AWS::CloudFormation::Stack) is a stack whose template is not here, and may make tables"
FLOOR_SAID = "Floor (Custom::Floor) is not read, and may scale Orders"
TWICE_SAID = (
    "Twice (AWS::ApplicationAutoScaling::ScalableTarget) is a second scalable target for writes of the table, beside "
    "Writes: CloudFormation refuses the second; keep one"
)
KEPT = "whether the limits are kept is not known"
TRAFFIC = "bin_60s,table,writes\n0,Orders,300\n0,Carts,240\n1,Orders,360\n1,Carts,180\n"


def _table(units: int) -> dict[str, Any]:
    throughput = {"ReadCapacityUnits": 5, "WriteCapacityUnits": units}
    return {"Type": "AWS::DynamoDB::Table", "Properties": {"ProvisionedThroughput": throughput}}


def _floor(units: int, table: str = "Orders") -> dict[str, Any]:
    return {"Type": "Custom::Floor", "Properties": {"Table": {"Ref": table}, "Units": units}}


def _target(low: int) -> dict[str, Any]:
    properties = {
        "ServiceNamespace": "dynamodb",
        "ResourceId": {"Fn::Sub": "table/${Orders}"},
        "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
        "MinCapacity": low,
        "MaxCapacity": 70,
    }
    return {"Type": "AWS::ApplicationAutoScaling::ScalableTarget", "Properties": properties}


def _stack(number: int) -> dict[str, Any]:
    url = f"https://example.com/{number}.yaml"
    return {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url}}


STACK = _stack(1)
ON_DEMAND = {"Type": "AWS::DynamoDB::Table", "Properties": {"BillingMode": "PAY_PER_REQUEST"}}
VOUCHED = _floor(7) | {"Metadata": {"highwater:scales": False}}


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A folder with traffic of both tables, for templates."""
    (tmp_path / "traffic.csv").write_text(TRAFFIC)
    return tmp_path


def _saved(folder: Path, name: str, **more: dict[str, Any]) -> None:
    """Write a template of `Orders`, with 11 write units, and `Carts`, with 13."""
    resources = {"Orders": _table(11), "Carts": _table(13), **more}
    (folder / name).write_text(json.dumps({"Resources": resources}))


def _rehearsed(command: Command, *options: str, status: int = 0) -> dict[str, Any]:
    """The document of `after.json` compared with `before.json`."""
    against = ("--against", "before.json", "--traffic", "traffic.csv", "--json")
    done = command("rehearse", "after.json", *against, *options)
    assert (done.returncode, done.stderr) == (status, "")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


# -- in every form


def test_remarks_are_said_once_in_text_markdown_page_and_json(command: Command, app: Path) -> None:
    _saved(app, "t.json", Floor=_floor(7), More=STACK, Writes=_target(7), Twice=_target(8))
    said = [FLOOR_SAID, STACK_SAID, TWICE_SAID]
    options = ("rehearse", "t.json", "--traffic", "traffic.csv")
    done = command(*options, "--html", "page.html")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("! ")] == [f"! {each}." for each in said]
    assert lines[0].startswith("2 tables: "), "they are known, and in the sum"
    page = html.unescape((app / "page.html").read_text())
    assert [page.count(f"<p class='note'>{each}.</p>") for each in said] == [1, 1, 1]
    assert [page.count(each) for each in said] == [1, 1, 1]
    markdown = command(*options, "--format", "markdown").stdout.splitlines()
    assert [line for line in markdown if line.startswith("- ") and "is " in line][:3] == [f"- {each}." for each in said]
    document = json.loads(command(*options, "--json").stdout)
    listed = document["not_read"]
    assert [f"{each['where']} {each['what']}" for each in listed] == said
    assert [(each["kind"], each["where"], each["stage"], each["tables"], each["change"]) for each in listed] == [
        ("not read", "Floor (Custom::Floor)", None, ["Orders"], None),
        ("not read", "More (AWS::CloudFormation::Stack)", None, [], None),
        ("two-targets", "Twice (AWS::ApplicationAutoScaling::ScalableTarget)", None, ["Orders"], None),
    ]
    assert [table["unknown"] for table in document["tables"]] == [None, None]


def test_line_that_the_page_of_rehearse_quotes_is_printed(command: Command, app: Path) -> None:
    instructions = [{"ServiceNamespace": "dynamodb", "ResourceId": {"Fn::Sub": "table/${Orders}"}}]
    properties = {"ScalingInstructions": instructions}
    _saved(app, "t.json", Plan={"Type": "AWS::AutoScalingPlans::ScalingPlan", "Properties": properties})
    quoted = re.findall(r"^> (! .+)$", (ROOT / "docs" / "rehearse.md").read_text(), re.MULTILINE)
    printed = command("rehearse", "t.json", "--traffic", "traffic.csv").stdout.splitlines()
    assert [line for line in printed if line.startswith("! ")] == quoted


def test_one_table_has_its_remarks_among_its_notes(command: Command, app: Path) -> None:
    _saved(app, "t.json", Floor=_floor(7), Other=_floor(8, "Carts"), More=STACK)
    done = command("simulate", "t.json", "--table", "Orders", "--traffic", "traffic.csv", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["notes"] == [FLOOR_SAID, STACK_SAID]
    shown = " ".join(command("simulate", "t.json", "--table", "Orders", "--traffic", "traffic.csv").stdout.split())
    assert (shown.count(FLOOR_SAID), shown.count("Other (Custom::Floor)")) == (1, 0)


def test_only_the_remarks_on_a_chosen_table_and_on_none_are_said(command: Command, app: Path) -> None:
    _saved(app, "t.json", Floor=_floor(7), Other=_floor(8, "Carts"), More=STACK)
    done = command("rehearse", "t.json", "--table", "Carts", "--traffic", "traffic.csv")
    lines = [line for line in done.stdout.splitlines() if line.startswith("! ")]
    assert lines == ["! Other (Custom::Floor) is not read, and may scale Carts.", f"! {STACK_SAID}."]


def test_app_of_nothing_but_what_is_not_read_is_rehearsed(command: Command, app: Path) -> None:
    (app / "t.json").write_text(json.dumps({"Resources": {"More": STACK}}))
    done = command("rehearse", "t.json", "--traffic", "traffic.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == [f"! {STACK_SAID}.", "no traffic; no prices"]


# -- compared


def _changes(name: str, before: dict[str, Any], after: dict[str, Any]) -> list[Any]:
    """The three ways in which a resource differs between two templates."""
    old, new = {name: before}, {name: after}
    return [(old, new, "changed"), ({}, new, "added"), (old, {}, "removed")]


@pytest.mark.parametrize(("before", "after", "change"), _changes("Floor", _floor(7), _floor(9)))
def test_table_that_is_named_by_what_differs_is_unknown_and_limits_are_not_known(
    command: Command, app: Path, before: dict[str, Any], after: dict[str, Any], change: str
) -> None:
    _saved(app, "before.json", **before)
    _saved(app, "after.json", **after)
    why = f"{FLOOR_SAID}; it is {change}"
    document = _rehearsed(command)
    carts, orders = document["tables"]
    assert (carts["unknown"], carts["change"]) == (None, "unchanged")
    assert (orders["unknown"], orders["change"], orders["after"]) == (why, "changed", None)
    assert [each["change"] for each in document["not_read"]] == [change]
    assert document["passed"] == []
    for option in ("--max-cost", "--max-throttled", "--max-cost-rise", "--max-throttled-rise"):
        limit = "100" if "throttled" in option else "9999"
        assert _rehearsed(command, option, limit, status=1)["passed"] == ["not-read"]
    options = ("--against", "before.json", "--traffic", "traffic.csv", "--max-cost", "9999", "--html", "page.html")
    shown = command("rehearse", "after.json", *options).stdout.splitlines()
    assert shown[-1] == f"✗ {why}; {KEPT}"
    assert [line for line in shown if line.startswith("!")] == [f"! Orders: unknown: {why}."], "once"
    page = html.unescape((app / "page.html").read_text())
    assert [page.count(each) for each in (why, f"<p class='note'>Orders: unknown: {why}.</p>")] == [2, 1]
    markdown = command("rehearse", "after.json", *options, "--format", "markdown").stdout.splitlines()
    assert f"- ❌ {why}; {KEPT}" in markdown
    assert markdown[0] == "<!-- highwater:: -->", "a comment is due"
    assert _rehearsed(command, "--fail-on-unknown", status=1)["passed"] == ["unknown"]


@pytest.mark.parametrize(("before", "after", "change"), _changes("More", STACK, _stack(2)))
def test_sums_are_not_all_that_differs_where_what_differs_names_no_table(
    command: Command, app: Path, before: dict[str, Any], after: dict[str, Any], change: str
) -> None:
    _saved(app, "before.json", **before)
    _saved(app, "after.json", **after)
    why = f"{STACK_SAID}; it is {change}"
    document = _rehearsed(command)
    assert [table["unknown"] for table in document["tables"]] == [None, None]
    assert [(each["tables"], each["change"]) for each in document["not_read"]] == [([], change)]
    options = ("--against", "before.json", "--traffic", "traffic.csv", "--max-cost-rise", "9999", "--html", "page.html")
    done = command("rehearse", "after.json", *options)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].endswith(" What is not read differs, so that these sums are not all that differs.")
    assert f"! {why}." in lines
    assert lines[-1] == f"✗ {why}; {KEPT}"
    assert f"<p class='limit'>✗ {why}; {KEPT}</p>" in html.unescape((app / "page.html").read_text())


def test_what_is_not_read_but_equal_exceeds_no_limit(command: Command, app: Path) -> None:
    for name in ("before.json", "after.json"):
        _saved(app, name, Floor=_floor(7), More=STACK)
    document = _rehearsed(command, "--max-cost", "9999", "--max-cost-rise", "0", "--max-throttled-rise", "0")
    assert document["passed"] == []
    assert [(each["where"], each["change"]) for each in document["not_read"]] == [
        ("Floor (Custom::Floor)", None),
        ("More (AWS::CloudFormation::Stack)", None),
    ]
    markdown = command(
        *("rehearse", "after.json", "--against", "before.json", "--traffic", "traffic.csv", "--format", "markdown")
    ).stdout
    assert markdown.startswith("<!-- highwater::: unchanged -->\n"), "no comment is due"


def test_second_target_that_is_new_is_said_once_and_refused_by_aws(command: Command, app: Path) -> None:
    _saved(app, "before.json", Writes=_target(7))
    _saved(app, "after.json", Writes=_target(7), Twice=_target(7))
    document = _rehearsed(command, "--max-cost", "9999", status=1)
    what, _, fix = TWICE_SAID.rpartition("; ")
    assert [(each["consequence"], each["what"], each["fix"]) for each in document["hazards"]] == [
        ("refused", what, fix)
    ]
    assert (document["not_read"], document["passed"], document["tables"][1]["unknown"]) == ([], [], None)
    shown = command("rehearse", "after.json", "--against", "before.json", "--traffic", "traffic.csv").stdout
    assert (shown.count(TWICE_SAID), shown.splitlines()[0]) == (1, f"✗ Orders: {TWICE_SAID}")


def test_what_names_another_table_than_before_makes_both_unknown(command: Command, app: Path) -> None:
    _saved(app, "before.json", Floor=_floor(7, "Carts"))
    _saved(app, "after.json", Floor=_floor(7, "Orders"))
    why = f"{FLOOR_SAID}; it is changed"
    assert [table["unknown"] for table in _rehearsed(command)["tables"]] == [why, why]


def test_what_differs_of_another_table_than_the_chosen_one_exceeds_no_limit(command: Command, app: Path) -> None:
    _saved(app, "before.json")
    _saved(app, "after.json", Floor=_floor(9))
    assert _rehearsed(command, "--table", "Carts", "--max-cost", "9999")["not_read"] == []
    assert _rehearsed(command, "--table", "Orders", "--max-cost", "9999", status=1)["passed"] == ["not-read"]


def test_what_differs_in_a_plan_of_terraform_is_compared_with_the_prior_state(command: Command, app: Path) -> None:
    orders = planned_table(name="Orders")
    more = resource("awscc_dynamodb_table.more", table_name="more")
    saved(app, plan(orders, more, prior=(orders,)))
    done = command("rehearse", "plan.json", "--against", "prior", "--traffic", "traffic.csv", "--max-cost-rise", "9")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        f"✗ awscc_dynamodb_table.more is not read, and may make tables; it is added; {KEPT}"
    )


# -- migrate


def test_table_that_something_unread_may_scale_is_left_out_by_migrate(command: Command, app: Path) -> None:
    _saved(app, "t.json", Floor=_floor(7), More=STACK)
    document = json.loads(command("migrate", "t.json", "--json").stdout)
    orders, carts = document["tables"]
    left_out = f"is left out: {FLOOR_SAID}. Code made without that could lower its capacity"
    assert (orders["what"], orders["code"], orders["steps"]) == (left_out, None, [])
    assert carts["code"] is not None
    assert document["not_read"] == [FLOOR_SAID, STACK_SAID]
    text = command("migrate", "t.json").stdout.splitlines()
    assert text[0] == f"Orders: {left_out}"
    assert text[-2:] == [f"! {FLOOR_SAID}.", f"! {STACK_SAID}."]
    only = json.loads(command("migrate", "t.json", "--table", "Carts", "--json").stdout)
    assert only["not_read"] == [STACK_SAID]


def test_what_is_vouched_for_leaves_no_table_out_and_who_vouched_is_printed(command: Command, app: Path) -> None:
    _saved(app, "t.json", Floor=_floor(7))
    (orders, _) = json.loads(command("migrate", "t.json", "--json").stdout)["tables"]
    assert orders["notes"] == ["if it does not scale the table, say so with --no-scaling Floor"]
    by_option = "Floor (Custom::Floor) is not read, and names Orders; --no-scaling Floor says that it does not scale"
    document = json.loads(command("migrate", "t.json", "--no-scaling", "Floor", "--json").stdout)
    assert (document["tables"][0]["code"] is None, document["not_read"]) == (False, [by_option])
    _saved(app, "m.json", Floor=_floor(7) | {"Metadata": {"highwater:scales": False}})
    by_metadata = by_option.replace("--no-scaling Floor", "its metadata highwater:scales")
    document = json.loads(command("migrate", "m.json", "--json").stdout)
    assert (document["tables"][0]["code"] is None, document["not_read"]) == (False, [by_metadata])
    traffic = ("--traffic", "traffic.csv")
    assert f"! {by_option}." in command("rehearse", "t.json", *traffic, "--no-scaling", "Floor").stdout.splitlines()
    assert f"! {by_metadata}." in command("recommend", "m.json", *traffic).stdout.splitlines()
    one = ("--table", "Orders", *traffic, "--no-scaling", "Floor")
    for name in ("simulate", "recommend"):
        done = command(name, "t.json", *one)
        assert by_option in " ".join((done.stdout + done.stderr).split()), name
    for name in ("migrate", "rehearse", "simulate", "recommend"):
        given = () if name == "migrate" else traffic
        message = f"highwater {name}: --no-scaling Flor: the templates have no such resource that may scale a table; "
        assert refused(command(name, "t.json", *given, "--no-scaling", "Flor")) == f"{message}they have Floor"


@pytest.mark.parametrize(
    ("before", "after", "options", "unknown"),
    [
        pytest.param({"Floor": _floor(7)}, {"Floor": VOUCHED}, (), False, id="vouched for since"),
        pytest.param({}, {"Floor": VOUCHED}, (), False, id="added with it"),
        pytest.param({"Floor": VOUCHED}, {}, (), False, id="removed with it"),
        pytest.param({"Floor": _floor(6)}, {"Floor": _floor(7)}, ("--no-scaling", "Floor"), False, id="by the option"),
        pytest.param({"Floor": VOUCHED}, {"Floor": _floor(9)}, (), True, id="changed, and no longer"),
        pytest.param(
            {"Orders": ON_DEMAND, "Floor": _floor(7)}, {"Floor": _floor(7)}, (), False, id="provisioned since"
        ),
    ],
)
def test_what_does_not_scale_is_no_change(
    command: Command,
    app: Path,
    before: dict[str, Any],
    after: dict[str, Any],
    options: tuple[str, ...],
    unknown: bool,
) -> None:
    _saved(app, "before.json", **before)
    _saved(app, "after.json", **after)
    orders = next(each for each in _rehearsed(command, *options)["tables"] if each["name"] == "Orders")
    assert (orders["unknown"] is not None) is unknown
