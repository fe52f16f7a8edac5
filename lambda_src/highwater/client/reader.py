"""Reads single pages within a budget, and sends again what was refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError

from highwater.client.paced_work import GOES_ON, TRIES, PacedWorkError, pause_before
from highwater.client.pacer import Pacer
from highwater.client.requests import refusals_of
from highwater.core.pacing import PageSize
from highwater.core.units import Dimension


@dataclass(slots=True)
class PageReader:
    """Reads pages of one table or index; may be used from several threads.

    Attributes:
        client: A DynamoDB client that sends each request once.
        pacer: The budget.
        table: The table's name.
        index: The index, `None` for the table.
        size: Chooses how many items a page has.
        arguments: What every request has.
        pause: Waits for so many seconds.
    """

    client: Any
    pacer: Pacer
    table: str
    index: str | None
    size: PageSize
    arguments: Mapping[str, Any]
    pause: Callable[[float], None] = lambda seconds: time.sleep(seconds)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, segment: int, key: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the page of a segment after *key*, `None` for its first one.

        A request that is refused for want of capacity is sent again for as long as it takes. Raises `PacedWorkError`
        for one that is refused for another reason, or fails eight times.
        """
        start = {} if key is None else {"ExclusiveStartKey": key}
        at = (self.table, (self.index, Dimension.READ))
        failed, throttled = 0, 0
        while True:
            with self._lock:
                limit, expected = self.size.limit, self.size.milliunits / 1_000
            paid = self.pacer.wait({at: expected})
            try:
                page: dict[str, Any] = self.client.scan(
                    **self.arguments, **start, Segment=segment, Limit=limit, ReturnConsumedCapacity="TOTAL"
                )
            except ClientError as error:
                refusals = refusals_of(error.response)
                if refusals:
                    self.pacer.refund(paid, self.table, Dimension.READ, refusals)
                    throttled += 1
                    self.pause(pause_before(throttled))
                    continue
                if error.response["ResponseMetadata"].get("HTTPStatusCode", 400) < 500:
                    raise PacedWorkError(self._why(error)) from error
                failed += 1
                self._give_up_after(failed, error)
            except (ConnectionError, HTTPClientError) as error:
                failed += 1
                self._give_up_after(failed, error)
            except BotoCoreError as error:
                raise PacedWorkError(self._why(error)) from error
            else:
                units = self.units_of(page)
                self.pacer.settle(paid, {at: units})
                with self._lock:
                    self.size.learn(units, int(page["ScannedCount"]))
                return page

    def units_of(self, page: Mapping[str, Any]) -> float:
        """Return the read units that a page consumed."""
        return float((page.get("ConsumedCapacity") or {}).get("CapacityUnits") or 0)

    def _give_up_after(self, failed: int, error: Exception) -> None:
        if failed >= TRIES:
            raise PacedWorkError(f"{self._why(error)} (tried {TRIES} times)") from error
        self.pause(pause_before(failed))

    def _why(self, error: Exception) -> str:
        return f"scan of {self.table} stopped: {error}; {GOES_ON}"
