"""The records of a coordinator's table, which many processes write: read, changed, and written unless they changed.

Leases, shared budgets, jobs and the elections of fleets are records. Nothing else knows the keys of that table.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from highwater.calls.attempts import LOST_WRITE
from highwater.core.names import PARTITION_KEY, SORT_KEY

T = TypeVar("T")
# Partition key and sort key
Key: TypeAlias = tuple[str, str]
# Attributes in DynamoDB's JSON
Item: TypeAlias = Mapping[str, Any]
_WHOLE_NUMBER: Final = re.compile(r"[0-9]{1,30}")
_FIRST_VERSIONS: Final = 10**18
_NAME: Final = re.compile(r"#(\w+)")
_KEYS: Final = {"#table": PARTITION_KEY, "#item": SORT_KEY}


def pause_after_lost_write(attempt: int) -> None:
    """Wait after write number *attempt* was lost, as another process had written the record."""
    time.sleep(LOST_WRITE.seconds(attempt))


def sort_key_of(item: Item) -> str:
    """Return the sort key of an item."""
    return str(item[SORT_KEY]["S"])


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one table.

    Attributes:
        table: The table's name.
        dynamodb: The client.
        hear: Gets each answer, and each that a condition was not met, such as to note AWS's time.
        fails: Makes the error that is raised in place of one of botocore's. By default that one is raised.
    """

    table: str
    dynamodb: Any
    hear: Callable[[dict[str, Any]], Any] = lambda _: None
    fails: Callable[[Exception], Exception] | None = None

    def change(
        self,
        key: Key,
        changed: Callable[[Item], tuple[T, Item | None]],
        again: Callable[[int], None] = pause_after_lost_write,
    ) -> T:
        """Change a record, and return the result of *changed*; the one loop of reads and writes on a version.

        Args:
            key: The record's key.
            changed: Gets the record, empty if there is none; returns its result and the attributes to set, `None` to
                write nothing. Called again if another process has written the record meanwhile.
            again: Waits before that, given the number of writes that were lost; raises to give up.
        """
        lost = 0
        while True:
            found = self.read(key)
            result, attributes = changed(found)
            if attributes is None or self.replace(key, found.get("version"), attributes):
                return result
            lost += 1
            again(lost)

    def replace(self, key: Key, version: Item | None, attributes: Item) -> bool:
        """Set attributes of a record if it still has the *version* that was read, `None` for none; return whether."""
        old = {} if version is None else {"old": version}
        written = self.update(
            key,
            f"SET {''.join(f'#{name} = :{name}, ' for name in attributes)}version = :new",
            "attribute_not_exists(version)" if version is None else "version = :old",
            {**attributes, "new": {"N": str(_next(version))}, **old},
        )
        return written is not None

    def read(self, key: Key) -> Item:
        """Return a record as it is now, empty if there is none."""
        found: Item = self.get(key).get("Item", {})
        return found

    def get(self, key: Key, **more: Any) -> dict[str, Any]:
        """Return the whole answer to a consistent `GetItem`; *more* are other parameters of it."""
        return self._send("get_item", Key=_key(key), ConsistentRead=True, **more)

    def update(
        self,
        key: Key,
        change: str,
        condition: str | None,
        values: Item,
        names: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Item | None:
        """Update a record; return the attributes of the answer, `None` if the condition was not met.

        In the expressions `#name` is the attribute of that name, unless *names* has another, and `:name` the value.
        """
        known = {f"#{name}": name for name in _NAME.findall(f"{change} {condition or ''}")} | dict(names or {})
        more |= {"ExpressionAttributeNames": known} if known else {}
        more |= {} if condition is None else {"ConditionExpression": condition}
        texts = {f":{name}": value for name, value in values.items()}
        try:
            answer = self._send(
                "update_item", Key=_key(key), UpdateExpression=change, ExpressionAttributeValues=texts, **more
            )
        except _ConditionError:
            return None
        found: Item = answer.get("Attributes", {})
        return found

    def put(self, key: Key, attributes: Item) -> None:
        """Write a record whole, whatever there is."""
        self._send("put_item", Item={**_key(key), **attributes})

    def delete(self, key: Key) -> None:
        """Delete a record, if there is one."""
        self._send("delete_item", Key=_key(key))

    def pages(
        self, partition: str, *, begins_with: str | None = None, between: tuple[str, str] | None = None, **more: Any
    ) -> Iterator[dict[str, Any]]:
        """Yield the pages of the records of a partition key, of all sort keys, of a prefix, or of a range of them."""
        condition, values = "#table = :table", {":table": partition}
        if begins_with is not None:
            condition, values[":item"] = f"{condition} AND begins_with(#item, :item)", begins_with
        if between is not None:
            condition += " AND #item BETWEEN :first AND :last"
            values[":first"], values[":last"] = between
        return self._pages("query", condition, values, KeyConditionExpression=condition, **more)

    def partitions(self, prefix: str, sort_key: str) -> list[str]:
        """Return the partition keys with a prefix that have a record of a sort key; reads the whole table."""
        condition, values = "#item = :item AND begins_with(#table, :table)", {":table": prefix, ":item": sort_key}
        pages = self._pages("scan", condition, values, FilterExpression=condition)
        return sorted(item[PARTITION_KEY]["S"] for page in pages for item in page["Items"])

    def _pages(
        self, operation: str, condition: str, values: Mapping[str, str], **request: Any
    ) -> Iterator[dict[str, Any]]:
        request["ExpressionAttributeNames"] = {name: key for name, key in _KEYS.items() if name in condition}
        request["ExpressionAttributeValues"] = {name: {"S": text} for name, text in values.items()}
        while True:
            page = self._send(operation, **request)
            yield page
            if not page.get("LastEvaluatedKey"):
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _send(self, operation: str, **request: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = getattr(self.dynamodb, operation)(TableName=self.table, **request)
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                self.hear(dict(error.response))
                raise _ConditionError from None
            if self.fails is None:
                raise
            raise self.fails(error) from error
        self.hear(answer)
        return answer


class _ConditionError(Exception):
    """The condition of a write was not met."""


def _key(key: Key) -> dict[str, Any]:
    return {PARTITION_KEY: {"S": key[0]}, SORT_KEY: {"S": key[1]}}


def _next(version: Item | None) -> int:
    """Return the version after one; a random one after none, and after one of another program that is no whole number.

    So a record that is deleted and made again does not repeat a version: a writer that read it before the deletion
    cannot write over the new record.
    """
    text = str((version or {}).get("N", ""))
    return int(text) + 1 if _WHOLE_NUMBER.fullmatch(text) else 1 + secrets.randbelow(_FIRST_VERSIONS)
