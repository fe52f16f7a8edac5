"""What is read of an account about the data and the scaling of tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from highwater_lab.audit.account import LiveTable, RegionClients, read_data, read_table, read_tables
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


def test_table_that_a_metric_of_its_own_scales_is_not_judged() -> None:
    """AWS refused to make such a policy for DynamoDB (recorded); the audit reads whatever an account has."""
    session = StubbedSession()
    described = _described() | {"BillingModeSummary": {"BillingMode": "PROVISIONED"}}
    session.answer("dynamodb", "describe_table", {"Table": described}, TableName="orders")
    names = {
        "ServiceNamespace": "dynamodb",
        "ResourceId": "table/orders",
        "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
    }
    created = {"CreationTime": datetime(2026, 1, 2, tzinfo=UTC)}
    target = names | created | {"MinCapacity": 6, "MaxCapacity": 60, "RoleARN": "arn:aws:iam::111122223333:role/scales"}
    metric = {"MetricName": "Asked", "Namespace": "Shop", "Statistic": "Average"}
    policy: dict[str, Any] = names | created
    policy |= {"PolicyName": "by-demand", "PolicyARN": f"{ARN}/policy", "PolicyType": "TargetTrackingScaling"}
    policy["TargetTrackingScalingPolicyConfiguration"] = {"TargetValue": 70.0, "CustomizedMetricSpecification": metric}
    for operation, member, found in (
        ("describe_scalable_targets", "ScalableTargets", [target]),
        ("describe_scaling_policies", "ScalingPolicies", [policy]),
        ("describe_scheduled_actions", "ScheduledActions", []),
    ):
        session.answer("application-autoscaling", operation, {member: found}, ServiceNamespace="dynamodb")
    dynamodb: Any = session.client("dynamodb")
    autoscaling: Any = session.client("application-autoscaling")
    nothing: Any = None
    clients = RegionClients("eu-west-1", dynamodb, autoscaling, nothing, nothing)
    (table,) = read_tables(clients, ["orders"], datetime(2026, 1, 3, tzinfo=UTC))
    assert table.problem == "policy by-demand scales its writes by a metric of its own, which is not simulated"


@pytest.mark.parametrize(
    ("can_be_fewer", "when"),
    [(True, "ask for fewer days"), (False, "a day of it can be judged from 2026-01-05 07:30 UTC on")],
)
def test_young_table_says_when_it_can_be_judged(can_be_fewer: bool, when: str) -> None:
    session = StubbedSession()
    described = _described() | {"CreationDateTime": datetime(2026, 1, 4, 7, 30, tzinfo=UTC)}
    session.answer("dynamodb", "describe_table", {"Table": described}, TableName="orders")
    for operation, member in (
        ("describe_scalable_targets", "ScalableTargets"),
        ("describe_scaling_policies", "ScalingPolicies"),
        ("describe_scheduled_actions", "ScheduledActions"),
    ):
        session.answer("application-autoscaling", operation, {member: []}, ServiceNamespace="dynamodb")
    dynamodb, autoscaling = session.client("dynamodb"), session.client("application-autoscaling")
    nothing: Any = None
    clients = RegionClients("eu-west-1", dynamodb, autoscaling, nothing, nothing)
    since = datetime(2026, 1, 3, 11, tzinfo=UTC)
    (table,) = read_tables(clients, ["orders"], since, can_be_fewer=can_be_fewer)
    assert table.problem == f"was created at 2026-01-04 07:30 UTC; {when}"
