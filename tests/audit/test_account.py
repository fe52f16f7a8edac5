"""What is read of an account about the data of tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from highwater_lab.audit.account import LiveTable, RegionClients, read_data, read_table
from highwater_lab.services.data_costs import TableData
from tests.doctor.stubs import StubbedSession

GB = 1024**3
ARN = "arn:aws:dynamodb:eu-west-1:111122223333:table/orders"


def _described() -> dict[str, Any]:
    return {
        "TableName": "orders",
        "TableArn": ARN,
        "TableStatus": "ACTIVE",
        "CreationDateTime": datetime(2026, 1, 2, tzinfo=UTC),
        "TableSizeBytes": 70 * GB,
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
        "TableClassSummary": {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
        "GlobalSecondaryIndexes": [{"IndexName": "by_owner", "IndexSizeBytes": 5 * GB}],
        "LocalSecondaryIndexes": [{"IndexName": "by_day", "IndexSizeBytes": 3 * GB}],
    }


def _backup(table: str, size: int) -> dict[str, Any]:
    return {"TableName": table, "BackupSizeBytes": size}


def _table(session: StubbedSession) -> LiveTable:
    session.answer("dynamodb", "describe_table", {"Table": _described()}, TableName="orders")
    return read_table(session.client("dynamodb"), None, "orders")


def test_data_is_that_of_indexes_backups_and_of_tables_that_are_gone() -> None:
    session = StubbedSession()
    table = _table(session)
    backups = [_backup("orders", 9 * GB), _backup("gone", 4 * GB), _backup("orders", 2 * GB)]
    session.answer("dynamodb", "list_backups", {"BackupSummaries": backups}, BackupType="USER")
    recovery = {
        "ContinuousBackupsStatus": "ENABLED",
        "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "ENABLED"},
    }
    answer = {"ContinuousBackupsDescription": recovery}
    session.answer("dynamodb", "describe_continuous_backups", answer, TableName="orders")
    dynamodb: Any = session.client("dynamodb")
    nothing: Any = None
    found = read_data(RegionClients("eu-west-1", dynamodb, nothing, nothing, nothing), [table])
    assert found == [
        TableData(
            region="eu-west-1",
            is_infrequent_access=True,
            storage_gb=78,
            # without the global index
            recovery_gb=73,
            backup_gb=11,
            has_stream=True,
        ),
        TableData(region="eu-west-1", backup_gb=4),
    ]
