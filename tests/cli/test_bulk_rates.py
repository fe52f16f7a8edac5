"""What `highwater scan` and `load` say of their rate beside the table's capacity, and of the price by mode."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from tests.cli.paced_stage import Stage
from tests.client.scripted import listening
from tests.command import Command
from tests.local.world import TRUST, keyed, policy, projecting, units

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("bulk rates")]
ITEMS = 96


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Tables of both modes; `orders` has 96 items of 4 KB, 10 reads and 400 writes a second."""
    folder = tmp_path_factory.mktemp("rates")
    with LocalCloud(log=folder / "server.log", has_instant_updates=True, is_strict=True) as cloud:
        dynamodb = cloud.client("dynamodb")
        dynamodb.create_table(TableName="orders", **keyed("pk"), ProvisionedThroughput=units(10, 400))
        for start in range(0, ITEMS, 24):
            items = [{"pk": {"S": f"order-{n:02}"}, "fill": {"S": "x" * 4_070}} for n in range(start, start + 24)]
            left = dynamodb.batch_write_item(RequestItems={"orders": [{"PutRequest": {"Item": i}} for i in items]})
            assert left["UnprocessedItems"] == {}
        dynamodb.create_table(
            TableName="indexed",
            **keyed("pk", others=["day"]),
            ProvisionedThroughput=units(20, 300),
            GlobalSecondaryIndexes=[projecting("by-day", "day", ProvisionedThroughput=units(7, 30))],
        )
        dynamodb.create_table(TableName="scaled", **keyed("pk"), ProvisionedThroughput=units(13, 50))
        autoscaling = cloud.client("application-autoscaling")
        for dimension, ceiling in (("Read", 13), ("Write", 600)):
            autoscaling.register_scalable_target(
                ServiceNamespace="dynamodb",
                ResourceId="table/scaled",
                ScalableDimension=f"dynamodb:table:{dimension}CapacityUnits",
                MinCapacity=5,
                MaxCapacity=ceiling,
            )
        dynamodb.create_table(TableName="on-demand", **keyed("pk"), BillingMode="PAY_PER_REQUEST")
        dynamodb.create_table(
            TableName="rare", **keyed("pk"), BillingMode="PAY_PER_REQUEST", TableClass="STANDARD_INFREQUENT_ACCESS"
        )
        dynamodb.create_table(
            TableName="limited",
            **keyed("pk"),
            BillingMode="PAY_PER_REQUEST",
            OnDemandThroughput={"MaxReadRequestUnits": 19, "MaxWriteRequestUnits": 23},
        )
        dynamodb.close()
        autoscaling.close()
        yield Stage(cloud, Command(folder, cloud.environment()))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """96 items of one unit, each of them in the index."""
    path = tmp_path / "items.jsonl"
    path.write_text("".join(f'{{"pk": "{number}", "day": "monday"}}\n' for number in range(ITEMS)))
    return path


def plan(stage: Stage, *arguments: str) -> tuple[list[str], list[str]]:
    """The lines of a dry run on standard output, and those on standard error."""
    status, said, told = stage.run(*arguments, "--dry-run")
    assert status == 0, told
    return said.splitlines(), told.splitlines()


def test_load_into_a_table_on_demand_costs_its_requests(stage: Stage, tmp_path: Path) -> None:
    """AWS bills 0.625 USD for a million write request units in us-east-1, and 0.78 in class Standard-IA."""
    path = tmp_path / "items.jsonl"
    path.write_text("".join(f'{{"Item": {{"pk": {{"S": "{number}"}}}}}}\n' for number in range(200_000)))
    said, told = plan(stage, "load", "on-demand", "--from", str(path), "--write", "4000")
    assert said[:4] == [
        "on-demand: 200,000 items, 1,488,890 bytes",
        "write units: 200,000 of the table, for items that are not there yet",
        "time at 4,000 units/s: 0:00:50 or more",
        "costs 0.125 USD of write request units on demand, at list prices of us-east-1",
    ]
    assert told == []
    said, _ = plan(stage, "load", "rare", "--from", str(path), "--write", "4000")
    assert said[3] == "costs 0.156 USD of write request units on demand, at list prices of us-east-1 (Standard-IA)"
    document = json.loads(plan(stage, "load", "rare", "--from", str(path), "--write", "4000", "--json")[0][0])
    assert (document["billing_mode"], document["usd"], document["warnings"]) == ("PAY_PER_REQUEST", 0.156, [])


