"""Which traffic is that of which table: one table and one series, traffic that fits no table, tables without prices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import highwater.core
from tests.command import Command, refused
from tests.template.plans import plan, saved
from tests.template.plans import table as planned_table

ROWS = "".join(f"{minute},{240 + minute}\n" for minute in range(30))
UNNAMED = f"bin_60s,writes\n{ROWS}"
NAMED = "table,bin_60s,writes\n" + "".join(f"carts,{row}\n" for row in ROWS.splitlines())
LABELLED = "Label,carts ConsumedWriteCapacityUnits\n2026/11/02 10:00:00,60\n2026/11/02 10:01:00,66\n"


def _table(name: str | None = None, units: int = 9, **more: Any) -> dict[str, Any]:
    given = {"ProvisionedThroughput": {"ReadCapacityUnits": 7, "WriteCapacityUnits": units}, **more}
    return {"Type": "AWS::DynamoDB::Table", "Properties": given | ({"TableName": name} if name else {})}


def _saved(folder: Path, name: str = "t.json", **resources: dict[str, Any]) -> None:
    (folder / name).write_text(json.dumps({"Resources": resources}))


def _rehearsed(command: Command, *arguments: str) -> dict[str, Any]:
    done = command("rehearse", "t.json", *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


# -- one table and one series


def test_one_table_and_the_only_series_of_a_file_that_names_no_table_belong_together(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "july.csv").write_text(UNNAMED)
    _saved(tmp_path, Orders=_table("orders"))
    note = "july.csv names no table: its traffic is taken as that of Orders"
    (table,) = _rehearsed(command, "--traffic", "july.csv")["tables"]
    assert (table["unknown"], table["notes"]) == (None, [note])
    shown = command("rehearse", "t.json", "--traffic", "july.csv").stdout.splitlines()
    assert shown[2] == f"  ! {note}"
    # one table before and after, and the one that is chosen, are one table
    _saved(tmp_path, "old.json", Before=_table("orders", 11))
    compared = command("rehearse", "t.json", "--traffic", "july.csv", "--against", "old.json", "--json")
    (table,) = json.loads(compared.stdout)["tables"]
    assert (table["unknown"], table["moved_from"], table["notes"]) == (None, "Before", [note])
    _saved(tmp_path, Orders=_table("orders"), Visits=_table())
    (table,) = _rehearsed(command, "--traffic", "july.csv", "--table", "Orders")["tables"]
    assert (table["unknown"], table["notes"]) == (None, [note])
    two = _rehearsed(command, "--traffic", "july.csv")
    assert [each["unknown"] for each in two["tables"]] == [
        "there is no traffic of orders, Orders",
        "there is no traffic of Visits",
    ]
    assert two["traffic_without_table"] == ["july.csv"]


def test_table_that_the_name_of_the_file_is_known_by_needs_no_note(command: Command, tmp_path: Path) -> None:
    (tmp_path / "Orders.csv").write_text(UNNAMED)
    _saved(tmp_path, Orders=_table())
    document = _rehearsed(command, "--traffic", "Orders.csv")
    assert (document["tables"][0]["notes"], document["traffic_without_table"]) == ([], [])


@pytest.mark.parametrize("text", [NAMED, LABELLED], ids=["column", "label"])
def test_file_that_names_another_table_is_named_and_not_taken(command: Command, tmp_path: Path, text: str) -> None:
    (tmp_path / "july.csv").write_text(text)
    _saved(tmp_path, Orders=_table("orders"))
    document = _rehearsed(command, "--traffic", "july.csv")
    assert document["tables"][0]["unknown"] == "there is no traffic of orders, Orders"
    assert document["traffic_without_table"] == ["table carts of july.csv"]
    line = "! this traffic fits no table, and is not used: table carts of july.csv."
    assert line in command("rehearse", "t.json", "--traffic", "july.csv").stdout.splitlines()
    for name in ("simulate", "recommend"):
        assert refused(command(name, "t.json", "--traffic", "july.csv")) == (
            f"highwater {name}: july.csv: has traffic of table carts alone, which is another; if it is meant, give "
            "--traffic-table carts"
        )
        assert command(name, "t.json", "--traffic", "july.csv", "--traffic-table", "carts").returncode == 0


def test_one_table_takes_the_only_series_in_simulate_and_recommend(command: Command, tmp_path: Path) -> None:
    (tmp_path / "july.csv").write_text(UNNAMED)
    _saved(tmp_path, Orders=_table("orders"), Visits=_table())
    for name in ("simulate", "recommend"):
        done = command(name, "t.json", "--traffic", "july.csv", "--table", "Orders", "--json")
        assert (done.returncode, done.stderr) == (0, ""), name


# -- traffic that fits nothing


def test_traffic_that_fits_no_table_is_listed(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "traffic"
    folder.mkdir()
    for name in ("Orders", "logs"):
        (folder / f"{name}.csv").write_text(UNNAMED)
    (folder / "more.csv").write_text(NAMED)
    _saved(tmp_path, Orders=_table(), Visits=_table())
    listed = ["table carts of traffic/more.csv", "traffic/logs.csv"]
    line = f"! this traffic fits no table, and is not used: {', '.join(listed)}."
    given = ("--traffic", "traffic")
    assert line in command("rehearse", "t.json", *given).stdout.splitlines()
    assert _rehearsed(command, *given)["traffic_without_table"] == listed
    assert line in command("recommend", "t.json", *given).stdout.splitlines()
    document = json.loads(command("recommend", "t.json", *given, "--json").stdout)
    assert document["traffic_without_table"] == listed
    one = command("recommend", "t.json", *given, "--table", "Orders")
    assert one.stderr.splitlines()[0] == line.removeprefix("! ").removesuffix(".")
    # that of a table which is not chosen fits one all the same
    (folder / "Visits.csv").write_text(UNNAMED)
    assert _rehearsed(command, *given, "--table", "Orders")["traffic_without_table"] == listed
    markdown = command("rehearse", "t.json", *given, "--format", "markdown").stdout
    assert f"<sub>this traffic fits no table, and is not used: {', '.join(listed)}.</sub>" in markdown
    command("rehearse", "t.json", *given, "--html", "app.html")
    assert "table carts of traffic/more.csv, traffic/logs.csv" in (tmp_path / "app.html").read_text()


def test_long_list_of_traffic_is_cut(command: Command, tmp_path: Path) -> None:
    rows = "".join(f"table-{number:02},0,60\ntable-{number:02},1,66\n" for number in range(13))
    (tmp_path / "all.csv").write_text(f"table,bin_60s,writes\n{rows}")
    _saved(tmp_path, Orders=_table())
    line = command("rehearse", "t.json", "--traffic", "all.csv").stdout.splitlines()[2]
    assert line.endswith(", table table-09 of all.csv and 3 more.")


def test_export_of_the_console_is_that_of_the_table_before_its_zone(command: Command, tmp_path: Path) -> None:
    text = "Label,ConsumedWriteCapacityUnits\n2026/11/02 10:00:00,60\n2026/11/02 10:01:00,66\n"
    folder = tmp_path / "traffic"
    folder.mkdir()
    for name in ("carts", "orders"):
        (folder / f"{name}-UTC+2.csv").write_text(text)
    _saved(tmp_path, Carts=_table("carts"), Orders=_table("orders"))
    document = _rehearsed(command, "--traffic", "traffic")
    assert [each["unknown"] for each in document["tables"]] == [None, None]
    assert document["traffic"] == "0.0 days from Mon 2026-11-02 08:00 UTC"


def test_note_on_every_file_is_printed_once(command: Command, tmp_path: Path) -> None:
    text = "Label,ConsumedWriteCapacityUnits\n2026/11/02 10:00:00,60\n2026/11/02 10:01:00,66\n"
    folder = tmp_path / "traffic"
    folder.mkdir()
    names = ("A", "B", "C", "D", "E")
    for name in names:
        (folder / f"{name}{'' if name == 'A' else '-UTC+2'}.csv").write_text(text)
    _saved(tmp_path, "t.json", **{name: _table() for name in names})
    lines = command("rehearse", "t.json", "--traffic", "traffic").stdout.splitlines()
    assert [line for line in lines if "!" in line] == [
        "  ! traffic/A.csv: the file's name does not end with a zone such as -UTC+2.csv: times are read as UTC",
        "! A, B, C and 2 more: the file does not tell its statistic: values are taken as sums",
        "! A, B, C and 2 more: the file does not tell its period: it is taken as 60 s, the shortest distance between "
        "two datapoints",
    ]
    notes = [each["notes"] for each in _rehearsed(command, "--traffic", "traffic")["tables"]]
    assert [len(each) for each in notes] == [3, 2, 2, 2, 2], "machines get all"


# -- names and regions that are not there


def test_table_that_is_not_there_is_said_before_its_traffic(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "traffic"
    folder.mkdir()
    for name in ("carts", "logs", "users"):
        (folder / f"{name}.csv").write_text(UNNAMED)
    _saved(tmp_path, Orders=_table(), Visits=_table())
    for name in ("simulate", "rehearse", "recommend", "migrate"):
        given = () if name == "migrate" else ("--traffic", "traffic")
        message = f"highwater {name}: there is no table 'Ordrs'; the tables are Orders, Visits"
        assert refused(command(name, "t.json", "--table", "Ordrs", *given)) == message


@pytest.mark.parametrize("name", ["rehearse", "simulate", "recommend", "migrate"])
def test_parameter_that_no_template_has_is_refused_by_every_command(
    command: Command, tmp_path: Path, name: str
) -> None:
    body = {"Parameters": {"Stage": {"Type": "String", "Default": "x"}}, "Resources": {"A": _table(), "B": _table()}}
    (tmp_path / "t.json").write_text(json.dumps(body))
    (tmp_path / "p.json").write_text('{"Vpc": "vpc-1"}')
    given = () if name == "migrate" else ("--scenario", "constant")
    one = ("--table", "A") if name == "simulate" else ()
    assert refused(command(name, "t.json", *given, *one, "--parameter", "Stge=PROD")) == (
        f"highwater {name}: --parameter Stge: the templates have no such parameter; they have Stage"
    )
    assert command(name, "t.json", *given, *one, "--parameters", "p.json").returncode == 0


def test_parameter_of_one_of_two_compared_templates_is_taken(command: Command, tmp_path: Path) -> None:
    _saved(tmp_path, "old.json", Orders=_table())
    units = {"ReadCapacityUnits": 7, "WriteCapacityUnits": {"Ref": "Units"}}
    body = {
        "Parameters": {"Units": {"Type": "Number"}},
        "Resources": {"Orders": _table(ProvisionedThroughput=units)},
    }
    (tmp_path / "t.json").write_text(json.dumps(body))
    options = ("--against", "old.json", "--scenario", "constant", "--parameter", "Units=13")
    (orders,) = _rehearsed(command, *options)["tables"]
    assert orders["declared_changes"] == ["write 9 units → 13 units"]


def test_region_without_prices_makes_its_table_unknown_and_no_other(command: Command, tmp_path: Path) -> None:
    spread = {
        "Type": "AWS::DynamoDB::GlobalTable",
        "Properties": {
            "BillingMode": "PAY_PER_REQUEST",
            "Replicas": [{"Region": "us-east-1"}, {"Region": "xx-new-1"}],
        },
    }
    _saved(tmp_path, Plain=_table(), Spread=spread)
    why = (
        "prices.json: has no prices of region 'xx-new-1', only of af-south-1, ap-east-1, ap-east-2, ap-northeast-1, "
        "ap-northeast-2, ap-northeast-3 and 30 more; make a file that has them with highwater prices --fetch, and give "
        "it with --prices"
    )
    given = ("--scenario", "constant", "--mean", "50")
    plain, other = _rehearsed(command, *given)["tables"]
    assert (plain["unknown"], other["unknown"]) == (None, why)
    assert plain["after"]["cost_per_month_usd"] > 1
    done = command("recommend", "t.json", *given)
    assert f"! Spread: unknown: {why}." in done.stdout.splitlines()
    assert (done.returncode, done.stdout.startswith("Plain: now ")) == (0, True)
    # of one table, and of all by an option, it is misuse
    for arguments in (("simulate", "--table", "Spread"), ("rehearse", "--price-region", "xx-new-1")):
        name, *more = arguments
        assert refused(command(name, "t.json", *given, *more)) == f"highwater {name}: {why}"


def test_region_of_the_tables_is_all_that_a_file_of_prices_needs(command: Command, tmp_path: Path) -> None:
    prices = json.loads(Path(highwater.core.__file__).with_name("prices.json").read_text())
    regions = {"eu-west-1": prices["regions"]["eu-west-1"]}
    (tmp_path / "mine.json").write_text(json.dumps(prices | {"regions": regions}))
    saved(tmp_path, plan(planned_table(region="eu-west-1")), "t.json")
    (orders,) = _rehearsed(command, "--scenario", "constant", "--prices", "mine.json")["tables"]
    assert orders["unknown"] is None
