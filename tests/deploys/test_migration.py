"""A table that is on demand so far becomes a `HighWaterTable` while requests go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from highwater_lab.local import LocalCloud
from tests.cdk_cli import CdkCli

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud-migration")]

BEFORE = """
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb

app = cdk.App()
stack = cdk.Stack(app, "STACK")
key = dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING)
dynamodb.Table(
    stack, "Visits", table_name="TABLE", partition_key=key, billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
    deletion_protection=True,
)
app.synth()
"""
AFTER = """
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from cdk_highwater import Capacity, HighWaterTable

app = cdk.App()
stack = cdk.Stack(app, "STACK")
key = dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING)
capacity = Capacity.autoscaled(min_capacity=3, max_capacity=4_000)
HighWaterTable(
    stack, "Visits", table_name="TABLE", partition_key=key, read=capacity, write=capacity, INITIAL
)
app.synth()
"""
# 40 units a second in bursts of an item of 40 units
_ITEM = {"pk": {"S": "visit"}, "page": {"S": "x" * 40_000}}


class Visitors:
    """Writes without a pause and without a retry until told to stop; counts what was written and what was refused."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._stopped = threading.Event()
        self.written = self.throttled = 0
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Visitors:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._dynamodb.close()

    def _write(self) -> None:
        while not self._stopped.wait(0.05):
            try:
                self._dynamodb.put_item(TableName=self._table, Item=_ITEM)
                self.written += 1
            except self._dynamodb.exceptions.ProvisionedThroughputExceededException:
                self.throttled += 1


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CdkCli]:
    folder = tmp_path_factory.mktemp("migrated")
    with LocalCloud(log=folder / "server.log", speed=20, is_strict=True) as cloud:
        made = CdkCli(cloud, folder)
        made.run("bootstrap", f"aws://{cloud.environment()['CDK_DEFAULT_ACCOUNT']}/us-east-1")
        yield made


@pytest.mark.parametrize(
    ("table", "initial", "is_throttled"),
    [
        ("migrated-well", "initial_read_units=30, initial_write_units=3_000", False),
        ("migrated-badly", "", True),
    ],
    ids=["with-initial-units", "with-one-unit"],
)
def test_nothing_is_throttled_while_a_table_leaves_on_demand(
    cli: CdkCli, tmp_path: Path, table: str, initial: str, is_throttled: bool
) -> None:
    """3: the template's numbers are live capacity from one moment to the next."""
    app = tmp_path / "app.py"
    before, after = (
        text.replace("TABLE", table).replace("STACK", table.title()).replace("INITIAL", initial)
        for text in (BEFORE, AFTER)
    )
    app.write_text(before)
    cli.deploy(app)
    make: Any = boto3.client
    once = Config(retries={"mode": "standard", "total_max_attempts": 1})
    with Visitors(make("dynamodb", **cli.cloud.client_arguments(), config=once), table) as visitors:
        app.write_text(after)
        cli.deploy(app)
    assert visitors.written > 20
    assert (visitors.throttled > 0) is is_throttled
    described = cli.cloud.client("dynamodb").describe_table(TableName=table)["Table"]
    assert described["ProvisionedThroughput"]["WriteCapacityUnits"] == (3_000 if initial else 3)
