"""Tables that the suite makes without CloudFormation."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from acceptance.deployed import target_request
from acceptance.stage import Stage, StageError
from highwater.core import Dimension
from highwater.core.names import TargetName

KEY: Final = "id"


def bare_table_name(stage: Stage, name: str) -> str:
    """What the table is called in this run."""
    return f"{stage.ledger.prefix}-{name}"


def make_bare_table(stage: Stage, name: str, *, units: tuple[int, int], index: str | None = None) -> str:
    """Create a table with *units* of read and write capacity, note it in the ledger, and wait until it is active.

    An *index* has the same capacity and the key `visitor`. Returns the table's name, which is *name* with the run's
    prefix.
    """
    table = bare_table_name(stage, name)
    stage.ledger.add_table(table)
    throughput = dict(zip(("ReadCapacityUnits", "WriteCapacityUnits"), units, strict=True))
    keys = [KEY] if index is None else [KEY, "visitor"]
    request: dict[str, Any] = {
        "TableName": table,
        "KeySchema": [{"AttributeName": KEY, "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in keys],
        "ProvisionedThroughput": throughput,
    }
    if index is not None:
        request["GlobalSecondaryIndexes"] = [index_request(index, "visitor", throughput)]
    dynamodb = stage.place.client("dynamodb")
    dynamodb.create_table(**request)

    def is_there() -> bool:
        return str(dynamodb.describe_table(TableName=table)["Table"]["TableStatus"]) == "ACTIVE"

    if stage.seconds_until(is_there, timedelta(minutes=5), f"create {table}") is None:
        raise StageError(f"table {table} is not active after five minutes")
    return table


def track_writes(stage: Stage, table: str, *, floor: int, ceiling: int, target_percent: int) -> TargetName:
    """Let target tracking scale the table's writes; return what is scaled. It goes with the table."""
    name = TargetName(table, None, Dimension.WRITE)
    target = target_request(name)
    autoscaling = stage.place.client("application-autoscaling")
    autoscaling.register_scalable_target(**target, MinCapacity=floor, MaxCapacity=ceiling)
    autoscaling.put_scaling_policy(
        **target,
        PolicyName=table,
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": float(target_percent),
            "PredefinedMetricSpecification": {"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"},
        },
    )
    return name


def index_request(name: str, key: str, throughput: dict[str, int]) -> dict[str, Any]:
    """An index in requests of DynamoDB, which contains whole items."""
    return {
        "IndexName": name,
        "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
        "ProvisionedThroughput": throughput,
    }
