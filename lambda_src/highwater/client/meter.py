"""Counts what requests to DynamoDB consume and what is refused, attempt by attempt, under an existing session."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from highwater.client.counts import Counts
from highwater.client.requests import (
    RefusalKind,
    Request,
    ask_for_consumption,
    items_left,
    read_request,
    refusals_of,
    table_name,
    take_consumption,
    units_of,
)
from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import SLOT_SECONDS

_KEY: Final = "highwater-meter"
# How much of a new request goes into the mean that refused ones are estimated by
_WEIGHT: Final = 0.1


@dataclass(slots=True)
class _Metered:
    """A request, and whether an attempt of it was refused."""

    request: Request
    is_refused: bool = False


@dataclass(slots=True)
class Meter:
    """Hooks for a boto3 session or client.

    Requests are counted by table, index, dimension and slot of ten seconds. A request refused for want of provisioned
    capacity is counted once, however often it is sent again, by what requests of its kind consume on average. Requests
    that a hot key or a limit of the account refuses are not counted, as more capacity does not help them.

    `ReturnConsumedCapacity` is asked for by index where the caller does not, and the caller sees of it what it asked
    for. No hook raises, and none waits.

    Attributes:
        counts: What is counted.
        is_told: Which tables are counted.
        notice: Called after something was counted.
        clock: Seconds since 1970.
    """

    counts: Counts
    is_told: Callable[[str], bool] = lambda _: True
    notice: Callable[[], None] = lambda: None
    clock: Callable[[], float] = lambda: time.time()
    _means: dict[tuple[str, TargetKey], float] = field(default_factory=dict)

    def install(self, session_or_client: Any) -> None:
        """Meter a client, or the clients and resources that a session makes from now on."""
        events = getattr(session_or_client, "events", None) or session_or_client.meta.events
        for event, hook in self._hooks():
            events.register(event, hook, unique_id=f"highwater-meter-{event}")

    def uninstall(self, session_or_client: Any) -> None:
        """Meter it no longer; clients that a session made meanwhile are metered on."""
        events = getattr(session_or_client, "events", None) or session_or_client.meta.events
        for event, hook in self._hooks():
            events.unregister(event, hook, unique_id=f"highwater-meter-{event}")

    def _hooks(self) -> Iterator[tuple[str, Callable[..., None]]]:
        yield "before-parameter-build.dynamodb", self._begin
        yield "response-received.dynamodb", self._attempt
        yield "after-call.dynamodb", self._end

    def _begin(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        request = read_request(model.name, params)
        if request is None or (request.items and not any(self.is_told(table) for table in request.items)):
            return
        ask_for_consumption(params, context)
        context[_KEY] = _Metered(request)

    def _attempt(self, parsed_response: Any, context: dict[str, Any], **_: Any) -> None:
        metered: _Metered | None = context.get(_KEY) if context else None
        if metered is None or metered.is_refused or not parsed_response:
            return
        refused = [each for each in refusals_of(parsed_response) if each.kind is RefusalKind.PROVISIONED]
        if refused:
            metered.is_refused = True
            for table, items in metered.request.items.items():
                self._refuse(table, (refused[0].index, metered.request.dimension), items)

    def _end(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        metered: _Metered | None = context.pop(_KEY, None) if context else None
        if metered is None:
            return
        request, left = metered.request, items_left(parsed)
        slot = int(self.clock()) // SLOT_SECONDS
        for each in take_consumption(parsed, context):
            table = table_name(each.get("TableName", ""))
            items = max(request.items.get(table, 1) - left.get(table, 0), 1)
            for key, units in units_of(each, request.dimension):
                if units:
                    self._count(table, slot, key, units)
                    self._learn(table, key, units / items)
        for table, number in left.items():
            self._refuse(table, (None, request.dimension), number)
        self.notice()

    def _refuse(self, table: str, key: TargetKey, number: int) -> None:
        units = self._means.get((table, key), 1.0) * number
        if self.is_told(table):
            self.counts.add(table, int(self.clock()) // SLOT_SECONDS, key, units, refused=True)
            self.notice()

    def _count(self, table: str, slot: int, key: TargetKey, units: float) -> None:
        if self.is_told(table):
            self.counts.add(table, slot, key, units)

    def _learn(self, table: str, key: TargetKey, units: float) -> None:
        mean = self._means.get((table, key))
        self._means[table, key] = units if mean is None else mean + _WEIGHT * (units - mean)
