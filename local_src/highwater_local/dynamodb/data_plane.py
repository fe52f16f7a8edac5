"""The data plane: wraps MiniStack's operations on items, charges them, and throttles them.

MiniStack checks a request, evaluates its conditions and carries it out. This module wraps the few functions by which
every operation reads and writes items: it charges these reads and writes, and may end the request there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from highwater_local import ministack
from highwater_local.dynamodb.batches import Batches, Transactions
from highwater_local.dynamodb.call import (
    CURRENT,
    OK,
    Handler,
    MeteredCall,
    Throttled,
    charging,
    held_back,
    meters_of,
    page_charge,
    size_of,
    with_capacity,
)
from highwater_local.dynamodb.charges import read_units
from highwater_local.dynamodb.reads import Selects, has_to_fetch, items_after, read_refusal, sort_key
from highwater_local.dynamodb.sizes import forget_sizes, note_write
from highwater_local.dynamodb.wording import duplicates_text, written_as_before
from highwater_local.ministack import Answer, Document, rejected
from highwater_local.requests import errors_text, unmet_text

_LEAST_LIMIT: Final = "have value greater than or equal to 1"
Own = Callable[..., Any]


class DataPlane:
    """All operations on items, wrapping MiniStack's; *second* returns the cloud's time in seconds since 1970."""

    def __init__(self, second: Callable[[], int]) -> None:
        self._second = second
        ministack.set_item.wrap(_set_item)
        ministack.remove_item.wrap(_remove_item)
        ministack.items_replaced.wrap(_replace_items)
        ministack.fail_condition.wrap(_fail_condition)
        self._page = ministack.page_of.replace(self._on_page)
        self._projected = ministack.projected.replace(self._on_projected)
        ministack.parse_statement.wrap(_parse)
        ministack.items_after.replace(items_after)
        for name, operation in ministack.ITEM_OPERATIONS.items():
            operation.wrap(partial(self._carry_out, name))
        ministack.get_item.wrap(self._get)
        ministack.execute_statement.wrap(self._execute)
        for statement in ministack.WRITING_STATEMENTS:
            statement.wrap(_write_by_statement)
        ministack.duplicates_text.wrap(duplicates_text)
        ministack.replicate.wrap(_replicate)
        Batches(self.call)
        Transactions(self.call)
        Selects()

    def call(self, operation: str, **more: Any) -> MeteredCall:
        """Return a call that begins now."""
        return MeteredCall(operation, self._second(), **more)

    def _carry_out(self, operation: str, own: Handler, data: Document) -> Answer:
        """Carry out an operation on one table."""
        call = self.call(
            operation,
            table=ministack.find_table(data.get("TableName")),
            is_consistent=data.get("ConsistentRead") is True,
            segments=_positive(data.get("TotalSegments")),
        )
        if operation in ("Query", "Scan") and call.table is not None:
            refusal = read_refusal(operation, call.table, data, call.second)
            if refusal is not None:
                return rejected(refusal)
            call.has_to_fetch = has_to_fetch(call.table, data)
        try:
            with charging(call):
                answer = own(data)
                if answer[0] == OK and not call.charges and call.table is not None:
                    # a delete of a missing item is still a write
                    call.write(call.table, None, data.get("Key"))
        except Throttled as held:
            return held_back(call, held)
        return with_capacity(written_as_before(operation, answer), data, call)

    def _get(self, own: Handler, data: Document) -> Answer:
        answer = own(data)
        table = ministack.find_table(data.get("TableName"))
        if answer[0] != OK or table is None:
            return answer
        call = self.call("GetItem", table=table, is_consistent=data.get("ConsistentRead") is True)
        try:
            call.read(table, data["Key"])
        except Throttled as held:
            return held_back(call, held)
        return with_capacity(answer, data, call)

    def _execute(self, own: Handler, data: Document) -> Answer:
        """Carry out a single statement, or one of a batch, which is charged to the batch's call."""
        outer = CURRENT.get()
        operation = "ExecuteStatement" if outer is None else outer.operation
        call = self.call(operation, is_consistent=data.get("ConsistentRead") is True, request=data)
        limit = data.get("Limit")
        if isinstance(limit, int) and limit < 1:
            return rejected(errors_text([unmet_text(str(limit), "limit", _LEAST_LIMIT)]))
        try:
            with charging(call):
                answer = own(data)
                is_write = not str(data.get("Statement", "")).strip().upper().startswith("SELECT")
                if answer[0] == OK and is_write and not call.charges and call.table is not None:
                    call.write(call.table, None, None)
        except Throttled as held:
            return held_back(call, held)
        if outer is not None:
            outer.join(call)
        return with_capacity(answer, data, call)

    def _on_page(self, items: Any, limit: Any, table: Document, index: str | None = None) -> Any:
        page, has_more = self._page(items, limit, table, index)
        call = CURRENT.get()
        if call is not None:
            shown = [self._projected(item, table, index) for item in page] if index else page
            charge, hashes = page_charge(call, table, index, shown, is_last=not has_more)
            if call.has_to_fetch:
                charge.table += sum(read_units(size_of(item), is_consistent=call.is_consistent) for item in page)
            call.take(table, charge, hashes)
            call.is_fetching = call.has_to_fetch
        return page, has_more

    def _on_projected(self, item: Document, table: Document, index: str | None) -> Document:
        """Return the part of an item that a read of an index gets; all of it if fetched, once its page is charged."""
        call = CURRENT.get()
        shown: Document = item if call is not None and call.is_fetching else self._projected(item, table, index)
        return shown


