"""`highwater recommend TEMPLATE`: the tables of an app, as people and machines are told of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from highwater.core import Dimension
from highwater_lab.commands.recommend_app import plan_sentence
from highwater_lab.local import LocalCloud
from highwater_lab.recommend import Candidate, Recommendation, Rule
from highwater_lab.recommend.candidates import plan_of
from highwater_lab.rehearse import PlanSum, TablePlan, sum_plans
from tests.command import Command, refused
from tests.template.plans import plan, resource, table

PLAN = Candidate(plan=plan_of(None, None, ()), cost_per_month=588.0, throttled_percent=0.008, utilization_percent=71.0)
NOW = replace(PLAN, cost_per_month=1_204.0, throttled_percent=0.4, throttled_units={Dimension.WRITE: 12e6})
ON_DEMAND = Candidate(plan=None, cost_per_month=1_039.0, throttled_percent=0.0, utilization_percent=None)
FOUND = Recommendation(
    best=PLAN,
    is_within_limit=True,
    curve=(PLAN, ON_DEMAND),
    tried=9,
    was_stopped=False,
    on_demand=ON_DEMAND,
    declared=NOW,
    units_per_month=3e9,
    request_usd={Dimension.READ: 0.125e-6, Dimension.WRITE: 0.625e-6},
)
ORDERS = TablePlan(name="Shop/Orders", stage="", setup=None, found=FOUND)
IDLE = replace(PLAN, cost_per_month=23.0, throttled_percent=0.0)
NOTHING = replace(ON_DEMAND, cost_per_month=0.0)


@pytest.mark.parametrize(
    ("found", "more", "sentence"),
    [
        (
            FOUND,
            {},
            "now 1,204 USD a month, 0.40 % throttled; fixed: 588 USD a month, 0.01 % throttled, 616 less; on demand "
            "1,039.",
        ),
        (
            replace(FOUND, declared=replace(NOW, cost_per_month=600.0, throttled_percent=0.0), best=ON_DEMAND),
            {},
            "now 600 USD a month, 0 % throttled; stays; on demand 1,039.",
        ),
        (
            replace(FOUND, declared=replace(ON_DEMAND, cost_per_month=600.0)),
            {},
            "on demand now 600 USD a month, 0 % throttled; stays, as the best costs 12.00 less (fixed).",
        ),
        (
            replace(FOUND, best=NOTHING, declared=IDLE, on_demand=NOTHING),
            {"is_idle": True},
            "idle, now 23.00 USD a month, 0 % throttled; on-demand: 0.00 USD a month, 0 % throttled, 23.00 less.",
        ),
        (
            replace(
                FOUND,
                best=replace(PLAN, cost_per_month=1_300.0, throttled_percent=0.2),
                is_within_limit=False,
                on_demand=replace(ON_DEMAND, throttled_percent=0.7),
            ),
            {},
            "now 1,204 USD a month, 0.40 % throttled; fixed: 1,300 USD a month, 0.20 % throttled, 96.00 more, the "
            "least with 62.50 USD for a million throttled writes and 12.50 USD for a million throttled reads; no plan "
            "keeps 0.01 %; on demand 1,039, 0.70 % throttled.",
        ),
        (None, {"unknown": "there is no traffic of orders"}, "unknown: there is no traffic of orders."),
    ],
)
def test_line_says_what_is_declared_what_is_best_and_on_demand(
    found: Recommendation | None, more: dict[str, object], sentence: str
) -> None:
    line = plan_sentence(replace(ORDERS, found=found, **more), Rule())  # type: ignore[arg-type]
    assert line == f"Shop/Orders: {sentence}"


def test_sums_weigh_throttles_by_units_and_leave_out_the_unknown() -> None:
    other = replace(FOUND, declared=IDLE, best=ON_DEMAND, units_per_month=1e9)
    tables = [ORDERS, replace(ORDERS, found=other), replace(ORDERS, found=None, unknown="there is no traffic")]
    sums = sum_plans(tables, Rule())
    assert sums.now.usd == 1_227.0
    assert sums.now.throttled_percent == pytest.approx(0.3)
    assert sums.advised.usd == 611.0
    assert sums.advised.throttled_percent == pytest.approx(0.006)
    assert sums.on_demand == PlanSum(2_078.0, 0.0)
    assert (sums.saved_usd, sums.added_usd, sums.left_out) == (616.0, 0.0, 0)
    dearer = replace(FOUND, declared=replace(NOW, cost_per_month=500.0))
    unknown = replace(FOUND, declared=IDLE, unknown=(Dimension.READ,))
    sums = sum_plans([ORDERS, *(replace(ORDERS, found=each) for each in (dearer, unknown))], Rule())
    assert (sums.saved_usd, sums.added_usd, sums.left_out) == (616.0, 88.0, 1)
    assert sums.on_demand.usd == 2_078.0


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """`orders`, which has far too much; `carts`, which is idle; `logs` without traffic; and what is not read."""
    tables = (
        table(write_capacity=3_000),
        table("aws_dynamodb_table.carts", name="carts", read_capacity=31, write_capacity=32),
        table("aws_dynamodb_table.logs", name="logs"),
        resource("aws_dynamodb_table_replica.eu", global_table_arn="arn:aws:dynamodb:us-east-1:1:table/logs"),
    )
    (tmp_path / "plan.json").write_text(json.dumps(plan(*tables)))
    (tmp_path / "traffic").mkdir()
    for name, units in (("orders", 6_000), ("carts", 0)):
        rows = "".join(f"{minute},120,{units}\n" if units else f"{minute},0,0\n" for minute in range(90))
        (tmp_path / "traffic" / f"{name}.csv").write_text(f"minute_index,reads,writes\n{rows}")
    return tmp_path


@pytest.mark.usefixtures("app")
def test_each_table_has_a_line_and_the_sum_leaves_out_the_unknown(command: Command) -> None:
    done = command("recommend", "plan.json", "--traffic", "traffic", COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    notes: list[str] = []
    lines: list[str] = []
    for line in done.stdout.splitlines():
        (notes if line.startswith("  ! ") else lines).append(line)
    assert notes == ["  ! a month at its ceilings would cost 162", "  ! its high-water marks cost 0.14 once"]
    assert sorted(lines[:2]) == [
        "aws_dynamodb_table.carts: idle, now 18.13 USD a month, 0 % throttled; stays, as the best costs 18.13 less "
        "(on-demand).",
        "aws_dynamodb_table.orders: now 1,424 USD a month, 0 % throttled; read 3-9 at 70 %, write 120-340 at 90 %: "
        "58.02 USD a month, 0 % throttled, 1,366 less; on demand 165.",
    ]
    assert lines[2:4] == [
        "! aws_dynamodb_table.logs: unknown: there is no traffic of logs, aws_dynamodb_table.logs.",
        "2 tables, 1 to change: now 1,442 USD a month, 0 % throttled; then 76.15 USD a month, 0 % throttled, 1,366 "
        "saved; all on demand 165. 1 more is unknown, and not in these sums.",
    ]
    not_read, few, commitments = lines[4:]
    assert few == "! 0.1 days of traffic: there is nothing to judge the plan on; give three days or more."
    assert not_read.startswith("! aws_dynamodb_table_replica.eu ")
    assert commitments == (
        "Commitments: not worked out: whole hours of traffic that all tables have in common: 1; 24 are needed"
    )


@pytest.fixture
def steady(tmp_path: Path) -> None:
    """`orders` with 600 writes a second, and `carts` on demand with 70, for 26 hours."""
    carts = table("aws_dynamodb_table.carts", name="carts", billing_mode="PAY_PER_REQUEST")
    (tmp_path / "plan.json").write_text(json.dumps(plan(table(write_capacity=800), carts)))
    (tmp_path / "traffic").mkdir()
    for name, units in (("orders", 36_000), ("carts", 4_200)):
        rows = "".join(f"{minute},{units}\n" for minute in range(26 * 60))
        (tmp_path / "traffic" / f"{name}.csv").write_text(f"minute_index,writes\n{rows}")


@pytest.mark.usefixtures("steady")
def test_commitments_are_those_of_the_advised_plans(command: Command) -> None:
    options = ("recommend", "plan.json", "--traffic", "traffic", "--least-gain", "80")
    done = command(*options, COLUMNS="80")
    lines = done.stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("Commitments"))
    assert lines[first - 2].startswith("2 tables, 0 to change: now 495 USD a month, ")
    # 800 * 0.00065 * 730 are 379.60, of which 1,200 / 12 and 0.1024 * 730 are 174.75; carts are 115 USD of requests
    assert lines[first : first + 14] == [
        "Commitments for these plans, 495 USD a month at list prices, if every hour of a",
        "term is like one of these 26 (1.1 days):",
        "reserved for one year:",
        "  800 write units in us-east-1: 1,200 USD once, 0.1024 an hour",
        "    saves 205 USD a month; saves 78.16 if usage falls by a third",
        "    a unit pays if it is provisioned in 46.0 % of the hours or more",
        "           units                            saves, USD a month",
        "             200  ████████                               51.21",
        "             400  ████████████████                         102",
        "             600  ████████████████████████                 154",
        "             800  ████████████████████████████████         205 ◀",
        "           1,000  █████████████████████████                161",
        "           1,200  ██████████████████                       117",
        "or reserved for three years:",
    ]
    found = json.loads(command(*options, "--json").stdout)["commitments"]
    assert [each["years"] for each in found["offers"]] == [1, 3]
    (reserved,) = found["offers"][0]["reserved"]
    assert reserved["saved_month_usd"] == pytest.approx(800 * 0.00065 * 730 - 1_200 / 12 - 0.1024 * 730, abs=0.01)
    assert (reserved["units"], reserved["curve"][4]) == (800, {"units": 1_000, "saved_month_usd": 161.16})
    # 18 % of the requests of carts are below --least-gain
    assert found["offers"][0]["savings_plan"] is None


@pytest.mark.usefixtures("app")
def test_code_is_that_of_the_tables_that_change(command: Command) -> None:
    done = command("recommend", "plan.json", "--traffic", "traffic", "--code", "cdk", "--reserved-read", "7")
    before, code = done.stdout.split("\n\n", 1)
    assert code.startswith("# aws_dynamodb_table.orders\n")
    assert code.count("manage_capacity(\n") == 1
    assert (
        "! reserved capacity is shared by the tables, and not in these costs; highwater rehearse subtracts it\n"
    ) in before


@pytest.mark.usefixtures("app")
def test_document_has_every_table_and_the_plan_is_that_of_one_table(command: Command) -> None:
    options = ("recommend", "plan.json", "--traffic", "traffic", "--json")
    document = json.loads(command(*options).stdout)
    carts, logs, orders = document["tables"]
    assert [each["table"].rpartition(".")[2] for each in (carts, logs, orders)] == ["carts", "logs", "orders"]
    assert (carts["is_idle"], carts["is_to_change"], carts["advised"]) == (True, False, carts["declared"])
    assert logs == {
        "table": "aws_dynamodb_table.logs",
        "stage": None,
        "unknown": "there is no traffic of logs, aws_dynamodb_table.logs",
        "is_idle": False,
        "notes": [],
    }
    assert document["sums"]["advised"]["cost_per_month_usd"] == pytest.approx(
        orders["best"]["cost_per_month_usd"] + carts["declared"]["cost_per_month_usd"], abs=0.02
    )
    alone = json.loads(command(*options, "--table", "ORDERS").stdout)
    assert {key: alone["best"][key] for key in orders["best"]} == orders["best"]


@pytest.mark.usefixtures("app")
def test_limit_that_a_table_cannot_keep_ends_with_status_1(command: Command) -> None:
    done = command("recommend", "plan.json", "--traffic", "traffic", "--mean", "70000", "--max-throttled", "0")
    assert done.returncode == 1
    assert "; no plan keeps 0 %, this one throttles least" in done.stdout


@pytest.mark.parametrize("option", ["--html", "--png", "--save", "--traffic-table", "--live-table"])
@pytest.mark.usefixtures("app")
def test_option_of_one_table_is_refused_for_several(command: Command, option: str) -> None:
    source = () if option == "--live-table" else ("--traffic", "traffic")
    assert refused(command("recommend", "plan.json", *source, option, "of-one")) == (
        f"highwater recommend: {option} is for one table; remove it here, or choose one with --table"
    )


def test_live_traffic_of_all_is_for_a_template(command: Command) -> None:
    assert refused(command("recommend", "--live")) == (
        "highwater recommend: --live is for the tables of a template; remove it without TEMPLATE"
    )


@pytest.fixture(scope="module")
def cloud() -> Iterator[LocalCloud]:
    """A cloud with `orders`, of which CloudWatch has nothing."""
    with LocalCloud(clock="driven", has_instant_updates=True) as made:
        make: Any = boto3.client
        make("dynamodb", **made.client_arguments()).create_table(
            TableName="orders",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield made


def test_live_traffic_that_cloudwatch_does_not_have_is_unknown(cloud: LocalCloud, app: Path) -> None:
    live = Command(app, cloud.environment())
    nothing = (
        "table 'orders' has no datapoints in the last 14 days, neither of what it consumes nor of provisioned "
        "capacity: whether it is idle is not known"
    )
    done = live("recommend", "plan.json", "--live")
    assert f"! aws_dynamodb_table.orders: unknown: {nothing}.\n" in done.stdout
    assert refused(live("recommend", "plan.json", "--live", "--table", "orders")) == f"highwater recommend: {nothing}"
    assert refused(live("recommend", "plan.json", "--live", "--table", "carts")) == (
        "highwater recommend: CloudWatch has no traffic of aws_dynamodb_table.carts"
    )
