"""`highwater.pace`: keeps the requests of an existing boto3 session within a budget, retries included."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

import boto3

from highwater.bulk.budget import Costs, PaceError, Pacer, Paid, pacer_for
from highwater.client.hooks import (
    PAGED,
    Request,
    Throttle,
    ask_for_consumption,
    items_canceled,
    items_left,
    quietly,
    read_request,
    refusals_of,
    table_name,
    take_consumption,
    units_of,
)
from highwater.client.sessions import arn_place, events_of
from highwater.core.plan.plan import TargetKey
from highwater.core.throttles import ThrottleCause
from highwater.core.units import Dimension

_NUMBERS: Final = itertools.count()
_WEIGHT: Final = 0.3
_WRITE: Final = Dimension.WRITE
# An eventually consistent page of 1 MB; one item of up to 4 KB read, or 1 KB written
_PAGE_UNITS: Final = 128.0
_ITEM_UNITS: Final = 1.0


def pace(
    session_or_client: Any = None,
    *,
    read: float | None = None,
    write: float | None = None,
    table: str | None = None,
    indexes: Mapping[str, float] | None = None,
    pacer: Pacer | None = None,
    budget: str | None = None,
    is_shadow: bool = False,
) -> Pacing:
    """Keep requests within a budget: each attempt, retries included, waits until the budget allows it.

    Clients and resources that the session makes from now on are paced: `batch_writer`, paginators, transactions and
    libraries that take a boto3 session or client work as before. A request's cost is estimated from earlier requests,
    and corrected by the units that it consumed. Tables of one name in two regions have a budget each. When DynamoDB
    throttles requests because of insufficient capacity, the budget falls to 70 %, at most every five seconds, and
    recovers by five percent every ten seconds.

    Args:
        session_or_client: A boto3 session or a DynamoDB client. By default boto3's default session.
        read: Read units per second, fractions allowed. By default reads are not limited.
        write: Write units per second, fractions allowed. By default writes are not limited.
        table: The name of the table to limit. By default each table has a budget of that size.
        indexes: Write units per second of indexes of *table*, by name. By default each index has a budget of the size
            of its table's.
        pacer: Has the budgets; pass one to share them between sessions. By default a new one, or that of the session or
            client if it is paced already: these budgets are then added, or replace those of the same table.
        budget: The name of a budget that all workers with this name share; the rates are those of all together. Needs a
            coordinator and `grant_budget`. By default the budget is this process's own.
        is_shadow: Whether requests do not wait, and the pacer counts in `shadow_seconds` what they would have waited;
            a shadow takes no share of a budget that is shared.

    Returns:
        The pacing, whose `stop` ends it; the same one for a session or client that is paced already.

    Raises:
        PaceError: Neither rate is given, a rate is below 0.001, *indexes* are given without *table*, or of a shared
            budget without *write*, or the session or client is paced by another *pacer* or budget.
        TypeError: The session or client is not boto3's, or the client is one of another service.

    Example:
        ```python
        session = boto3.Session()
        highwater.pace(session, read=500, write=200, table="orders")
        orders = session.resource("dynamodb").Table("orders")
        ```
    """
    if read is None and write is None and not indexes:
        raise PaceError("pace: give read or write, in units per second")
    if indexes and table is None:
        raise PaceError("pace: indexes belong to a table; give table too")
    if session_or_client is None:
        if boto3.DEFAULT_SESSION is None:
            boto3.setup_default_session()
        session_or_client = boto3.DEFAULT_SESSION
    events = events_of(session_or_client, "pace: session_or_client")
    known = _PACED.get(events)
    if budget is not None or is_shadow:
        if pacer is not None:
            raise PaceError("pace: give either pacer or budget and is_shadow; a pacer has shared= and is_shadow=")
        if known is not None and _is_as_asked(known.pacer, budget, is_shadow=is_shadow):
            pacer = known.pacer
        else:
            pacer = pacer_for("pace", None, None if is_shadow else budget, _session_of(session_or_client))
            pacer.is_shadow = is_shadow
    if known is not None and pacer not in (None, known.pacer):
        raise PaceError("pace: another pacer has the budgets of this session or client; stop its pacing first")
    made = known or Pacing(pacer or Pacer())
    if indexes and write is None and made.pacer.shared is not None and not made.pacer.rate(str(table), None, _WRITE):
        raise PaceError("pace: indexes: workers share the budget of their table's writes; give write too")
    for dimension, rate in ((Dimension.READ, read), (Dimension.WRITE, write)):
        if rate is not None:
            made.pacer.limit(table, dimension, rate)
    for index, rate in (indexes or {}).items():
        made.pacer.limit_index(str(table), index, _WRITE, rate)
    if known is None:
        made.install(session_or_client)
    return made


def _is_as_asked(pacer: Pacer, budget: str | None, *, is_shadow: bool) -> bool:
    """Whether the pacer of a session is the one that was asked for: a shadow, or one that shares this budget."""
    shared = None if pacer.shared is None else pacer.shared.name
    return pacer.is_shadow and shared is None if is_shadow else not pacer.is_shadow and shared == budget


def _session_of(session_or_client: Any) -> Any:
    """Return the session whose credentials share a budget: the given one, or a new one in a client's region."""
    if hasattr(session_or_client, "events"):
        return session_or_client
    return boto3.Session(region_name=session_or_client.meta.region_name)


