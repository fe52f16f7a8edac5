"""A DynamoDB that answers what a test tells it to."""

from __future__ import annotations

import json
from typing import Any

ARN = "arn:aws:dynamodb:eu-central-1:123456789012:table/orders"
CONSUMED = {
    "TableName": "orders",
    "CapacityUnits": 7.0,
    "Table": {"CapacityUnits": 3.0},
    "LocalSecondaryIndexes": {"by_day": {"CapacityUnits": 1.5}},
    "GlobalSecondaryIndexes": {"by_status": {"CapacityUnits": 2.5}},
}
ITEM = {"pk": {"S": "a"}}


class DynamoDB:
    """Answers what it is told to, the last for ever, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, Any]]] = [(200, {"ConsumedCapacity": CONSUMED})]
        self.asked: list[dict[str, Any]] = []

    def serve(self, body: bytes) -> tuple[int, bytes]:
        self.asked.append(json.loads(body))
        status, document = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return status, json.dumps(document).encode()


def throttled(
    reason: str | None = "TableWriteProvisionedThroughputExceeded",
    resource: str = ARN,
    code: str = "ProvisionedThroughputExceededException",
) -> Any:
    document: dict[str, Any] = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}"}
    if reason is not None:
        member = "throttlingReasons" if code == "ThrottlingException" else "ThrottlingReasons"
        document[member] = [{"reason": reason, "resource": resource}]
    return 400, document | {"message": "slow down"}
