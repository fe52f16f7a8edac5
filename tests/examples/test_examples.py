"""Each example, deployed by the real CDK CLI to the local cloud and seen through boto3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from tests.cdk_cli import ROOT, CdkCli
from tests.deploys.live import describe, marks, targets, units

pytestmark = pytest.mark.xdist_group("examples")


@pytest.fixture(autouse=True)
def _noon(bootstrapped: CdkCli) -> None:
    """Other tests move the same clock."""
    bootstrapped.go_to_noon()


def _app(name: str) -> Path:
    return ROOT / "examples" / name / "app.py"


def _table_of(cloud: LocalCloud, stack: str) -> dict[str, Any]:
    resources = cloud.client("cloudformation").describe_stack_resources(StackName=stack)["StackResources"]
    name = next(r["PhysicalResourceId"] for r in resources if r["ResourceType"] == "AWS::DynamoDB::Table")
    return describe(cloud, name)


def _schedules(cloud: LocalCloud, table: str) -> set[tuple[str, str, int, int]]:
    pages = (
        cloud.client("application-autoscaling")
        .get_paginator("describe_scheduled_actions")
        .paginate(ServiceNamespace="dynamodb")
    )
    return {
        (
            action["ResourceId"].removeprefix(f"table/{table}") + " " + action["ScalableDimension"].split(":")[2],
            action["Schedule"],
            action["ScalableTargetAction"]["MinCapacity"],
            action["ScalableTargetAction"]["MaxCapacity"],
        )
        for page in pages
        for action in page["ScheduledActions"]
        if action["ResourceId"].split("/")[1] == table
    }


def test_bulk_load_comes_out_as_declared_and_goes_again(bootstrapped: CdkCli) -> None:
    cloud = bootstrapped.cloud
    bootstrapped.deploy(_app("bulk_load"))
    table = _table_of(cloud, "BulkLoad")
    name = table["TableName"]
    assert targets(cloud, name) == {
        "table read": (200, 8_000),
        "table write": (100, 20_000),
    }
    assert _schedules(cloud, name) == {
        (" ReadCapacityUnits", "cron(55 8 ? * MON-FRI *)", 3_000, 8_000),
        (" ReadCapacityUnits", "cron(0 11 ? * MON-FRI *)", 200, 8_000),
        (" WriteCapacityUnits", "cron(55 4 ? * MON-FRI *)", 18_000, 20_000),
        (" WriteCapacityUnits", "cron(30 6 ? * MON-FRI *)", 100, 20_000),
        (" WriteCapacityUnits", "cron(55 8 ? * MON-FRI *)", 1_500, 20_000),
        (" WriteCapacityUnits", "cron(0 11 ? * MON-FRI *)", 100, 20_000),
    }
    assert table["WarmThroughput"] == {
        "ReadUnitsPerSecond": 3_000,
        "WriteUnitsPerSecond": 18_000,
        "Status": "ACTIVE",
    }
    assert units(cloud, name) == [(200, 100)]
    assert table["DeletionProtectionEnabled"]

    assert "Number of stacks with differences: 0" in bootstrapped.run("diff", app=bootstrapped.synthesized)
    bootstrapped.run("destroy", "--force", "--all", app=bootstrapped.synthesized)
    assert targets(cloud, name) == {}
    assert name in cloud.client("dynamodb").list_tables()["TableNames"], "a table outlives its stack"


@pytest.mark.quick
def test_existing_table_is_scaled_and_stays_what_it_was(bootstrapped: CdkCli) -> None:
    cloud = bootstrapped.cloud
    throughput = {"ReadCapacityUnits": 6, "WriteCapacityUnits": 7}
    cloud.client("dynamodb").create_table(
        TableName="events",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("id", "visitor")],
        ProvisionedThroughput=throughput,
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by-visitor",
                "KeySchema": [{"AttributeName": "visitor", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
                "ProvisionedThroughput": throughput,
            }
        ],
    )
    bootstrapped.deploy(_app("existing_table"))
    assert targets(cloud, "events") == {
        "table read": (40, 2_000),
        "table write": (60, 3_000),
        "by-visitor read": (20, 1_500),
        "by-visitor write": (60, 3_000),
    }
    # five minutes' lead, told in UTC: Berlin is two hours ahead in July
    assert ("/index/by-visitor ReadCapacityUnits", "at(2031-07-04T05:55:00)", 1_200, 1_500) in _schedules(
        cloud, "events"
    )
    assert [read for read, _ in marks(cloud, "events")] == [1_200, 1_200]
    assert units(cloud, "events")[1][1] == 60


def test_indexes_follow_or_differ_as_declared(bootstrapped: CdkCli) -> None:
    cloud = bootstrapped.cloud
    output = bootstrapped.deploy(_app("indexes"))
    assert "Indexes/OrderBook: index 'open-complaints' write floor: got 10, allowed: 4000" in output
    table = _table_of(cloud, "Indexes")
    name = table["TableName"]
    assert targets(cloud, name) == {
        "table read": (120, 5_000),
        "table write": (80, 6_000),
        "by-customer read": (120, 5_000),
        "by-customer write": (80, 6_000),
        "by-region read": (30, 3_000),
        "by-region write": (80, 6_000),
        "open-complaints read": (15, 15),
        "open-complaints write": (10, 600),
    }
    marks = {i["IndexName"]: i["WarmThroughput"]["ReadUnitsPerSecond"] for i in table["GlobalSecondaryIndexes"]}
    assert marks == {"by-customer": 120, "by-region": 2_500, "open-complaints": 15}


def test_surges_have_a_scaler_alarms_and_a_dashboard(bootstrapped: CdkCli) -> None:
    cloud = bootstrapped.cloud
    bootstrapped.deploy(_app("surges"))
    cloudwatch = cloud.client("cloudwatch")
    own = cloudwatch.describe_alarms(AlarmNamePrefix="Highwater ")["MetricAlarms"]
    # reads and writes of two tables and an index
    assert len(own) == 6
    described = [alarm["AlarmDescription"] for alarm in cloudwatch.describe_alarms()["MetricAlarms"]]
    assert sum("of the ceiling" in text for text in described) == 4
    dashboards = cloudwatch.list_dashboards()["DashboardEntries"]
    assert len(dashboards) == 1
    body = json.loads(cloudwatch.get_dashboard(DashboardName=dashboards[0]["DashboardName"])["DashboardBody"])
    assert [widget["type"] for widget in body["widgets"]].count("metric") == 13
    assert body["widgets"][-1]["type"] == "log"
    bootstrapped.run("destroy", "--force", "--all", app=bootstrapped.synthesized)
    assert cloudwatch.list_dashboards()["DashboardEntries"] == []
