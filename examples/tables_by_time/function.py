"""The function that rotates the tables: looks at them, asks `Rotation` what to do, and does it.

Each table is looked at, and each step done, by itself: what fails is logged, the rest is done all the same, and the run
ends as failed, for the alarm.
"""

import json
import logging
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from periods import Periods
from rotation import PeriodTable, Rotation, RotationStep

log = logging.getLogger("rotation")
log.setLevel(logging.INFO)
# what is not active is left alone
UNSEEN = PeriodTable(read=1, write=1, is_active=False, is_protected=True, has_recovery=False)


def handler(event: object, context: object) -> None:  # noqa: ARG001 - Lambda's signature
    """Run one turn."""
    settings = json.loads(os.environ["ROTATION"])
    retention = timedelta(days=settings.pop("retention_days"))
    periods = Periods(settings.pop("prefix"))
    rotation = Rotation(periods=periods, retention=retention, **settings)
    Turn(boto3.client("dynamodb"), rotation, os.environ["BUCKET"]).run(datetime.now(UTC))


class Turn:
    """One turn with a client of boto3; exports go to *bucket*."""

    def __init__(self, client: Any, rotation: Rotation, bucket: str) -> None:
        self._client = client
        self._rotation = rotation
        self._periods = rotation.periods
        self._bucket = bucket

    def run(self, now: datetime) -> None:
        """Do what is to be done now; raises `RuntimeError` if something failed."""
        seen, failed = {}, []
        for name in self._names():
            try:
                seen[name] = self._see(name, now)
            except (BotoCoreError, ClientError) as error:
                seen[name] = UNSEEN
                failed.append(name)
                log.error("look at %s failed: %s", name, error)
        for step in self._rotation.steps(seen, now):
            try:
                self._do(step)
            except (BotoCoreError, ClientError) as error:
                failed.append(step.table)
                log.error("%s of %s failed: %s", step.kind, step.table, error)
            else:
                log.info("%s %s: %s", step.kind, step.table, step.why)
        if failed:
            message = f"failed for {', '.join(failed)}; the next run tries again"
            raise RuntimeError(message)

    def _names(self) -> Iterator[str]:
        # names come in order, so those of other tables before and behind are not listed
        begins = f"{self._periods.prefix}-"
        for page in self._client.get_paginator("list_tables").paginate(ExclusiveStartTableName=begins):
            for name in page["TableNames"]:
                if not name.startswith(begins):
                    return
                if self._periods.start_of(name) is not None:
                    yield name

    def _see(self, name: str, now: datetime) -> PeriodTable:
        table = self._client.describe_table(TableName=name)["Table"]
        is_active = table["TableStatus"] == "ACTIVE"
        start = self._periods.start_of(name)
        is_expired = start is not None and self._rotation.is_expired(start, now)
        return PeriodTable(
            read=table["ProvisionedThroughput"]["ReadCapacityUnits"],
            write=table["ProvisionedThroughput"]["WriteCapacityUnits"],
            is_active=is_active,
            is_protected=table["DeletionProtectionEnabled"],
            has_recovery=is_active and self._has_recovery(name),
            exports=tuple(self._exports(table)) if is_expired else (),
        )

    def _has_recovery(self, name: str) -> bool:
        found = self._client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        return bool(found["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED")

    def _exports(self, table: dict[str, Any]) -> Iterator[tuple[str, datetime]]:
        """Yield the full exports to the bucket of this table, and not of an earlier one with its name."""
        request = {"TableArn": table["TableArn"]}
        while True:
            page = self._client.list_exports(**request)
            for summary in page["ExportSummaries"]:
                export = self._client.describe_export(ExportArn=summary["ExportArn"])["ExportDescription"]
                wanted = (table["TableId"], self._bucket, "FULL_EXPORT")
                if (export["TableId"], export["S3Bucket"], export["ExportType"]) == wanted:
                    yield export["ExportStatus"], export["ExportTime"]
            if "NextToken" not in page:
                return
            request["NextToken"] = page["NextToken"]

    def _do(self, step: RotationStep) -> None:
        name, client = step.table, self._client
        capacity = {"ReadCapacityUnits": step.read, "WriteCapacityUnits": step.write}
        if step.kind == "make":
            self._make(name, capacity)
        elif step.kind in ("raise", "lower"):
            client.update_table(TableName=name, ProvisionedThroughput=capacity)
        elif step.kind == "recover":
            client.update_continuous_backups(
                TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
            )
        elif step.kind == "export":
            arn = client.describe_table(TableName=name)["Table"]["TableArn"]
            client.export_table_to_point_in_time(
                TableArn=arn, S3Bucket=self._bucket, S3Prefix=name, ExportTime=step.at, ExportType="FULL_EXPORT"
            )
        elif step.kind == "unprotect":
            client.update_table(TableName=name, DeletionProtectionEnabled=False)
        elif step.kind == "delete":
            client.delete_table(TableName=name)

    def _make(self, name: str, capacity: dict[str, int]) -> None:
        """Create a table with the keys of the default table."""
        default = self._client.describe_table(TableName=self._periods.default)["Table"]
        self._client.create_table(
            TableName=name,
            KeySchema=default["KeySchema"],
            AttributeDefinitions=default["AttributeDefinitions"],
            BillingMode="PROVISIONED",
            ProvisionedThroughput=capacity,
            WarmThroughput={
                "ReadUnitsPerSecond": self._rotation.read,
                "WriteUnitsPerSecond": self._rotation.write,
            },
            DeletionProtectionEnabled=True,
        )
