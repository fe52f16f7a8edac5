"""Four processes scan one table beside other traffic, each in its own way and within its own budget."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from datetime import timedelta
from typing import Any

import pytest

from highwater.core import Dimension
from highwater_lab.local import LocalCloud
from highwater_lab.local.load import Load, steady
from highwater_lab.local.load_report import LoadReport

pytestmark = [pytest.mark.cloud, pytest.mark.alone, pytest.mark.xdist_group("paced scans")]
READ = Dimension.READ
CAPACITY, OTHERS, RATE = 260, 60, 40
_SECONDS = 60
_SCANNER = """
import json, sys, time
import boto3
import highwater
more = json.loads(sys.argv[1])
session = boto3.Session()
units = 0.0
found = 0
began = time.monotonic()
while time.monotonic() < began + 60:
    for page in highwater.scan("orders", session=session, **more):
        units += page.units
        found += len(page.raw)
        took = time.monotonic() - began
        if took >= 60:
            break
print(json.dumps({"units": units, "seconds": took, "found": found}))
"""
_WAYS: list[dict[str, Any]] = [
    {"read": RATE},
    {
        "read": RATE,
        "FilterExpression": "n = :n",
        "ExpressionAttributeValues": {":n": {"N": "0"}},
    },
    {"read": RATE, "is_consistent": True},
    {"read": RATE, "segments": 64, "workers": 3},
]


def _fill(cloud: LocalCloud) -> int:
    """Make the table, with items from 100 bytes to 40 KB, some of them under one key; return how many there are."""
    dynamodb, numbers = cloud.client("dynamodb"), random.Random(20_261_123)  # noqa: S311 - the same items in each run
    dynamodb.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        ProvisionedThroughput={"ReadCapacityUnits": CAPACITY, "WriteCapacityUnits": 40_000},
    )
    count = 3_000
    for first in range(0, count, 25):
        puts = []
        for number in range(first, first + 25):
            key = "hot" if number % 3 == 0 else f"order-{number}"
            size = min(int(numbers.lognormvariate(8.0, 1.2)) + 40, 40_000)
            item = {
                "pk": {"S": key},
                "sk": {"S": f"{number:05}"},
                "n": {"N": str(number % 1_000)},
                "x": {"S": "y" * size},
            }
            puts.append({"PutRequest": {"Item": item}})
        dynamodb.batch_write_item(RequestItems={"orders": puts})
    dynamodb.close()
    return count


def test_each_process_keeps_within_one_percent_of_its_budget_and_nobody_else_is_throttled() -> None:
    with LocalCloud(has_instant_updates=True) as cloud:
        count = _fill(cloud)
        environment = os.environ | cloud.environment()
        load = Load(cloud.control, "orders", steady(OTHERS, 0, timedelta(minutes=30), cloud.status().now), threads=3)
        reports: list[LoadReport] = []
        others = threading.Thread(target=lambda: reports.append(load.run()))
        others.start()
        try:
            scans = [
                subprocess.Popen(
                    [sys.executable, "-c", _SCANNER, json.dumps(way)], env=environment, stdout=subprocess.PIPE
                )
                for way in _WAYS
            ]
            found = [json.loads(scan.communicate()[0]) for scan in scans]
        finally:
            load.stop()
            others.join()
    (report,) = reports
    assert report.total(READ, "throttled") == 0
    assert report.total(READ, "granted") > 50 * OTHERS
    rates = [each["units"] / each["seconds"] for each in found]
    # a process begins with its imports' seconds behind it; a page is a quarter of a second of the budget
    assert rates == pytest.approx([RATE] * len(rates), rel=0.025)
    assert sum(rates) == pytest.approx(len(_WAYS) * RATE, rel=0.015)
    assert found[1]["found"] <= count / 1_000 * 3
    assert found[1]["units"] > 2_000, "what a filter leaves out is paid for"
