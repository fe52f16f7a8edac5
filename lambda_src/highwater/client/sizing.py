"""How many units a job needs to meet a deadline: for a load from its items, for a scan from the table's size."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import boto3

from highwater.client.sessions import check_session
from highwater.core.boosts import LeaseError, units_for_deadline
from highwater.core.units import Dimension

# Time until a boost's capacity can be used: auto scaling's change of a quiet table, and a margin
UNTIL_READY: Final = timedelta(minutes=2)


def write_units_for_load(
    items: int, bytes_per_item: int, within: timedelta, *, until_ready: timedelta = UNTIL_READY
) -> int:
    """Return the write units per second with which a load meets its deadline.

    Args:
        items: How many items it writes, 1 or more.
        bytes_per_item: The size of an item with the names of its attributes, 1 to 409,600 bytes.
        within: How long the load may take from now on.
        until_ready: The part of that time before the capacity can be used. By default two minutes.

    Raises:
        LeaseError: There is nothing to write, or no time to do it in.

    Example:
        ```python
        units = highwater.write_units_for_load(2_000_000, 800, timedelta(minutes=40))
        with highwater.boost("orders", write=units, minutes=45):
            load()
        ```
    """
    return units_for_deadline(Dimension.WRITE, items, bytes_per_item, within, until_ready=until_ready)


def read_units_for_scan(
    table: str,
    within: timedelta,
    *,
    index: str | None = None,
    is_consistent: bool = False,
    until_ready: timedelta = UNTIL_READY,
    session: Any = None,
) -> int:
    """Return the read units per second with which a scan of the whole table meets its deadline.

    Based on the size that DescribeTable returns, which DynamoDB updates about every six hours (Amazon DynamoDB API
    Reference, TableDescription, read 2026-11).

    Args:
        table: The table's name.
        within: How long the scan may take from now on.
        index: The index to scan. By default the table.
        is_consistent: Whether reads are strongly consistent, which costs twice as much. By default they are not.
        until_ready: The part of that time before the capacity can be used. By default two minutes.
        session: The boto3 session to use. By default the default one.

    Raises:
        LeaseError: DescribeTable reports an empty table, there is no such index, or there is no time.
        TypeError: *session* is not boto3's.
        botocore.exceptions.ClientError: The table cannot be described.

    Example:
        ```python
        units = highwater.read_units_for_scan("orders", timedelta(minutes=40))
        with highwater.boost("orders", read=units, minutes=45):
            export()
        ```
    """
    check_session(session, "read_units_for_scan: session")
    described: Any = (session or boto3.Session()).client("dynamodb").describe_table(TableName=table)["Table"]
    found = described
    size, count = "TableSizeBytes", "ItemCount"
    if index is not None:
        size = "IndexSizeBytes"
        kinds = ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
        indexes = {each["IndexName"]: each for kind in kinds for each in described.get(kind, ())}
        if index not in indexes:
            raise LeaseError(f"{table}: has no index {index!r}; it has {', '.join(indexes) or 'none'}")
        found = indexes[index]
    items, total = int(found.get(count, 0)), int(found.get(size, 0))
    if items < 1 or total < 1:
        raise LeaseError(
            f"{table}: is empty by DynamoDB's figures, which may be six hours old; give the units yourself"
        )
    return units_for_deadline(
        Dimension.READ, items, -(-total // items), within, until_ready=until_ready, is_consistent=is_consistent
    )
