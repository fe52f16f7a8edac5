"""The data plane: stands in front of MiniStack's operations on items, charges them, and holds them back.

MiniStack checks a request, evaluates its conditions and carries it out; this module sees what it is about to write and
what it has read through the few functions that every operation goes through, and may end the request there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services import dynamodb

from highwater_lab.local.capacity.answers import OK, Answer, Handler, find_table, held_back, with_capacity
from highwater_lab.local.capacity.batches import Batches
from highwater_lab.local.capacity.call import CURRENT, Call, charging, page_charge
from highwater_lab.local.capacity.throttled import Throttled
from highwater_lab.local.capacity.transactions import Transactions
from highwater_lab.local.resources import Document


class DataPlane:
    """Every operation on items of this cloud; *second* tells the cloud's time in seconds since 1970."""

    def __init__(self, second: Callable[[], int]) -> None:
        self._second = second
        self._set_item = dynamodb._set_item
        self._remove_item = dynamodb._remove_item
        self._condition_failed = dynamodb._conditional_check_failed
        self._page = dynamodb._paginate_evaluated_items
        self._select = dynamodb._partiql_select
        self._replicate = dynamodb._replicate_write

    def install(self) -> None:
        """Stand in front of MiniStack's functions; it looks them up at each call."""
        dynamodb._set_item = self._on_set
        dynamodb._remove_item = self._on_remove
        dynamodb._conditional_check_failed = self._on_failed_condition
        dynamodb._paginate_evaluated_items = self._on_page
        dynamodb._partiql_select = self._on_select
        dynamodb._replicate_write = self._on_replicate
        for operation, name in (
            ("PutItem", "_put_item"),
            ("UpdateItem", "_update_item"),
            ("DeleteItem", "_delete_item"),
            ("Query", "_query"),
            ("Scan", "_scan"),
        ):
            setattr(dynamodb, name, self._of_table(operation, getattr(dynamodb, name)))
        dynamodb._get_item = self._get(dynamodb._get_item)
        dynamodb._execute_statement = self._statement(dynamodb._execute_statement)
        for name in ("_partiql_insert", "_partiql_update", "_partiql_delete"):
            setattr(dynamodb, name, self._on_statement(getattr(dynamodb, name)))
        Batches(self.call).install()
        Transactions(self.call).install()

    def call(self, operation: str, **more: Any) -> Call:
        """A call that begins now."""
        return Call(operation, self._second(), **more)

    def _of_table(self, operation: str, own: Handler) -> Handler:
        """An operation on one table."""

        def handle(data: Document) -> Answer:
            call = self.call(
                operation,
                table=find_table(data.get("TableName")),
                is_consistent=data.get("ConsistentRead") is True,
                segments=_positive(data.get("TotalSegments")),
            )
            try:
                with charging(call):
                    answer = own(data)
                    if answer[0] == OK and not call.charges and call.table is not None:
                        # a delete of what is not there is still a write
                        call.write(call.table, None, data.get("Key"))
            except Throttled as held:
                return held_back(call, held)
            return with_capacity(answer, data, call)

        return handle

    def _get(self, own: Handler) -> Handler:
        def handle(data: Document) -> Answer:
            answer = own(data)
            table = find_table(data.get("TableName"))
            if answer[0] != OK or table is None:
                return answer
            call = self.call("GetItem", table=table, is_consistent=data.get("ConsistentRead") is True)
            key = data["Key"]
            try:
                call.read(table, dynamodb._get_item_by_key(table, key), key.get(table["pk_name"]))
            except Throttled as held:
                return held_back(call, held)
            return with_capacity(answer, data, call)

        return handle

    def _statement(self, own: Handler) -> Handler:
        """A statement by itself, or one of a batch, whose call it joins."""

        def handle(data: Document) -> Answer:
            outer = CURRENT.get()
            call = self.call("ExecuteStatement", is_consistent=data.get("ConsistentRead") is True)
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

        return handle

    def _on_set(self, table: Document, pk: Any, sk: Any, item: Document) -> Any:
        call = CURRENT.get()
        if call is not None:
            call.write(table, table["items"].get(pk, {}).get(sk), item)
        return self._set_item(table, pk, sk, item)

    def _on_remove(self, table: Document, pk: Any, sk: Any) -> Any:
        call = CURRENT.get()
        if call is not None:
            call.write(table, table["items"].get(pk, {}).get(sk), None)
        return self._remove_item(table, pk, sk)

    def _on_failed_condition(self, data: Document, old: Document | None, *more: Any) -> Any:
        call = CURRENT.get()
        if call is not None and call.table is not None and call.is_strict:
            # nothing is written, so no index pays
            call.write(call.table, old, old)
        return self._condition_failed(data, old, *more)

    def _on_page(self, items: Any, limit: Any, table: Document, index: str | None = None) -> Any:
        page, has_more = self._page(items, limit, table, index)
        call = CURRENT.get()
        if call is not None:
            shown = [dynamodb._apply_index_projection(item, table, index) for item in page] if index else page
            charge, hashes = page_charge(call, table, index, shown, is_last=not has_more)
            call.take(table, charge, hashes)
        return page, has_more

    def _on_select(self, table: Document, parsed: Document) -> Any:
        """A SELECT on a table: one partition's items where the key is given, all of them where not."""
        call = CURRENT.get()
        if call is None:
            return self._select(table, parsed)
        equal = {attr: value for attr, op, value in parsed.get("conditions") or [] if op == "="}
        keys = [name for name in (table["pk_name"], table["sk_name"]) if name]
        if call.operation == "ExecuteTransaction" or all(name in equal for name in keys):
            key = {name: equal[name] for name in keys}
            call.read(table, dynamodb._get_item_by_key(table, key), key[table["pk_name"]])
        else:
            own = table["items"].values()
            if table["pk_name"] in equal:
                own = [table["items"].get(dynamodb._extract_key_val(equal[table["pk_name"]]), {})]
            items = [item for partition in own for item in partition.values()]
            charge, hashes = page_charge(call, table, None, items, is_last=False)
            call.take(table, charge, hashes)
        return self._select(table, parsed)

    def _on_statement(self, own: Callable[..., Any]) -> Callable[..., Any]:
        """A statement that writes: tells its call which table it is for."""

        def handle(table: Document, *more: Any) -> Any:
            call = CURRENT.get()
            if call is not None:
                call.table = table
            return own(table, *more)

        return handle

    def _on_replicate(self, *arguments: Any) -> Any:
        """Replicas are written to by the service; their capacity is not charged here."""
        with charging(None):
            return self._replicate(*arguments)


def _positive(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 1
