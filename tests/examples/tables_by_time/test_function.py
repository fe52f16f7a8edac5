"""The function of the example with tables by time: its asset, and turns in which AWS rejects or fails something."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from function import Turn
from periods import Periods
from rotation import Rotation

from highwater_lab.local import LocalCloud
from tests.cdk_cli import ROOT

ROTATION = Rotation(
    periods=Periods("log", every="day", late=timedelta(hours=2)),
    read=9,
    write=11,
    retention=timedelta(days=2),
)
PAST = "log-2026-01-05"


@pytest.fixture
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud(clock="driven", has_instant_updates=True) as running:
        yield running


def _create(cloud: LocalCloud, name: str, **more: Any) -> None:
    cloud.client("dynamodb").create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        **more or {"BillingMode": "PAY_PER_REQUEST"},
    )


class Turns:
    """Turns of the example's function on a cloud, an hour after each other."""

    def __init__(self, cloud: LocalCloud, bucket: str) -> None:
        self._cloud = cloud
        self.client = cloud.client("dynamodb")
        self._turn = Turn(self.client, ROTATION, bucket)

    def run(self, count: int = 1) -> None:
        for _ in range(count):
            self._cloud.advance(timedelta(hours=1))
            self._turn.run(self._cloud.status().now)

    def names(self) -> list[str]:
        found: list[str] = self.client.list_tables()["TableNames"]
        return found

    def exports(self) -> list[str]:
        arn = self.client.describe_table(TableName=PAST)["Table"]["TableArn"]
        return [each["ExportStatus"] for each in self.client.list_exports(TableArn=arn)["ExportSummaries"]]


def test_asset_has_the_function_and_the_modules_that_it_imports() -> None:
    app = runpy.run_path(str(ROOT / "examples" / "tables_by_time" / "app.py"))["app"]
    assembly = app.synth()
    resources = assembly.get_stack_by_name("TablesByTime").template["Resources"].values()
    (function,) = (each for each in resources if each["Type"] == "AWS::Lambda::Function")
    asset = Path(assembly.directory, "asset." + function["Properties"]["Code"]["S3Key"].removesuffix(".zip"))
    assert sorted(path.name for path in asset.iterdir()) == ["function.py", "periods.py", "rotation.py"]
    assert function["Properties"]["Handler"] == "function.handler"


def test_table_outlives_its_retention_until_an_export_of_it_is_complete(cloud: LocalCloud) -> None:
    _create(cloud, "log-default")
    turns = Turns(cloud, "exports")
    turns.run(2)
    cloud.advance(timedelta(days=3))
    # lowers, then exports to a bucket that does not exist, again and again
    turns.run(4)
    assert turns.exports() == ["FAILED"] * 3
    cloud.client("s3").create_bucket(Bucket="exports")
    turns.run(2)
    assert turns.exports() == ["FAILED"] * 3 + ["COMPLETED"]
    assert not turns.client.describe_table(TableName=PAST)["Table"]["DeletionProtectionEnabled"]
    # an export of an earlier table of the same name is none of this one
    turns.client.delete_table(TableName=PAST)
    capacity = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    _create(cloud, PAST, ProvisionedThroughput=capacity)
    turns.run(2)
    assert turns.exports() == ["FAILED"] * 3 + ["COMPLETED", "IN_PROGRESS"]
    turns.run()
    assert PAST not in turns.names()


def test_table_that_cannot_be_made_does_not_keep_others_from_being_lowered(cloud: LocalCloud) -> None:
    capacity = {"ReadCapacityUnits": 9, "WriteCapacityUnits": 11}
    _create(cloud, "log-2026-01-04", ProvisionedThroughput=capacity)
    _create(cloud, "log-other", ProvisionedThroughput=capacity)
    turns = Turns(cloud, "exports")
    cloud.advance(timedelta(hours=2))
    with pytest.raises(RuntimeError) as error:
        turns.run()
    # there is no default table whose keys they could have
    assert str(error.value) == ("failed for log-2026-01-05, log-2026-01-06, log-2026-01-07; the next run tries again")
    units = {
        name: turns.client.describe_table(TableName=name)["Table"]["ProvisionedThroughput"]["WriteCapacityUnits"]
        for name in turns.names()
    }
    assert units == {"log-2026-01-04": 1, "log-other": 11}


def test_table_that_cannot_be_seen_does_not_keep_others_from_being_made(cloud: LocalCloud) -> None:
    _create(cloud, "log-default")
    turns = Turns(cloud, "exports")
    # on demand, as somebody else made it: it has no capacity to be changed
    _create(cloud, PAST)
    refused = {"Error": {"Code": "InternalServerError", "Message": "try again"}}

    def fail(params: Any, **_: Any) -> None:
        if PAST in str(params["body"]):
            raise turns.client.exceptions.InternalServerError(refused, "DescribeTable")

    turns.client.meta.events.register("before-call.dynamodb.DescribeTable", fail)
    with pytest.raises(RuntimeError) as error:
        turns.run()
    assert str(error.value) == f"failed for {PAST}; the next run tries again"
    assert turns.names() == [PAST, "log-2026-01-06", "log-2026-01-07", "log-default"]
