"""Exports of tables to S3: their conditions, the objects that they write, and how they end."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from typing import Any

from highwater_lab.local import LocalCloud
from tests.local.world import World, refused


def _export(world: World, table: str, bucket: str, **more: Any) -> dict[str, Any]:
    arn = world.described(table)["TableArn"]
    started = world.dynamodb.export_table_to_point_in_time(TableArn=arn, S3Bucket=bucket, **more)
    found: dict[str, Any] = started["ExportDescription"]
    return found


def _recover(world: World, table: str) -> None:
    world.dynamodb.update_continuous_backups(
        TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )


def _ended(world: World, cloud: LocalCloud, export: dict[str, Any]) -> dict[str, Any]:
    cloud.step(2)
    found: dict[str, Any] = world.dynamodb.describe_export(ExportArn=export["ExportArn"])["ExportDescription"]
    return found


def test_table_is_exported_only_with_recovery_and_not_of_the_future(world: World, cloud: LocalCloud) -> None:
    table = world.table(5, 6)
    text = f"Point in time recovery is not enabled for table '{table}'"
    with refused("PointInTimeRecoveryUnavailableException", text):
        _export(world, table, "exports")
    _recover(world, table)
    text = "The specified ExportTime is outside of the point in time recovery window."
    with refused("InvalidExportTimeException", text):
        _export(world, table, "exports", ExportTime=cloud.status().now + timedelta(seconds=1))


def test_export_writes_every_item_and_lists_its_file(world: World, cloud: LocalCloud) -> None:
    table, s3 = world.table(5, 6), cloud.client("s3")
    s3.create_bucket(Bucket="exports")
    items = [{"id": {"S": f"i-{number}"}, "n": {"N": str(number)}} for number in range(17)]
    for item in items:
        world.dynamodb.put_item(TableName=table, Item=item)
    _recover(world, table)
    export = _ended(world, cloud, _export(world, table, "exports", S3Prefix="old"))
    assert (export["ExportStatus"], export["ExportType"]) == ("COMPLETED", "FULL_EXPORT")

    def body(key: str) -> bytes:
        found: bytes = s3.get_object(Bucket="exports", Key=key)["Body"].read()
        return found

    folder = f"old/AWSDynamoDB/{export['ExportArn'].rpartition('/')[2]}"
    summary = json.loads(body(f"{folder}/manifest-summary.json"))
    assert (summary["itemCount"], summary["exportArn"]) == (17, export["ExportArn"])
    listed = json.loads(body(summary["manifestFilesS3Key"]))
    assert listed["itemCount"] == 17
    lines = gzip.decompress(body(listed["dataFileS3Key"])).splitlines()
    assert sorted((json.loads(line)["Item"] for line in lines), key=lambda item: int(item["n"]["N"])) == items


def test_export_to_a_bucket_that_is_not_there_fails(world: World, cloud: LocalCloud) -> None:
    table = world.table(5, 6)
    _recover(world, table)
    export = _ended(world, cloud, _export(world, table, "nowhere"))
    assert (export["ExportStatus"], export["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
