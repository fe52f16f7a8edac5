"""The pulses of the fleets, in the coordinator's table: the scaler reads them, and leaves hints for the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from highwater.aws.leases import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE, client
from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import Hint, Slots
from highwater.core.pulses.item import (
    HINT_ATTRIBUTE,
    KEPT_SECONDS,
    hints_text,
    pulse_partition,
    pulse_sort_key,
    slots_of_items,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class PulsesUnavailableError(Exception):
    """The coordinator's table does not answer, or refuses. The message is from AWS."""


class PulseTable:
    """The items with pulses in the coordinator's table.

    Args:
        name: The name of the DynamoDB table.
        dynamodb: The client to use. By default a new one.
    """

    def __init__(self, name: str, dynamodb: DynamoDBClient | None = None) -> None:
        self._name = name
        self._dynamodb = dynamodb or client()

    def read(self, label: str, first_minute: int, newest_slot: int) -> Mapping[TargetKey, Slots]:
        """Read what the fleet of a table told from *first_minute* to *newest_slot*, both counted since 1970.

        The answer has the targets that anything was told of. Raises `PulsesUnavailableError`.
        """
        found = self._call(
            "query",
            ConsistentRead=True,
            KeyConditionExpression="#partition = :partition AND #minute >= :first",
            ExpressionAttributeNames={"#partition": PARTITION_KEY, "#minute": SORT_KEY},
            ExpressionAttributeValues={
                ":partition": {"S": pulse_partition(label)},
                ":first": {"S": pulse_sort_key(first_minute)},
            },
        )
        items = [
            (int(item[SORT_KEY]["S"]), {name: value["N"] for name, value in item.items() if "N" in value})
            for item in found["Items"]
            if item[SORT_KEY]["S"].isdecimal()
        ]
        return slots_of_items(items, first_minute, newest_slot)

    def tell(self, label: str, hints: Mapping[TargetKey, Hint], first_minute: int, minutes: int) -> None:
        """Leave hints in the items of so many minutes from *first_minute* on; raises `PulsesUnavailableError`."""
        for minute in range(first_minute, first_minute + minutes):
            self._call(
                "update_item",
                Key={PARTITION_KEY: {"S": pulse_partition(label)}, SORT_KEY: {"S": pulse_sort_key(minute)}},
                UpdateExpression="SET #hint = :hint, #expires = :expires",
                ExpressionAttributeNames={"#hint": HINT_ATTRIBUTE, "#expires": TTL_ATTRIBUTE},
                ExpressionAttributeValues={
                    ":hint": {"S": hints_text(hints)},
                    ":expires": {"N": str(minute * 60 + KEPT_SECONDS)},
                },
            )

    def _call(self, operation: str, **request: Any) -> Any:
        try:
            return getattr(self._dynamodb, operation)(TableName=self._name, **request)
        except (ClientError, BotoCoreError) as error:
            raise PulsesUnavailableError(str(error)) from error