def plan_of(command: Command, table: dict[str, Any], *arguments: str) -> tuple[list[str], list[str]]:
    """The same for a table that no local cloud has, described so: on demand, in the region of its ARN."""
    described = {
        **keyed("pk"),
        "TableName": "world",
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
        "ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0},
        **table,
    }
    with listening(lambda *_: (200, json.dumps({"Table": described}).encode())) as url:
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
        done = Command(command.folder, keys | {"AWS_ENDPOINT_URL": url})(*arguments, "--dry-run")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()


@pytest.mark.parametrize(
    ("region", "cost"),
    [
        (
            "us-east-1",
            [
                "costs 0.031 USD of write request units on demand, at list prices of us-east-1, eu-central-1 "
                "(Standard-IA)"
            ],
        ),
        pytest.param("cn-north-1", [], id="a region whose prices are not known"),
    ],
)
def test_load_into_a_global_table_costs_its_writes_in_each_region(
    command: Command, tmp_path: Path, region: str, cost: list[str]
) -> None:
    """DescribeTable may list the described replica among the others."""
    infrequent = {
        "RegionName": "eu-central-1",
        "ReplicaTableClassSummary": {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
    }
    table = {
        "TableArn": f"arn:aws:dynamodb:{region}:111122223333:table/world",
        "Replicas": [infrequent, {"RegionName": region}],
    }
    path = tmp_path / "items.csv"
    # 390 units each: 19,500 together, at 0.625 and 0.955 USD a million
    path.write_text("pk,fill\n" + "".join(f"{number},{'x' * 399_000}\n" for number in range(50)))
    said, _ = plan_of(command, table, "load", "world", "--from", str(path), "--write", "4000")
    assert said[3:-1] == cost


def test_scan_that_takes_months_is_told_so_and_costs_reads_in_its_own_region(command: Command) -> None:
    table = {
        "TableArn": "arn:aws:dynamodb:eu-central-1:111122223333:table/world",
        "TableSizeBytes": 500_000_000_000,
        "ItemCount": 700_000_000,
        "Replicas": [{"RegionName": "us-east-1"}],
    }
    said, told = plan_of(command, table, "scan", "world", "--read", "7", "--segments", "1000")
    assert said[1:4] == [
        "read units: 69,754,965, in 1,000 segments",
        "time at 7 units/s: 115 days, 8:03:15 or more",
        "costs 10.64 USD of read request units on demand, at list prices of eu-central-1",
    ]
    assert told == [
        "highwater scan: reads of world: at 7 units/s the scan takes about 115 days, 8:03:15; to end within a day it "
        "needs 808 units/s"
    ]


def test_load_into_provisioned_capacity_is_paid_for_anyway(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text("".join(f'{{"pk": "{number}"}}\n' for number in range(20_000)))
    said, told = plan(stage, "load", "orders", "--from", str(path), "--write", "400")
    assert said[2:] == [
        "time at 400 units/s: 0:00:50 or more",
        "worth 0.004 USD of provisioned capacity, which the table pays for anyway, unless it is raised for the load",
    ]
    assert told == [], "the rate is what the table has"


def test_scan_above_the_provisioned_capacity_is_told_so_and_goes_on(stage: Stage, tmp_path: Path) -> None:
    warning = (
        "reads of orders: 5,000 units/s are asked for, and 10 are provisioned: once burst capacity is used up, "
        "requests are throttled, and the scan goes no faster than that; give --read 10 or less, or raise the capacity"
    )
    said, told = plan(stage, "scan", "orders", "--read", "5000", "--segments", "1")
    assert said[1:4] == [
        "read units: 48, in 1 segments",
        "time at 5,000 units/s: 0:00:01 or more",
        "time at 10 units/s, the limit of reads of orders: 0:00:05 without burst capacity",
    ]
    assert told == [f"highwater scan: {warning}"]
    (line,), told = plan(stage, "scan", "orders", "--read", "5000", "--segments", "1", "--json")
    found = json.loads(line)
    assert (found["billing_mode"], found["seconds"], found["seconds_at_capacity"]) == ("PROVISIONED", 1, 5)
    assert (found["warnings"], told) == ([warning], [])
    scan = ("scan", "orders", "--read", "5000", "--segments", "1")
    status, _, text = stage.run(*scan, "--to", str(tmp_path / "orders.jsonl"))
    assert status == 0
    first, last = text.splitlines()
    assert first == f"highwater scan: {warning}"
    assert last.startswith("96 items read, ")
    status, _, text = stage.run(*scan, "--shadow", "--to", str(tmp_path / "shadow.jsonl"))
    assert (status, text.count("\n")) == (0, 1), "a shadow does not keep to the rate"


def test_load_is_told_of_each_index_that_is_smaller_than_the_rate(stage: Stage, file: Path) -> None:
    said, told = plan(stage, "load", "indexed", "--from", str(file), "--write", "250")
    assert said[3:5] == [
        "time at 250 units/s: 0:00:01 or more",
        "time at 30 units/s, the limit of writes to index by-day of indexed: 0:00:04 without burst capacity",
    ]
    of_index = (
        "highwater load: writes to index by-day of indexed: {} units/s are asked for, and 30 are provisioned: {}the "
        "load goes no faster than that; give --write 30 or less, or raise the capacity"
    )
    throttled = "once burst capacity is used up, requests are throttled, and "
    assert told == [of_index.format(250, throttled)]
    _, told = plan(stage, "load", "indexed", "--from", str(file), "--write", "310", "--start", "slow")
    of_table = (
        "highwater load: writes to indexed: 310 units/s are asked for, and 300 are provisioned: the load goes no "
        "faster than that; give --write 300 or less, or raise the capacity"
    )
    assert told == [of_table, of_index.format(310, "")]
    status, _, text = stage.run("load", "indexed", "--from", str(file), "--write", "250")
    assert (status, text.splitlines()) == (
        0,
        [of_index.format(250, throttled), "96 items put, 192.0 write units consumed"],
    )


def test_share_of_the_capacity_is_of_each_index_its_own(stage: Stage, file: Path) -> None:
    said, told = plan(stage, "load", "indexed", "--from", str(file), "--write", "50%")
    assert said[3] == "time at 150 units/s: 0:00:07 or more", "the index has 15"
    assert told == []


def test_scan_of_an_index_is_compared_with_the_index(stage: Stage) -> None:
    assert plan(stage, "scan", "indexed", "--read", "20")[1] == []
    assert plan(stage, "scan", "indexed", "--read", "20", "--index", "by-day")[1] == [
        "highwater scan: reads of index by-day of indexed: 20 units/s are asked for, and 7 are provisioned: once burst "
        "capacity is used up, requests are throttled, and the scan goes no faster than that; give --read 7 or less, or "
        "raise the capacity"
    ]


SCALED = "highwater load: writes to scaled: {} units/s are asked for, and 50 are provisioned, which auto scaling "


@pytest.mark.parametrize(
    ("rate", "start", "told"),
    [
        pytest.param("50", "full", [], id="what it has"),
        pytest.param(
            "500",
            "full",
            [
                SCALED.format(500)
                + "raises to 600 at most: until it does, requests are throttled once burst capacity is used up; give "
                "--start slow, or --write 50 or less"
            ],
            id="at once what auto scaling may provide",
        ),
        pytest.param("500", "slow", [], id="slowly what auto scaling may provide"),
        pytest.param(
            "700",
            "full",
            [
                SCALED.format(700)
                + "raises to 600 at most: once burst capacity is used up, requests are throttled, and the load goes no "
                "faster than that; give --write 600 or less with --start slow, or raise the maximum"
            ],
            id="at once more than it may have",
        ),
        pytest.param(
            "700",
            "slow",
            [
                SCALED.format(700)
                + "raises to 600 at most: the load goes no faster than that; give --write 600 or less, or raise the "
                "maximum"
            ],
            id="slowly more than it may have",
        ),
        pytest.param("500", "boosted", [], id="a boost raises it"),
    ],
)
def test_load_is_compared_with_what_auto_scaling_may_provide(
    stage: Stage, file: Path, rate: str, start: str, told: list[str]
) -> None:
    found = plan(stage, "load", "scaled", "--from", str(file), "--write", rate, "--start", start)
    assert found[1] == told


def test_boost_of_a_table_whose_maximum_is_not_known_is_the_coordinators_to_judge(stage: Stage, file: Path) -> None:
    assert plan(stage, "load", "indexed", "--from", str(file), "--write", "310", "--start", "boosted")[1] == []


def test_capacity_that_is_at_its_maximum_is_raised_no_further(stage: Stage) -> None:
    assert plan(stage, "scan", "scaled", "--read", "14")[1] == [
        "highwater scan: reads of scaled: 14 units/s are asked for, and 13 are provisioned, which is no less than auto "
        "scaling's maximum: once burst capacity is used up, requests are throttled, and the scan goes no faster than "
        "that; give --read 13 or less, or raise the maximum"
    ]


def test_on_demand_maximum_is_told(stage: Stage, file: Path) -> None:
    said, told = plan(stage, "load", "limited", "--from", str(file), "--write", "4000")
    assert said[2:5] == [
        "time at 4,000 units/s: 0:00:01 or more",
        "time at 23 units/s, the limit of writes to limited: 0:00:05",
        "costs less than 0.001 USD of write request units on demand, at list prices of us-east-1",
    ]
    assert told == [
        "highwater load: writes to limited: 4,000 units/s are asked for, and the on-demand maximum is 23: requests "
        "above it are throttled, and the load goes no faster than that; give --write 23 or less, or raise "
        "MaxWriteRequestUnits"
    ]
    assert plan(stage, "scan", "limited", "--read", "20")[1] == [
        "highwater scan: reads of limited: 20 units/s are asked for, and the on-demand maximum is 19: requests above "
        "it are throttled, and the scan goes no faster than that; give --read 19 or less, or raise MaxReadRequestUnits"
    ]
    assert plan(stage, "load", "limited", "--from", str(file), "--write", "23")[1] == []


def test_work_of_more_than_a_day_is_told_how_long_it_takes(stage: Stage, file: Path) -> None:
    said, told = plan(stage, "load", "orders", "--from", str(file), "--write", "0.001")
    assert said[2] == "time at 0.001 units/s: 1 day, 2:40:00 or more"
    assert told == [
        "highwater load: writes to orders: at 0.001 units/s the load takes about 1 day, 2:40:00; to end within a day "
        "it needs 1 units/s"
    ]


def test_share_above_the_whole_capacity_has_no_meaning(stage: Stage) -> None:
    status, said, told = stage.run("scan", "orders", "--read", "150%", "--dry-run")
    assert (status, said, told) == (
        2,
        "",
        "highwater scan: read rate: got '150%', allowed: units per second, or a share of the provisioned capacity from "
        "'1%' to '100%'; a table has no more than its capacity: for a higher rate give units per second\n",
    )


def test_caller_who_may_not_ask_auto_scaling_is_told_nothing_of_its_maximum(stage: Stage, file: Path) -> None:
    iam = stage.cloud.client("iam")
    iam.create_role(RoleName="loader", AssumeRolePolicyDocument=json.dumps(TRUST))
    statement = {"Resource": "*", "Action": ["dynamodb:DescribeTable", "dynamodb:BatchWriteItem"]}
    iam.put_role_policy(RoleName="loader", PolicyName="items", PolicyDocument=json.dumps(policy(statement)))
    iam.close()
    # the token of a function with this role: of functions the strict cloud checks the calls of all services
    token = "highwater-role loader nightly"
    done = stage.command("load", "scaled", "--from", str(file), "--write", "700", AWS_SESSION_TOKEN=token)
    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        [
            "highwater load: writes to scaled: 700 units/s are asked for, and 50 are provisioned: once burst capacity "
            "is used up, requests are throttled, and the load goes no faster than that; give --write 50 or less, or "
            "raise the capacity",
            "96 items put, 96.0 write units consumed",
        ],
    )
