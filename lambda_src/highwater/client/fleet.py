"""The fleet as one process sees it: what it adds to the minute's item, and what the item says of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.exceptions import ClientError

from highwater.client.counts import Amounts
from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import SLOTS_PER_MINUTE, Hint, Slots
from highwater.core.pulses.item import (
    HINT_ATTRIBUTE,
    KEPT_SECONDS,
    WOKEN_ATTRIBUTE,
    amount_attribute,
    hints_of_text,
    pulse_partition,
    pulse_sort_key,
    slots_of_items,
)

# as highwater.aws.leases has them, which clients may not import
PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE = "table", "item", "expires"
_MINUTES_KEPT: Final = 3


@dataclass(slots=True)
class FleetTable:
    """One table's items, and what they last said.

    Attributes:
        dynamodb: A DynamoDB client of its own.
        pulse_table: The name of the coordinator's table.
        label: The table that is told of.
        hints: What the scaler told last, by target.
    """

    dynamodb: Any
    pulse_table: str
    label: str
    hints: dict[TargetKey, Hint] = field(default_factory=dict)
    _minutes: dict[int, dict[str, str]] = field(default_factory=dict)

    def add(self, amounts: Amounts) -> None:
        """Add to the items of the minutes that the amounts are of, and learn what the fleet told.

        Raises `ClientError` or `BotoCoreError` of the first item that cannot be written; *amounts* then has what
        certainly was not told. What may have arrived is not in it, as it would count twice.
        """
        for minute in sorted({slot // SLOTS_PER_MINUTE for slot, _, _ in amounts}):
            parts = {at: units for at, units in amounts.items() if at[0] // SLOTS_PER_MINUTE == minute}
            names = {f"#a{number}": amount_attribute(at[0], at[1], refused=at[2]) for number, at in enumerate(parts)}
            values = {f":a{number}": {"N": _text(units)} for number, units in enumerate(parts.values())}
            adding = ", ".join(f"#a{number} :a{number}" for number in range(len(parts)))
            may_have_arrived = True
            try:
                found = self.dynamodb.update_item(
                    TableName=self.pulse_table,
                    Key=self._key(minute),
                    UpdateExpression=f"ADD {adding} SET #expires = :expires",
                    ExpressionAttributeNames={**names, "#expires": TTL_ATTRIBUTE},
                    ExpressionAttributeValues={**values, ":expires": {"N": str(minute * 60 + KEPT_SECONDS)}},
                    ReturnValues="ALL_NEW",
                )
            except ClientError as error:
                may_have_arrived = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400) >= 500
                raise
            finally:
                if may_have_arrived:
                    for at in parts:
                        del amounts[at]
            self._learn(minute, found["Attributes"])

    def is_elected(self, slot: int) -> bool:
        """Whether this process is the one of the fleet that wakes the scaler in a slot."""
        try:
            self.dynamodb.update_item(
                TableName=self.pulse_table,
                Key=self._key(slot // SLOTS_PER_MINUTE),
                UpdateExpression="SET #woken = :slot",
                ConditionExpression="attribute_not_exists(#woken) OR #woken < :slot",
                ExpressionAttributeNames={"#woken": WOKEN_ATTRIBUTE},
                ExpressionAttributeValues={":slot": {"N": str(slot)}},
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                return False
            raise
        return True

    def slots(self, newest_slot: int) -> Mapping[TargetKey, Slots]:
        """What the fleet told of the last minutes, as far as this process has seen, up to a slot since 1970."""
        first = newest_slot // SLOTS_PER_MINUTE - _MINUTES_KEPT + 1
        return slots_of_items(self._minutes.items(), first, newest_slot)

    def needing_help(self, newest_slot: int) -> Iterator[TargetKey]:
        """The targets whose bucket will not last, or where requests are refused."""
        for key, slots in self.slots(newest_slot).items():
            hint = self.hints.get(key)
            # without a hint nobody knows the capacity: the scaler is asked to look
            if hint is None or hint.needs_help(slots):
                yield key

    def is_near(self, newest_slot: int) -> bool:
        """Whether the fleet asks for so much of any target that its pulses should come often."""
        found = self.slots(newest_slot)
        return any(key in self.hints and self.hints[key].is_near(slots) for key, slots in found.items())

    def _learn(self, minute: int, attributes: Mapping[str, Mapping[str, str]]) -> None:
        self._minutes[minute] = {name: value["N"] for name, value in attributes.items() if "N" in value}
        for old in [each for each in self._minutes if each <= minute - _MINUTES_KEPT]:
            del self._minutes[old]
        told = hints_of_text(attributes.get(HINT_ATTRIBUTE, {}).get("S", "{}"))
        self.hints.update(told)

    def _key(self, minute: int) -> dict[str, Any]:
        return {PARTITION_KEY: {"S": pulse_partition(self.label)}, SORT_KEY: {"S": pulse_sort_key(minute)}}


def _text(units: float) -> str:
    return f"{units:.1f}".removesuffix(".0")