def _set_item(own: Own, table: Document, pk: Any, sk: Any, item: Document) -> Any:
    _note(table, pk, sk, item)
    return own(table, pk, sort_key(table, sk), item)


def _remove_item(own: Own, table: Document, pk: Any, sk: Any) -> Any:
    _note(table, pk, sk, None)
    return own(table, pk, sk)


def _note(table: Document, pk: Any, sk: Any, item: Document | None) -> None:
    """Charge a write of an item, or its removal, to the present call, and count it."""
    call, old = CURRENT.get(), table["items"].get(pk, {}).get(sk)
    if call is not None:
        call.write(table, old, item)
    note_write(table, old, item)


def _replace_items(own: Own, table: Document) -> None:
    forget_sizes(table)
    own(table)


def _fail_condition(own: Own, data: Document, old: Document | None, *more: Any) -> Any:
    call = CURRENT.get()
    if call is not None and call.table is not None and call.is_strict:
        # nothing is written, so no index is charged
        call.write(call.table, old, old)
        if call.operation != "BatchExecuteStatement":
            # nor is an INSERT of an item that is there counted (recorded: radkawar/stackd 9dc356f,
            # dynamodb/partiql_failure_metrics)
            meters_of(call.table).failed_conditions[call.second // 60] += 1
    return own(data, old, *more)


def _parse(own: Own, statement: Any, parameters: Any) -> Any:
    """Accept an index that is named without quotes, as in `FROM orders.by_day`, if no table has that name."""
    parsed = own(statement, parameters)
    name, dot, index = str(parsed.get("table") or "").rpartition(".")
    if dot and not parsed.get("index") and not ministack.find_table(parsed["table"]) and ministack.find_table(name):
        return parsed | {"table": name, "index": index}
    return parsed


def _write_by_statement(own: Own, table: Document, *more: Any) -> Any:
    """Carry out a statement that writes, which sets the table of its call.

    An INSERT of an item that is there is charged for that item (recorded: radkawar/stackd 9dc356f,
    dynamodb/partiql_failure_metrics).
    """
    call = CURRENT.get()
    if call is None:
        return own(table, *more)
    call.table = table
    answer = own(table, *more)
    if answer[0] != OK and b'"DuplicateItemException"' in answer[2]:
        item = more[0]["item"]
        there = ministack.find_item(table, item.get("M", item))
        call.write(table, there, there)
    return answer


def _replicate(own: Own, *arguments: Any) -> Any:
    """Replicate without a charge: the service itself writes to replicas."""
    with charging(None):
        return own(*arguments)


def _positive(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 1
