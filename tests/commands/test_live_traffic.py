"""`simulate` and `recommend` with `--live-table`: which account and region is asked, and what the table itself says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from highwater_lab.local import LocalCloud
from tests.command import Command

pytestmark = pytest.mark.xdist_group("cloud-scaler")
TEMPLATE = str(Path(__file__).parents[1] / "template" / "corpus" / "target-by-a-split-arn" / "template.yaml")
COMMANDS = [("simulate", TEMPLATE), ("recommend",)]


@pytest.fixture(scope="module")
def cloud() -> Iterator[LocalCloud]:
    """A table `orders` in Dublin that was written to two hours ago, and one with vector indexes."""
    with LocalCloud(has_instant_updates=True) as made:
        arguments: dict[str, Any] = made.client_arguments() | {"region_name": "eu-west-1"}
        make: Any = boto3.client
        dynamodb, cloudwatch = make("dynamodb", **arguments), make("cloudwatch", **arguments)
        vectors: dict[str, Any] = {
            "IndexName": "by_meaning",
            "VectorAttribute": {"AttributeName": "meaning"},
            "Dimensions": 8,
            "Projection": {"ProjectionType": "ALL"},
            "DistanceFunction": "COSINE",
        }
        tables: list[tuple[str, Any]] = [("orders", {}), ("articles", {"VectorIndexes": [vectors]})]
        for table, more in tables:
            dynamodb.create_table(
                TableName=table,
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
                **more,
            )
            cloudwatch.put_metric_data(
                Namespace="AWS/DynamoDB",
                MetricData=[
                    {
                        "MetricName": "ConsumedWriteCapacityUnits",
                        "Dimensions": [{"Name": "TableName", "Value": table}],
                        "Timestamp": made.status().now - timedelta(hours=2),
                        "Value": 600,
                    }
                ],
            )
        for client in (dynamodb, cloudwatch):
            client.close()
        yield made


@pytest.fixture
def command(cloud: LocalCloud, tmp_path: Path) -> Command:
    """`highwater` with no region but the one that a test gives."""
    regions = ("AWS_REGION", "AWS_DEFAULT_REGION")
    return Command(tmp_path, {name: value for name, value in cloud.environment().items() if name not in regions})


@pytest.mark.parametrize("arguments", COMMANDS)
def test_region_of_aws_region_is_asked_and_its_prices_count(command: Command, arguments: tuple[str, ...]) -> None:
    live = (*arguments, "--live-table", "orders", "--days", "1")
    done = command(*live, AWS_REGION="eu-west-1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "eu-west-1" in done.stdout
    assert command(*live, "--region", "eu-west-1", AWS_REGION="us-east-1").stdout == done.stdout
    missing = "table 'orders' does not exist; check its name, the account and the region"
    done = command(*live, AWS_REGION="us-east-1")
    assert (done.returncode, done.stderr) == (2, f"highwater {arguments[0]}: {missing}\n")


@pytest.mark.parametrize("arguments", COMMANDS)
def test_profile_is_used(command: Command, arguments: tuple[str, ...], tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("[profile shop]\nregion = eu-west-1\naws_access_key_id = a\naws_secret_access_key = b\n")
    live = (*arguments, "--live-table", "orders", "--days", "1")
    done = command(*live, "--profile", "shop", AWS_CONFIG_FILE=str(config))
    assert (done.returncode, done.stderr) == (0, "")
    done = command(*live, "--profile", "shoop", AWS_CONFIG_FILE=str(config))
    assert (done.returncode, done.stderr) == (
        2,
        f"highwater {arguments[0]}: --profile: no profile 'shoop' in your AWS configuration; list them with: aws "
        "configure list-profiles\n",
    )


def test_profile_is_of_a_live_table(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("[profile shop]\nregion = eu-west-1\n")
    done = command("recommend", "--scenario", "step", "--profile", "shop", AWS_CONFIG_FILE=str(config))
    assert (done.returncode, done.stderr) == (
        2,
        "highwater recommend: --profile is of --live-table; remove it beside --scenario\n",
    )


def test_traffic_from_elsewhere_has_no_region_of_the_environment(command: Command) -> None:
    done = command("recommend", "--scenario", "constant", "--mean", "5", AWS_REGION="eu-west-1")
    assert done.returncode == 0
    assert "us-east-1" in done.stdout


def test_recommendation_for_a_live_table_is_for_what_it_has(command: Command, cloud: LocalCloud) -> None:
    client = cloud.client("dynamodb")
    client.create_table(
        TableName="visits",
        KeySchema=[{"AttributeName": "visit", "KeyType": "HASH"}, {"AttributeName": "at", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "visit", "AttributeType": "S"},
            {"AttributeName": "at", "AttributeType": "N"},
        ],
        ProvisionedThroughput={"ReadCapacityUnits": 41, "WriteCapacityUnits": 2_300},
        WarmThroughput={"ReadUnitsPerSecond": 18_000, "WriteUnitsPerSecond": 60_000},
    )
    client.close()
    data = [
        {
            "MetricName": "ConsumedWriteCapacityUnits",
            "Dimensions": [{"Name": "TableName", "Value": "visits"}],
            "Timestamp": cloud.status().now - timedelta(minutes=minute),
            "Value": 60 * (5_000 if minute < 40 else 4_000),
        }
        for minute in range(10, 190)
    ]
    cloudwatch = cloud.client("cloudwatch")
    cloudwatch.put_metric_data(Namespace="AWS/DynamoDB", MetricData=data)
    cloudwatch.close()
    live = ("recommend", "--live-table", "visits", "--days", "1", "--max-throttled", "1", "--region", "us-east-1")
    done = command(*live)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("declared now: ")
    assert "\ndeclared now: fixed " in done.stdout
    assert 'visits = dynamodb.Table.from_table_name(stack, "visits", "visits")\nmanage_capacity(\n' in done.stdout
    code = command(*live, "--code", "hcl").stdout.split("\n\n", 1)[1]
    assert 'import {\n  to = aws_dynamodb_table.visits\n  id = "visits"\n}\n' in code
    assert '  hash_key       = "visit"\n  range_key      = "at"\n' in code
    assert "warm_throughput]" in code
    assert "warm_throughput {" not in code


def test_recommendation_for_a_table_with_vector_indexes_says_that_it_stays_on_demand(command: Command) -> None:
    done = command("recommend", "--live-table", "articles", "--days", "1", AWS_REGION="eu-west-1")
    note = (
        "table 'articles' has vector indexes, which DynamoDB allows on on-demand tables only; none of the provisioned "
        "plans is for it until these are moved to another table\n"
    )
    assert (done.returncode, done.stderr) == (0, note)


def test_every_table_of_an_app_has_the_traffic_of_its_live_one(command: Command, cloud: LocalCloud) -> None:
    template = str(Path(TEMPLATE).parents[1] / "capacity-in-another-stack" / "assembly")
    environment: dict[str, Any] = cloud.environment() | {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-1"}
    done = command("rehearse", template, "--live", "--days", "1", "--json", **environment)
    assert done.returncode == 0, done.stderr
    found = {table["name"]: table["unknown"] for table in json.loads(done.stdout)["tables"]}
    assert found["Data/Orders"] is None
    assert found["Data/Visits"] == "there is no traffic of Data/Visits"