@dataclass(slots=True)
class _Paced:
    """A request, the amount paid for its present attempt, and its kind, by which mean costs are recorded.

    `attempts` is the number of those that were paid for.
    """

    request: Request
    kind: str
    expected: Costs
    paid: Paid | None = None
    attempts: int = 0


@dataclass(slots=True)
class Pacing:
    """Hooks for a boto3 session or client that delay requests to keep within the budgets of a pacer.

    Attributes:
        pacer: Has the budgets.

    Example:
        ```python
        pacing = highwater.pace(session, write=200, table="orders")
        migrate(session)
        pacing.stop()
        ```
    """

    pacer: Pacer = field(default_factory=Pacer)
    _means: dict[tuple[str, str], dict[TargetKey, float]] = field(default_factory=dict)
    # weak references, so that sessions no longer in use are freed, and their pacing with them
    _installed: WeakSet[Any] = field(default_factory=WeakSet)
    # a client may be paced, and its session by another pacing too: a request then waits for both
    _id: str = field(default_factory=lambda: f"highwater-pace-{next(_NUMBERS)}")

    def install(self, session_or_client: Any) -> None:
        """Pace a client, or the clients and resources that a session makes from now on.

        Raises `TypeError` for what is neither a boto3 session nor one of its DynamoDB clients.
        """
        events = events_of(session_or_client, "Pacing.install: session_or_client")
        if self.pacer.region is None:
            meta = getattr(session_or_client, "meta", session_or_client)
            self.pacer.region = meta.region_name
        for event, hook in self._hooks():
            # before other hooks, so that a request is signed after it has waited
            events.register_first(event, hook, unique_id=f"{self._id}-{event}")
        self._installed.add(events)
        _PACED[events] = self

    def stop(self) -> None:
        """Stop pacing; clients that a session has made until now remain paced."""
        for events in list(self._installed):
            for event, hook in self._hooks():
                events.unregister(event, hook, unique_id=f"{self._id}-{event}")
            _PACED.pop(events, None)
        self._installed.clear()
        self.pacer.give_back()

    def _hooks(self) -> Iterator[tuple[str, Callable[..., None]]]:
        yield "before-parameter-build.dynamodb", self._begin
        yield "request-created.dynamodb", self._send
        yield "response-received.dynamodb", self._attempt
        yield "after-call.dynamodb", self._end

    @quietly
    def _begin(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        request = read_request(model.name, params, self._label(context))
        if request is None:
            return
        ask_for_consumption(params, context)
        kind = f"{request.operation} {request.dimension} {params.get('IndexName', '')}"
        context[self._id] = _Paced(request, kind, self._expect(request, kind, params))

    def _send(self, request: Any, **_: Any) -> None:
        paced: _Paced | None = request.context.get(self._id)
        if paced is not None:
            paced.attempts += 1
            paced.paid = self.pacer.wait(paced.expected, is_retry=paced.attempts > 1)

    @quietly
    def _attempt(self, parsed_response: Any, context: dict[str, Any], **_: Any) -> None:
        paced: _Paced | None = context.get(self._id) if context else None
        if paced is None or paced.paid is None or not parsed_response:
            return
        request = paced.request
        canceled, refusals = items_canceled(parsed_response, request), refusals_of(parsed_response)
        if not canceled and not refusals:
            return
        # the next attempt pays again
        paid, paced.paid = paced.paid, None
        why: dict[str, list[Throttle]] = {table: [*_FOR_CAPACITY] for table in canceled}
        label = self._label(context)
        for refusal in refusals:
            for table in refusal.tables(request, label):
                why.setdefault(table, []).append(refusal)
        for table, reasons in why.items():
            self.pacer.refund(paid, table, request.dimension, reasons)
            paid = Paid({})

    @quietly
    def _end(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        paced: _Paced | None = context.pop(self._id, None) if context else None
        if paced is None:
            return
        label = self._label(context)
        consumption = take_consumption(parsed, context)
        left = items_left(parsed, paced.request, label)
        consumed: dict[tuple[str, TargetKey], float] = {}
        for each in consumption:
            table = label(each.get("TableName", ""))
            units = {key: amount for key, amount in units_of(each, paced.request.dimension) if amount}
            consumed |= {(table, key): amount for key, amount in units.items()}
            served = max(paced.request.items.get(table, 1) - left.get(table, 0), 1)
            self._learn(table, paced.kind, {key: amount / served for key, amount in units.items()})
        # an answer without ConsumedCapacity is not settled: its cost is unknown, so the estimate stands
        if paced.paid is not None and (consumed or left):
            self.pacer.settle(paced.paid, consumed)
        for table in left:
            self.pacer.refund(Paid({}), table, paced.request.dimension, _FOR_CAPACITY)

    def _label(self, context: Mapping[str, Any]) -> Callable[[str], str]:
        """Return what gives a table of this request the name of its budget, from its name or ARN."""
        region = context.get("client_region")
        return lambda table: self.pacer.label(table_name(table), arn_place(table)[0] or region)

    def _expect(self, request: Request, kind: str, params: Mapping[str, Any]) -> Costs:
        expected: dict[tuple[str, TargetKey], float] = {}
        for table, items in request.items.items():
            means = self._means.get((table, kind))
            if means is None:
                key = (params.get("IndexName"), request.dimension)
                means = {key: _first_units(request.operation, params)}
            expected |= {(table, key): mean * items for key, mean in means.items()}
        return expected

    def _learn(self, table: str, kind: str, units: Mapping[TargetKey, float]) -> None:
        means = self._means.setdefault((table, kind), dict(units))
        for key in {*means, *units}:
            before = means.get(key, 0.0)
            means[key] = before + _WEIGHT * (units.get(key, 0.0) - before)


_FOR_CAPACITY: Final = (Throttle(ThrottleCause.PROVISIONED),)
# the pacing of each session or client, by its event hooks
_PACED: WeakKeyDictionary[Any, Pacing] = WeakKeyDictionary()


def _first_units(operation: str, params: Mapping[str, Any]) -> float:
    """Return the estimated cost of a request before one of its kind was answered."""
    if operation not in PAGED:
        return _ITEM_UNITS
    page = _PAGE_UNITS * (2 if params.get("ConsistentRead") else 1)
    limit = params.get("Limit")
    return min(page, float(limit)) if isinstance(limit, int) and limit > 0 else page
