"""`highwater recommend` as people and machines use it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from highwater.core import Dimension
from highwater_lab.commands.recommend import verdict
from highwater_lab.recommend import Recommendation, Rule
from highwater_lab.recommend.candidates import Candidate, plan_of
from highwater_lab.recommend.days import Rise
from highwater_lab.simulation.run import percent_text
from tests.command import SCRIPT, Command, refused
from tests.template.plans import plan, table


def test_plan_is_printed_as_code_that_can_be_copied(command: Command, tmp_path: Path) -> None:
    done = command("recommend", "--scenario", "constant", "--html", "t.html", "--png", "curve.png", "--save", "t.csv")
    assert (done.returncode, done.stderr) == (0, "")
    table, code = done.stdout.split("\n\n", 1)
    assert "←" in table
    assert "plans simulated; the cheapest that throttles at most 0.01 %:" in table
    assert code.startswith("from aws_cdk import aws_dynamodb as dynamodb\nfrom cdk_highwater import ")
    assert "HighWaterTable(" in code
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "t.html").read_text()
    assert f"<p class='verdict'>{done.stdout.splitlines()[0]}</p>" in page
    assert "<p>Mon 2026-11-02 00:00 to Mon 2026-11-02 04:00 UTC; prices of us-east-1, 2026-11</p>" in page
    rows = [line.split()[0] for line in table.splitlines()]
    assert {"on-demand", "highwater-floor:", "highwater-floor-pulse:", "highwater-direct-pulse:"} <= set(rows)
    again = command("recommend", "--traffic", "t.csv")
    assert again.stdout == done.stdout.replace("written: t.html\nwritten: curve.png\n", "")


PLAN = Candidate(plan=plan_of(None, None, ()), cost_per_month=588.0, throttled_percent=0.004, utilization_percent=71.0)
CHEAPER = replace(PLAN, cost_per_month=557.0, throttled_percent=0.024)
ON_DEMAND = Candidate(plan=None, cost_per_month=1_039.0, throttled_percent=0.0, utilization_percent=None)
FOUND = Recommendation(
    best=PLAN,
    is_within_limit=True,
    curve=(CHEAPER, PLAN, ON_DEMAND),
    tried=9,
    was_stopped=False,
    on_demand=ON_DEMAND,
    units_per_month=12.5e9,
)


STEP = (
    "the last step costs 31.00 USD a month and throttles 0.02 % of the units less: 12.40 USD for a million units that "
    "are "
    "not throttled"
)
# requests on demand at 0.125 and 0.625 USD a million; a hundred of them for a throttled unit
PRICES = {Dimension.READ: 0.125e-6, Dimension.WRITE: 0.625e-6}
PRICED = "62.50 USD for a million throttled writes and 12.50 USD for a million throttled reads"


def test_first_lines_compare_with_on_demand_and_price_the_last_step() -> None:
    assert verdict(FOUND, Rule()) == (
        ["on demand: 1,039 USD a month, 0 % throttled; fixed: 588 USD a month, <0.01 % throttled, 451 less", STEP],
        PLAN,
    )
    assert verdict(replace(FOUND, best=ON_DEMAND, curve=(ON_DEMAND,)), Rule()) == (
        ["on demand: 1,039 USD a month, 0 % throttled; choose on demand"],
        ON_DEMAND,
    )
    assert verdict(replace(FOUND, on_demand=None), Rule()) == ([], PLAN)
    assert verdict(replace(FOUND, was_stopped=True), Rule(least_gain_usd=2_000)) == ([], PLAN)
    assert verdict(FOUND, Rule(least_gain_usd=451.5)) == (
        ["on demand: 1,039 USD a month, 0 % throttled; choose on demand, as the best costs 451 less (fixed)"],
        ON_DEMAND,
    )


NOW = replace(PLAN, cost_per_month=610.0, throttled_percent=0.002)
THROTTLED = replace(NOW, throttled_percent=3.0, throttled_units={Dimension.WRITE: 4e6})
DEAR = replace(PLAN, cost_per_month=14_658.0)
CROWDED = replace(ON_DEMAND, cost_per_month=2_252.0, throttled_percent=0.1, throttled_units={Dimension.WRITE: 13e6})
MARKED = replace(ON_DEMAND, cost_per_month=2_254.0)


@pytest.mark.parametrize(
    ("more", "rule", "said", "advised"),
    [
        pytest.param(
            {"declared": replace(NOW, throttled_percent=0.4)},
            Rule(),
            "610 USD a month, 0.40 % throttled; fixed: 588 USD a month, <0.01 % throttled, 22.00 less",
            PLAN,
            id="cheaper",
        ),
        pytest.param(
            {"declared": replace(NOW, cost_per_month=600.0)},
            Rule(),
            "600 USD a month, <0.01 % throttled; stays, as the best costs 12.00 less (fixed)",
            replace(NOW, cost_per_month=600.0),
            id="little-cheaper",
        ),
        pytest.param(
            {"declared": replace(NOW, cost_per_month=580.0)},
            Rule(),
            "580 USD a month, <0.01 % throttled; stays",
            replace(NOW, cost_per_month=580.0),
            id="declared-is-the-best",
        ),
        pytest.param(
            {"declared": replace(NOW, cost_per_month=2_000.0), "best": ON_DEMAND},
            Rule(),
            "2,000 USD a month, <0.01 % throttled; on-demand: 1,039 USD a month, 0 % throttled, 961 less",
            ON_DEMAND,
            id="on-demand-is-the-best",
        ),
        pytest.param(
            {
                "declared": replace(THROTTLED, throttled_units={Dimension.WRITE: 300e6}),
                "best": DEAR,
                "on_demand": CROWDED,
            },
            Rule(),
            "610 USD a month, 3.00 % throttled; on-demand: 2,252 USD a month, 0.10 % throttled, 1,642 more, the least "
            "with "
            f"{PRICED}; fixed keeps 0.01 % for 14,658",
            CROWDED,
            id="limit-is-dear-and-on-demand-is-worth-it",
        ),
        pytest.param(
            {
                "declared": replace(THROTTLED, throttled_units={Dimension.WRITE: 300e6}),
                "best": MARKED,
                "on_demand": CROWDED,
                "marked": MARKED,
            },
            Rule(),
            "610 USD a month, 3.00 % throttled; on-demand: 2,254 USD a month, 0 % throttled, 1,644 more, to keep 0.01 "
            "%",
            MARKED,
            id="on-demand-with-a-mark-keeps-it",
        ),
        pytest.param(
            {"declared": THROTTLED, "best": DEAR, "on_demand": CROWDED},
            Rule(),
            "610 USD a month, 3.00 % throttled; stays: fixed keeps 0.01 % for 14,048 more, which is more than "
            + PRICED,
            THROTTLED,
            id="no-change-is-worth-its-price",
        ),
        pytest.param(
            {"declared": THROTTLED, "best": DEAR, "on_demand": CROWDED},
            Rule(is_stated=True),
            "610 USD a month, 3.00 % throttled; fixed: 14,658 USD a month, <0.01 % throttled, 14,048 more, to keep "
            "0.01 "
            "%",
            DEAR,
            id="stated-limit-is-kept",
        ),
        pytest.param(
            {
                "declared": THROTTLED,
                "best": replace(DEAR, throttled_percent=0.05),
                "on_demand": replace(CROWDED, throttled_percent=4.0),
                "is_within_limit": False,
            },
            Rule(is_stated=True),
            "610 USD a month, 3.00 % throttled; fixed: 14,658 USD a month, 0.05 % throttled, 14,048 more; no plan "
            "keeps "
            "0.01 %, this one throttles least",
            replace(DEAR, throttled_percent=0.05),
            id="stated-limit-that-no-plan-keeps",
        ),
        pytest.param(
            {
                "declared": THROTTLED,
                "best": replace(DEAR, throttled_percent=0.05),
                "on_demand": replace(CROWDED, cost_per_month=500.0, throttled_percent=4.0),
                "is_within_limit": False,
            },
            Rule(),
            f"610 USD a month, 3.00 % throttled; stays: no plan keeps 0.01 %, and none is worth {PRICED}",
            THROTTLED,
            id="plan-that-throttles-more-than-declared-is-left-out",
        ),
        pytest.param(
            {"declared": replace(ON_DEMAND, cost_per_month=600.0)},
            Rule(),
            "on demand, 600 USD a month, 0 % throttled; stays, as the best costs 12.00 less (fixed)",
            replace(ON_DEMAND, cost_per_month=600.0),
            id="on-demand-stays",
        ),
        pytest.param(
            {"declared": replace(NOW, cost_per_month=2_000.0), "best": ON_DEMAND, "unknown": (Dimension.READ,)},
            Rule(),
            "2,000 USD a month, <0.01 % throttled; stays",
            replace(NOW, cost_per_month=2_000.0),
            id="mode-stays-where-reads-are-unknown",
        ),
    ],
)
def test_first_line_compares_with_what_is_declared(
    more: dict[str, Any], rule: Rule, said: str, advised: Candidate
) -> None:
    found = replace(FOUND, request_usd=PRICES, **more)
    (first, *_), chosen = verdict(found, rule)
    assert first == f"declared now: {said}"
    assert chosen == advised


JUDGED = replace(PLAN, parts=(0.004, 0.0), once_usd=1.3)


@pytest.mark.parametrize(
    ("more", "notes"),
    [
        pytest.param(
            {"broken": replace(CHEAPER, parts=(0.0, 0.56))},
            [
                "chosen with the last third of the days too: fixed is cheaper, kept 0.01 % before, and throttles 0.56 "
                "% "
                "there"
            ],
            id="broken",
        ),
        pytest.param({"ceiling_usd": 1_613.2}, ["a month at its ceilings would cost 1,613"], id="ceiling"),
        pytest.param(
            {"rise": Rise(datetime(2026, 11, 3, 8, 5, tzinfo=UTC), 13.6)},
            [
                "requests rose 14 times within five minutes (Tue 2026-11-03 08:05 UTC), which auto scaling cannot "
                "follow: in "
                "days that were not seen it may throttle more"
            ],
            id="rise",
        ),
        pytest.param({"remark": "few days"}, ["few days"], id="remark"),
        pytest.param(
            {"best": replace(JUDGED, parts=(0.0, 0.009), throttled_percent=0.003)},
            ["it uses more than half of the limit, and may break it in days that were not seen"],
            id="most-of-the-limit",
        ),
        pytest.param(
            {"unknown": (Dimension.READ,)},
            ["the plan is for writes alone: reads are not in the traffic"],
            id="unknown-without-a-table",
        ),
        pytest.param(
            {"unknown": (Dimension.READ,), "declared": replace(NOW, cost_per_month=2_000.0)},
            ["reads are not in the traffic, so the billing mode is not advised; on demand, writes alone: 1,039"],
            id="unknown-of-a-table",
        ),
    ],
)
def test_notes_follow_the_verdict(more: dict[str, Any], notes: list[str]) -> None:
    found = replace(FOUND, **({"best": JUDGED} | more))
    lines, _ = verdict(replace(found, curve=(found.best,), request_usd=PRICES), Rule())
    own = ["its high-water marks cost 1.30 once"]
    assert sorted(lines[1:]) == sorted([*own, *notes])


def test_arrow_code_and_page_are_those_of_the_verdict(command: Command, tmp_path: Path) -> None:
    options = ("recommend", "--scenario", "constant", "--least-gain", "1000000")
    done = command(*options, "--html", "t.html")
    assert (done.returncode, done.stderr) == (0, "")
    table, code = done.stdout.split("\n\n", 1)
    assert "; choose on demand, as the best costs " in table
    (marked,) = [line for line in table.splitlines() if "←" in line]
    assert marked.startswith("on-demand ←")
    assert table.endswith("plans simulated; none gains enough over on-demand:")
    assert "    capacity=Capacity.on_demand(), " in code
    (row,) = re.findall("<td>[^\n]*?recommended</b>", (tmp_path / "t.html").read_text().replace("<td>", "\n<td>"))
    assert ">on-demand<" in row
    document = json.loads(command(*options, "--json").stdout)
    assert (document["advised"]["summary"], document["advised"]["code"]) == ("on-demand", code.split("written:")[0])
    assert document["best"]["summary"] != "on-demand"


def _app_of(tmp_path: Path, **values: Any) -> tuple[str, ...]:
    (tmp_path / "t.csv").write_text("bin_60s,writes\n" + "".join(f"{minute},6000\n" for minute in range(90)))
    keys: dict[str, Any] = {
        "hash_key": "pk",
        "attribute": [{"name": "pk", "type": "N"}],
        "read_capacity": 9,
        "write_capacity": 3_000,
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan(table(**(keys | values)))))
    return ("recommend", "plan.json", "--traffic", "t.csv")


def test_table_of_an_app_gets_a_row_of_what_it_has_and_code_that_fits_it(command: Command, tmp_path: Path) -> None:
    options = _app_of(tmp_path)
    done = command(*options, "--html", "t.html")
    assert (done.returncode, done.stderr) == (0, "")
    table, code = done.stdout.split("\n\n", 1)
    assert table.startswith("declared now: 1,")
    assert " USD a month, 0 % throttled; write " in table.splitlines()[0]
    (row,) = [line for line in table.splitlines()[1:] if line.startswith("declared now: fixed")]
    assert "stay" not in table
    assert 'orders = dynamodb.Table.from_table_name(stack, "orders", "orders")\nmanage_capacity(\n' in code
    assert "    read=Capacity.fixed(9),\n" in code
    assert "nothing to change: this is declared already" in (tmp_path / "t.html").read_text()
    document = json.loads(command(*options, "--json").stdout)
    assert f"{document['declared']['cost_per_month_usd']:,.2f}" in row
    assert document["declared"]["summary"] == "fixed"
    assert (
        command(*options, "--code", "hcl")
        .stdout.split("\n\n", 1)[1]
        .startswith("# for the resource that declares orders")
    )


def test_table_that_has_the_best_plan_stays(command: Command, tmp_path: Path) -> None:
    options = _app_of(tmp_path, write_capacity=120)
    done = command(*options)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"declared now: [\d.]+ USD a month, 0 % throttled; stays", done.stdout)
    assert done.stdout.endswith("plans simulated; what is declared stays, and there is nothing to change\n")
    (row,) = [line for line in done.stdout.splitlines() if "←" in line]
    assert row.startswith("declared now: fixed ←")
    document = json.loads(command(*options, "--json").stdout)
    assert (document["advised"]["summary"], document["advised"]["code"]) == ("fixed", None)


def test_table_on_demand_stays_on_demand_or_is_switched_to_enough(command: Command, tmp_path: Path) -> None:
    options = _app_of(tmp_path, billing_mode="PAY_PER_REQUEST")
    # what the traffic does not have is unknown, and not zero
    done = command(*options)
    assert done.stdout.startswith("declared now: on demand, 164 USD a month, 0 % throttled; stays\n")
    assert (
        "\nreads are not in the traffic, so the billing mode is not advised; on demand, writes alone: 164\n"
        in done.stdout
    )
    rows = "".join(f"{minute},0,6000\n" for minute in range(90))
    (tmp_path / "t.csv").write_text(f"bin_60s,reads,writes\n{rows}")
    assert "    initial_write_units=" in command(*options).stdout
    kept = command(*options, "--least-gain", "100000")
    assert "; stays, as the best costs " in kept.stdout
    assert (kept.returncode, kept.stderr) == (0, "")


def test_traffic_has_to_be_given(command: Command) -> None:
    assert refused(command("recommend")) == (
        "highwater recommend: give the traffic with exactly one of --traffic FILE, --scenario NAME and "
        "--live-table NAME"
    )


def test_table_of_a_plan_is_priced_with_its_indexes_replicas_and_region(command: Command, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("bin_60s,table,writes\n" + "".join(f"{m},orders,24000\n" for m in range(90)))
    index = {"name": "by_status", "read_capacity": 5, "write_capacity": 6}
    replicas = [{"region_name": "eu-west-1"}, {"region_name": "us-east-1"}]
    tables = (
        table(global_secondary_index=[index], stream_enabled=True, replica=replicas, region="us-west-2"),
        table("aws_dynamodb_table.carts", name="carts"),
    )
    (tmp_path / "plan.json").write_text(json.dumps(plan(*tables)))
    options = ("--traffic", "t.csv", "--traffic-table", "orders", "--json")
    of_table = ("recommend", "plan.json", "--table", "orders", *options)
    done, plain = command(*of_table), command("recommend", *options)
    assert done.returncode == 0, done.stderr
    assert "has 3 replicas: us-west-2 is rehearsed, and all are paid for" in done.stderr
    found, alone = json.loads(done.stdout), json.loads(plain.stdout)
    assert found["prices_region"] == "us-west-2"
    # writes to a table and its index, in two regions at 0.625 USD a million and in one at 0.705
    dollars = found["on_demand"]["cost_per_month_usd"] / alone["on_demand"]["cost_per_month_usd"]
    assert dollars == pytest.approx(2 * (2 * 0.625 + 0.705) / 0.625, rel=1e-3)
    assert "by_status" in str(found["best"]["plan"]["indexes"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--table", "orders"], "--table is for the tables of a template; remove it without TEMPLATE"),
        (
            ["--parameter", "A=b"],
            "--parameter or --parameters is for the tables of a template; remove it without TEMPLATE",
        ),
        (["none"], "none: does not exist; give a cdk.out folder (made by cdk synth) or a template file"),
        (
            ["plan.json", "--table", "x"],
            "there is no table 'x'; the tables are aws_dynamodb_table.orders",
        ),
        (
            ["plan.json", "--traffic", "t.csv"],
            "traffic t has a column reads:by_day, and the indexes of aws_dynamodb_table.orders are none; remove the "
            "column",
        ),
    ],
)
def test_template_that_does_not_fit_is_told(command: Command, tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(plan(table())))
    (tmp_path / "t.csv").write_text("bin_60s,writes,reads:by_day\n0,60,60\n")
    source = () if "--traffic" in options else ("--scenario", "step")
    assert refused(command("recommend", *source, *options)) == f"highwater recommend: {message}"


def test_what_is_bought_already_is_in_the_comparison(command: Command) -> None:
    plain, bought = (
        json.loads(command("recommend", "--scenario", "constant", "--json", *more).stdout)
        for more in ((), ("--reserved-write", "5000", "--savings-plan"))
    )
    assert bought["on_demand"]["cost_per_month_usd"] == pytest.approx(
        0.82 * plain["on_demand"]["cost_per_month_usd"], rel=1e-3
    )
    assert bought["best"]["cost_per_month_usd"] < 0.5 * plain["best"]["cost_per_month_usd"]
    assert bought["gain_usd"] == pytest.approx(
        bought["on_demand"]["cost_per_month_usd"] - bought["best"]["cost_per_month_usd"], abs=0.02
    )


def test_json_is_for_machines(command: Command) -> None:
    document = json.loads(command("recommend", "--scenario", "step", "--max-throttled", "5", "--json").stdout)
    assert document["is_within_limit"]
    assert document["best"]["throttled_percent"] <= 5
    assert document["best"]["plan"]["version"] == 1
    assert document["best"]["code"].startswith("from aws_cdk")
    assert document["curve"]
    # a hundred requests on demand, at 0.125 and 0.625 USD a million
    assert document["scaler_throttle_price_usd_per_million"] == {"read": 12.5, "write": 62.5}


def test_limit_that_nothing_keeps_ends_with_status_1(command: Command) -> None:
    done = command("recommend", "--scenario", "constant", "--mean", "70000", "--max-throttled", "0")
    assert done.returncode == 1
    assert "plans simulated; this one throttles more than 0 %:" in done.stdout
    assert (
        "the scaler spends at most 12.50 USD more than target tracking for a million reads that are not throttled, and "
        "62.50 for a million writes\n"
    ) in done.stdout
    assert done.stderr == (
        "the busiest minute requests 70,000 units/s, above the quota of 40,000 units per table; if your account's "
        "quota is higher, give it with --table-quota\n"
    )
    raised = command("recommend", "--scenario", "constant", "--mean", "70000", "--table-quota", "90000")
    assert (raised.returncode, raised.stderr) == (0, "")
    assert "    table_quota_units=90_000,\n" in raised.stdout


def test_windows_of_a_few_days_say_which_days_they_know(command: Command, tmp_path: Path) -> None:
    minutes = [(day, minute) for day in range(3) for minute in range(1440)]
    rates = [6_000 if 300 <= minute < 345 else 900 for _, minute in minutes]
    lines = "\n".join(f"{number},{rate * 60}" for number, rate in enumerate(rates))
    (tmp_path / "t.csv").write_text(f"bin_60s,writes\n{lines}\n")
    options = ("recommend", "--traffic", "t.csv", "--start", "2026-11-02")
    done = command(*options)
    assert "chosen with the last third of the days too: " in done.stdout
    assert 'days="MON-WED"' in done.stdout
    assert done.stderr == (
        "the windows are on MON, TUE, WED because the traffic has 3.0 days; give a week or more, or add the days that "
        "you know of\n"
    )


def test_search_that_is_interrupted_shows_its_best_so_far(tmp_path: Path) -> None:
    # started in the background, a program inherits interrupts as ignored
    script = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    # a bar is drawn on terminals only, and tells here how far the search is
    terminal, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", script, SCRIPT, "recommend", "--scenario", "daily"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=tmp_path,
        env=os.environ | {"TERM": "xterm"},
        text=True,
    ) as process:
        os.close(theirs)
        drawn = b""
        while not re.search(rb"[1-9]\d? %", drawn):
            drawn += os.read(terminal, 4096)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        output = process.stdout.read()
    os.close(terminal)
    assert "searching" in drawn.decode()
    assert re.match(r"! the search was stopped after \d+ plans; this is the best result so far\n", output)
    assert "from aws_cdk import aws_dynamodb" in output
    assert process.returncode in (0, 1)


@pytest.mark.parametrize(
    ("percent", "text"),
    [(0.0674, "0.067"), (3, "3"), (31.4, "31"), (99.4, "99"), (99.8, "99.8"), (99.97, "100"), (100, "100")],
)
def test_percentage_near_all_has_no_exponent(percent: float, text: str) -> None:
    """Seen under the traffic of NASA's server of 1995, on a table of two units: `1e+02 % throttled`."""
    assert percent_text(percent) == text
