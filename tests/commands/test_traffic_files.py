"""`highwater traffic`: files of live tables' traffic, told before they are paid for, and shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.traffic import read_traffic_by_table
from tests.command import Command, refused

pytestmark = pytest.mark.xdist_group("cloud-scaler")
TEMPLATE = """\
Resources:
  Orders:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: orders
      ProvisionedThroughput: {ReadCapacityUnits: 5, WriteCapacityUnits: 6}
"""
MANY = "table;timestamp;reads;Host\norders;2026-11-02T10:00Z;60,5;a\ncarts;2026-11-02T10:00Z;7;a\n"
MANY += "orders;2026-11-02T10:03Z;120;a\norders;2026-11-02T10:01Z;0;a\n"


@pytest.fixture
def many(tmp_path: Path) -> Path:
    (tmp_path / "t.yaml").write_text(TEMPLATE)
    path = tmp_path / "many.csv"
    path.write_text(MANY)
    return path


@pytest.mark.usefixtures("many")
def test_file_is_shown_by_table(command: Command) -> None:
    done = command("traffic", "show", "many.csv", COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "2 tables, 2026-11-02 10:00 to 2026-11-02 10:04 UTC (4m): 188 read units and 0 write units; 1 with gaps",
        "units  reads/s  writes/s  peak/s  peak/mean  table",
        "  181     1.01      0.00    2.00        2.0  orders: 1 missing",
        "    7     0.12      0.00    0.12        1.0  carts",
        "--table NAME shows one of them with its notes; in all 2 notes",
    ]


@pytest.mark.parametrize("name", ["orders", "ORDERS", "Shop/Orders"])
@pytest.mark.usefixtures("many")
def test_one_table_is_shown_by_any_of_its_names(command: Command, name: str) -> None:
    done = command("traffic", "show", "many.csv", "--table", name, COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.rstrip() for line in done.stdout.splitlines()] == [
        "orders: 2026-11-02 10:00 to 2026-11-02 10:04 UTC (4m), bins of 1m, 1 missing",
        "units/s  mean   p99  peak  peak/mean",
        "reads    1.01  2.00  2.00        2.0  ▅▁ █",
        "! many.csv: ignored columns: 'Host'",
        "! many.csv: no rows for 1 of 4 bins of table orders, the first at 2026-11-02T10:02:00Z: they are unknown, and "
        "simulated as between their neighbours",
    ]


def test_idle_and_unknown_tables_come_last_and_pictures_fit_the_terminal(command: Command, tmp_path: Path) -> None:
    (tmp_path / "traffic").mkdir()
    rows = "".join(f"{minute},{60_000_000 + minute},7\n" for minute in range(120))
    (tmp_path / "traffic" / "busy.csv").write_text(f"minute_index,reads:by_customer,writes\n{rows}")
    (tmp_path / "traffic" / "a-idle.csv").write_text("minute_index,writes\n0,0\n")
    (tmp_path / "traffic" / "a-new.csv").write_text("minute_index,writes\n")
    done = command("traffic", "show", "traffic")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "3 tables, 2026-11-02 00:00 to 2026-11-02 02:00 UTC (2h): 7,200,007,140 read units and 840 write units; 1 "
        "idle; 1 unknown",
        "        units       reads/s  writes/s        peak/s  peak/mean  table",
        "7,200,007,980  1,000,000.99      0.12  1,000,001.98        1.0  busy",
        "            0          0.00      0.00          0.00             a-idle: idle",
        "                                                                a-new: unknown",
        "--table NAME shows one of them with its notes; in all 1 note",
    ]
    shown = command("traffic", "show", "traffic", "--table", "busy", COLUMNS="80").stdout
    assert "…" not in shown
    assert max(map(len, shown.splitlines()[1:])) <= 80
    new = command("traffic", "show", "traffic", "--table", "a-new")
    assert new.stdout == "! traffic/a-new.csv: has a header but no rows; add one row per bin\n"


def test_one_table_is_shown_as_json(command: Command, many: Path) -> None:
    done = command("traffic", "show", "-", "--table", "orders", "--json", given=many.read_text())
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "tables": {
            "orders": {
                "start": "2026-11-02T10:00:00+00:00",
                "end": "2026-11-02T10:04:00+00:00",
                "minutes": 4,
                "bin_seconds": 60,
                "gaps": [{"start": "2026-11-02T10:02:00+00:00", "bins": 1}],
                "notes": [
                    "standard input: ignored columns: 'Host'",
                    "standard input: no rows for 1 of 4 bins of table orders, the first at 2026-11-02T10:02:00Z: they "
                    "are unknown, and simulated as between their neighbours",
                ],
                "units_per_second": {
                    "reads": {"units": 181, "mean": 1.0056, "p99": 2, "peak": 2, "peak_to_mean": 1.989}
                },
            }
        }
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("traffic", "show", "none.csv"),
            "traffic show: none.csv: cannot be read: No such file or directory; give a CSV, JSON or Parquet file",
        ),
        (
            ("traffic", "show", "many.csv", "--table", "order"),
            "traffic show: many.csv: has no traffic of table 'order'; it has carts, orders",
        ),
        (("traffic", "fetch"), "traffic fetch: give the names of tables, or --all"),
        (("traffic", "fetch", "orders", "--all"), "traffic fetch: give the names of tables or --all, not both"),
        (
            ("traffic", "fetch", "--all"),
            "traffic fetch: the tables: no region is set; give --region, or set AWS_REGION",
        ),
        (
            ("recommend", "--scenario", "step", "--traffic-table", "orders"),
            "recommend: --traffic-table is of --traffic, and chooses one of the tables of its file; remove it",
        ),
        (
            ("recommend", "--traffic", "many.csv"),
            "recommend: many.csv: has traffic of 2 tables, carts, orders; choose one with --traffic-table NAME",
        ),
    ],
)
@pytest.mark.usefixtures("many")
def test_command_line_that_cannot_be_is_told(command: Command, arguments: tuple[str, ...], message: str) -> None:
    assert refused(command(*arguments)) == f"highwater {message}"


@pytest.mark.usefixtures("many")
def test_simulate_takes_the_table_that_it_is_for_and_prints_the_notes(command: Command) -> None:
    done = command("simulate", "t.yaml", "--traffic", "many.csv", "--table", "Orders", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["traffic"]["name"] == "orders"
    assert done.stderr.splitlines() == [
        "many.csv: ignored columns: 'Host'",
        "many.csv: no rows for 1 of 4 bins of table orders, the first at 2026-11-02T10:02:00Z: they are unknown, and "
        "simulated as between their neighbours",
    ]
    done = command("simulate", "t.yaml", "--traffic", "many.csv", "--traffic-table", "carts", "--json")
    assert json.loads(done.stdout)["traffic"]["name"] == "carts"


def test_simulate_finds_the_traffic_of_a_table_by_the_name_that_cloudformation_generated(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "t.yaml").write_text(TEMPLATE.replace("      TableName: orders\n", ""))
    folder = tmp_path / "traffic"
    folder.mkdir()
    names = {"Shop-Orders-1F6H4LDFTFI3O": 300, "Shop-Carts-QHOIR25MRDJL": 240, "logs": 180}
    for name, units in names.items():
        (folder / f"{name}.csv").write_text(f"bin_60s,writes\n0,{units}\n1,{units}\n")
    for table in ((), ("--table", "Orders")):
        done = command("simulate", "t.yaml", "--traffic", "traffic", *table, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        traffic = json.loads(done.stdout)["traffic"]
        assert (traffic["name"], traffic["mean_units_per_second"]) == ("Shop-Orders-1F6H4LDFTFI3O", 5)
    (folder / "Beta-Orders-arZJxYWqV4wX.csv").write_text("bin_60s,writes\n0,60\n")
    assert refused(command("simulate", "t.yaml", "--traffic", "traffic", "--table", "Orders")) == (
        "highwater simulate: traffic: has traffic of 4 tables, Beta-Orders-arZJxYWqV4wX, Shop-Carts-QHOIR25MRDJL, "
        "Shop-Orders-1F6H4LDFTFI3O, logs; choose one with --traffic-table NAME"
    )
    chosen = ("--traffic-table", "Beta-Orders-arZJxYWqV4wX", "--table", "Orders", "--json")
    done = command("simulate", "t.yaml", "--traffic", "traffic", *chosen)
    assert json.loads(done.stdout)["traffic"]["mean_units_per_second"] == 1


@pytest.fixture(scope="module")
def cloud() -> Iterator[LocalCloud]:
    """`orders` with an index and `logs` on demand, which have traffic; `idle`; and `new`, without a datapoint."""
    with LocalCloud(clock="driven", has_instant_updates=True) as made:
        make: Any = boto3.client
        dynamodb, cloudwatch = (make(name, **made.client_arguments()) for name in ("dynamodb", "cloudwatch"))
        capacity = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
        key = [{"AttributeName": "pk", "KeyType": "HASH"}]
        index = {"IndexName": "by_pk", "KeySchema": key, "Projection": {"ProjectionType": "ALL"}}
        tables: dict[str, dict[str, Any]] = {
            "orders": {
                "ProvisionedThroughput": capacity,
                "GlobalSecondaryIndexes": [{**index, "ProvisionedThroughput": capacity}],
            },
            "idle": {"ProvisionedThroughput": capacity},
            "logs": {"BillingMode": "PAY_PER_REQUEST"},
            "new": {"ProvisionedThroughput": capacity},
        }
        for table, more in tables.items():
            attributes = [{"AttributeName": "pk", "AttributeType": "S"}]
            dynamodb.create_table(TableName=table, KeySchema=key, AttributeDefinitions=attributes, **more)
        now = datetime.now(UTC)
        for table, metric, values in (
            ("orders", "ConsumedWriteCapacityUnits", (600, 0, 0)),
            ("logs", "ConsumedWriteCapacityUnits", (600, 0, 0)),
            ("idle", "ProvisionedWriteCapacityUnits", (5, 5, 5)),
        ):
            cloudwatch.put_metric_data(
                Namespace="AWS/DynamoDB",
                MetricData=[
                    {
                        "MetricName": metric,
                        "Dimensions": [{"Name": "TableName", "Value": table}],
                        "Timestamp": now - timedelta(hours=2) + timedelta(minutes=minute),
                        "Value": value,
                    }
                    for minute, value in enumerate(values)
                ],
            )
        dynamodb.close()
        cloudwatch.close()
        yield made


@pytest.fixture
def live(cloud: LocalCloud, tmp_path: Path) -> Command:
    return Command(tmp_path, cloud.environment())


def test_price_is_told_before_anything_is_fetched(live: Command, tmp_path: Path) -> None:
    done = live("traffic", "fetch", "--all", "--dry-run")
    told = "4 tables, 14 days: 10 requests to CloudWatch for 20 metrics, less than 0.01 USD\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", told)
    assert not (tmp_path / "traffic").exists()


def test_all_tables_of_both_modes_are_fetched_and_read_again(live: Command, tmp_path: Path) -> None:
    done = live("traffic", "fetch", "--all", "--days", "1", "--out", "of/a/day", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[1:] == [
        "! table 'new' has no datapoints in the last 1 days, neither of what it consumes nor of provisioned capacity: "
        "whether it is idle is not known"
    ]
    assert json.loads(done.stdout) == {
        "requests": 10,
        "metrics": 20,
        "usd": 0.0002,
        "tables": {
            table: {"file": f"of/a/day/{table}.csv", "minutes": minutes, "mean_units_per_second": mean}
            for table, minutes, mean in (("idle", 3, 0), ("logs", 3, 3.3333), ("new", 0, None), ("orders", 3, 3.3333))
        },
        "without_traffic": ["new"],
        "kept": [],
    }
    found = read_traffic_by_table(tmp_path / "of" / "a" / "day")
    nothing = "of/a/day/new.csv: has a header but no rows; add one row per bin"
    assert [(each.name, each.minutes, each.is_idle) for each in found.values()] == [
        ("idle", 3, True),
        ("logs", 3, False),
        ("new", 0, False),
        ("orders", 3, False),
    ]
    assert [note.endswith(nothing) for each in found.values() for note in each.notes] == [True]
    assert [sum(each.total_units(stream) for stream in each.rates) for each in found.values()] == [0, 600, 0, 600]


def test_resumed_fetch_keeps_what_is_there(live: Command, tmp_path: Path) -> None:
    (tmp_path / "traffic").mkdir()
    (tmp_path / "traffic" / "orders.csv").write_text("minute_index,reads\n0,5\n")
    done = live("traffic", "fetch", "orders", "logs", "--days", "1", "--resume")
    assert (done.returncode, done.stderr) == (
        0,
        "1 table, 1 days: 2 requests to CloudWatch for 4 metrics, less than 0.01 USD; 1 kept from before\n",
    )
    assert done.stdout == "written: traffic/logs.csv: 3 minutes, 3.33 units/s on average\n"
    assert (tmp_path / "traffic" / "orders.csv").read_text() == "minute_index,reads\n0,5\n"
    again = live("traffic", "fetch", "orders", "--days", "60")
    assert again.returncode == 0
    assert (tmp_path / "traffic" / "orders.csv").read_text().startswith("timestamp,reads,writes,reads:by_pk")


def test_tables_without_traffic_or_files_that_cannot_be_are_told(live: Command, tmp_path: Path) -> None:
    done = live("traffic", "fetch", "new", "--days", "1")
    assert (done.returncode, done.stdout) == (1, "written: traffic/new.csv: nothing is known of the table\n")
    missing = "table 'order' does not exist; check its name, the account and the region"
    assert refused(live("traffic", "fetch", "order")) == f"highwater traffic fetch: {missing}"
    (tmp_path / "file").write_text("")
    done = live("traffic", "fetch", "orders", "--out", "file")
    assert (done.returncode, done.stderr.splitlines()[1:]) == (
        2,
        ["highwater traffic fetch: file: cannot be written: File exists"],
    )
