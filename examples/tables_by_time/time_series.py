"""A time series in tables by time: the table that an item is written to, and queries over a span."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from periods import PeriodError, Periods

_LOG: Final = logging.getLogger("time_series")
# A table that was missing is looked for again after so long
_LOOK_AGAIN: Final = timedelta(minutes=1)


class TimeSeries:
    """Finds the table to which an item of a time series is written, and reads a span of time from several tables.

    It asks DynamoDB once for each table (`DescribeTable`), and once a minute for one that is missing. May be used from
    several threads.

    Args:
        client: A DynamoDB client of boto3.
        periods: The declaration of the tables.
        clock: Returns the present time, with a time zone. By default that of the machine.

    Example:
        ```python
        events = TimeSeries(client, Periods("events"))
        client.put_item(TableName=events.table_for(at), Item=item)
        ```
    """

    def __init__(
        self, client: Any, periods: Periods, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._client = client
        self._periods = periods
        self._clock = clock
        self._active: set[str] = set()
        self._missing: dict[str, datetime] = {}

    def table_for(self, at: datetime | None = None) -> str:
        """Return the name of the table to which an item is written now; it never raises because a table is missing.

        It is the default table if the table of the instant is not there, or takes no more items. Ask again for each
        item or batch.

        Args:
            at: The time of the item, with a time zone. By default now.

        Raises:
            PeriodError: The time is not valid.
        """
        now = self._clock()
        name = self._periods.home_of(now if at is None else at, now)
        return name if name is not None and self._is_active(name, now) else self._periods.default

    def query(
        self, start: datetime, end: datetime, *, sort_key: str, is_forward: bool = True, **request: Any
    ) -> Iterator[Mapping[str, Any]]:
        """Query the tables of a span, the default table included, and yield the items in the order of their sort key.

        The span chooses the tables; a condition on the sort key chooses the items. A table that does not exist has no
        items. The order is right if sort keys rise with time.

        Args:
            start: The first instant of the span, with a time zone.
            end: The first instant behind it.
            sort_key: The tables' sort key, which has to be in a projection.
            is_forward: Whether the oldest item is first; otherwise the newest is.
            **request: What else `Query` takes: `KeyConditionExpression` and its values, a filter, a projection.

        Raises:
            PeriodError: The span is not valid, or the items do not have the sort key.
            botocore.exceptions.ClientError: A query failed, or the default table does not exist.
        """
        names = self._periods.names(start, end, is_forward=is_forward)
        arguments = {**request, "ScanIndexForward": is_forward}
        by_period = chain.from_iterable(self._items(name, arguments) for name in names)

        def rank(item: Mapping[str, Any]) -> Any:
            if sort_key not in item:
                raise PeriodError(
                    f"query: sort_key: got {sort_key!r}, which the items do not have; name it in ProjectionExpression"
                )
            return _rank_of(item[sort_key])

        default = self._items(self._periods.default, arguments)
        return heapq.merge(by_period, default, key=rank, reverse=not is_forward)

    def _is_active(self, name: str, now: datetime) -> bool:
        if name in self._active:
            return True
        if now < self._missing.get(name, now):
            return False
        try:
            status = self._client.describe_table(TableName=name)["Table"]["TableStatus"]
        except (BotoCoreError, ClientError) as error:
            status = " ".join(str(error).split())
        if status in ("ACTIVE", "UPDATING"):
            self._active.add(name)
            return True
        self._missing[name] = now + _LOOK_AGAIN
        _LOG.warning("items of table %s go to %s: %s", name, self._periods.default, status)
        return False

    def _items(self, name: str, arguments: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        pages = iter(self._client.get_paginator("query").paginate(TableName=name, **arguments))
        try:
            first = next(pages)
        except self._client.exceptions.ResourceNotFoundException:
            if name == self._periods.default:
                raise
            return
        yield from first["Items"]
        for page in pages:
            yield from page["Items"]


def _rank_of(value: Mapping[str, Any]) -> Any:
    """Return what DynamoDB compares a sort key by: numbers by value, texts by UTF-8, binaries by bytes."""
    ((kind, content),) = value.items()
    return Decimal(content) if kind == "N" else content.encode() if kind == "S" else bytes(content)
