"""The item of a shared budget in memory, with other workers' entries, and a clock that moves where a worker waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError

from highwater.budgets import SharedBudget
from highwater.budgets.shared import WhenLost
from highwater.budgets.shares import Member, members_of_text, members_text
from highwater.core.units import Dimension

SECOND = 1_000_000_000
LANE = ("orders", None, Dimension.WRITE)
AT = ("orders", (None, Dimension.WRITE))
RATE = 600_000
# a Friday; AWS's clock and this machine's agree
BEGAN = 1_805_000_000.0


@dataclass
class Record:
    """The item of one budget, and the clock, which moves where the worker waits."""

    now: int = 5 * SECOND
    members: list[Member] = field(default_factory=list)
    version: int = 0
    writes: int = 0
    reads: int = 0
    losses: int = 0
    error: Exception | None = None
    frozen: float = 0.0
    loses_answer: bool = False
    before_write: Callable[[], None] | None = None
    key: dict[str, Any] = field(default_factory=dict)

    def worker(self, *, when_lost: WhenLost = "stop", workers: int | None = None) -> SharedBudget:
        return SharedBudget(
            name="nightly",
            when_lost=when_lost,
            workers=workers,
            clock=lambda: self.now,
            wall=self.wall,
            pause=self.pause,
            table="leases",
            connect=lambda: self,
        )

    def wall(self) -> float:
        return BEGAN + self.now / SECOND + self.frozen

    def pause(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)

    @property
    def at(self) -> int:
        """AWS's time in milliseconds."""
        return round(self.wall() * 1_000)

    def add(self, id: str, *, share: int = 0, wants: int = RATE, rate: int = RATE, seconds: float = 30) -> None:
        self.members = [*self.members, Member(id, rate, wants, share, self.at + round(seconds * 1_000))]
        self.version += 1

    def get_item(self, **request: Any) -> dict[str, Any]:
        self.reads += 1
        self._fail()
        self.key = request["Key"]
        item = {"members": {"S": members_text(self.members)}, "version": {"N": str(self.version)}}
        return self._answer({"Item": item} if self.version else {})

    def update_item(self, **request: Any) -> dict[str, Any]:
        if self.before_write is not None:
            change, self.before_write = self.before_write, None
            change()
        self._fail()
        values = request["ExpressionAttributeValues"]
        if int(values.get(":old", {}).get("N", "0")) != self.version:
            self.losses += 1
            raise ClientError({"Error": {"Code": "ConditionalCheckFailedException"}}, "UpdateItem")
        self.members, self.version = members_of_text(values[":members"]["S"]), int(values[":new"]["N"])
        self.writes += 1
        if self.loses_answer:
            raise GONE
        return self._answer({})

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error

    def _answer(self, found: dict[str, Any]) -> dict[str, Any]:
        date = format_datetime(datetime.fromtimestamp(int(self.wall()), UTC), usegmt=True)
        return found | {"ResponseMetadata": {"HTTPHeaders": {"date": date}}}


@dataclass
class SilentForCarts(Record):
    """A table that does not answer for the budget of carts until a time."""

    silent_until: int = 0

    def get_item(self, **request: Any) -> dict[str, Any]:
        is_of_carts = request["Key"]["item"]["S"].startswith("carts")
        self.error = GONE if is_of_carts and self.now < self.silent_until else None
        return super().get_item(**request)


GONE = EndpointConnectionError(endpoint_url="https://dynamodb.eu-west-1.amazonaws.com/")
