"""SELECT of PartiQL: in the order of its keys, in pages, and charged for what it reads.

MiniStack reads whole tables, and orders the items of an index by the text of their keys. This module finds the items
that DynamoDB would read, those of the key that the statement names or all of them, takes a page of them, and leaves it
to MiniStack to filter and project that page.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final

from highwater_local import ministack
from highwater_local.capacity.answers import OK, Answer
from highwater_local.capacity.call import CURRENT, Call, charging
from highwater_local.capacity.index_fetches import contains
from highwater_local.capacity.refused_reads import attributes_of, building_refusal
from highwater_local.resources import Document

_WRONG_TOKEN: Final = "The provided NextToken is invalid"  # noqa: S105 - a text of DynamoDB's
Handler = Callable[..., Answer]
# Members that ask for a page of the answer
_PAGING: Final = frozenset({"Limit", "NextToken", "ReturnConsumedCapacity"})


class Selects:
    """SELECT on tables and on indexes, in front of MiniStack's."""

    def __init__(self) -> None:
        self._table: Handler = ministack.select.replace(self.of_table)
        self._index: Handler = ministack.select_of_index.replace(self.of_index)

    def of_table(self, table: Document, parsed: Document) -> Answer:
        """A SELECT on a table: one item where its key is given, else a page of a partition or of all items."""
        call = CURRENT.get()
        if call is None:
            return self._table(table, parsed)
        equal = {attr: value for attr, op, value in parsed.get("conditions") or [] if op == "="}
        keys = [name for name in (table["pk_name"], table["sk_name"]) if name]
        if call.operation == "ExecuteTransaction" or all(name in equal for name in keys):
            key = {name: equal[name] for name in keys}
            call.read(table, ministack.find_item(table, key), key[table["pk_name"]])
            return self._table(table, parsed)
        return self._page(call, table, parsed, None, keys)

    def of_index(self, table: Document, parsed: Document, request: Document) -> Answer:
        """A SELECT on an index: a page of one of its partitions or of all its items."""
        whole = {name: value for name, value in request.items() if name not in _PAGING}
        # what MiniStack refuses does not depend on the items
        with charging(None):
            checked = self._index({**table, "items": {}}, parsed, whole)
        call = CURRENT.get()
        if checked[0] != OK or call is None:
            return checked
        building = building_refusal(table, parsed["index"], call.second)
        if building is not None:
            refusal: Answer = ministack.error_answer("ValidationException", building, 400)
            return refusal
        indexes = [*(table.get("GlobalSecondaryIndexes") or ()), *(table.get("LocalSecondaryIndexes") or ())]
        schema = next(each["KeySchema"] for each in indexes if each["IndexName"] == parsed["index"])
        asked = attributes_of(", ".join(parsed.get("projections") or ()), {})
        call.has_to_fetch = not contains(table, parsed["index"], asked)
        return self._page(call, table, parsed, parsed["index"], [str(key["AttributeName"]) for key in schema])

    def _page(self, call: Call, table: Document, parsed: Document, index: str | None, keys: list[str]) -> Answer:
        items = _read_items(table, parsed, keys)
        unique = [*keys, *(name for name in (table["pk_name"], table["sk_name"]) if name and name not in keys)]
        order, is_descending = parsed.get("order") or (None, False)
        is_by_key = order is not None and len(order) == 1 and order[0] in keys
        types = {each["AttributeName"]: each["AttributeType"] for each in table.get("AttributeDefinitions") or ()}

        def place(item: Document) -> tuple[Any, ...]:
            return tuple(ministack.order_value(item, name, types.get(name)) for name in unique)

        # an order by something else than the key is MiniStack's, page by page
        is_backward = is_descending and is_by_key
        items.sort(key=place, reverse=is_backward)
        token = call.request.get("NextToken")
        if token:
            last = _read_token(token, table, index)
            if last is None or not set(unique).issubset(last):
                refusal: Answer = ministack.error_answer("ValidationException", _WRONG_TOKEN, 400)
                return refusal
            passed = place(last)
            items = [item for item in items if (place(item) < passed if is_backward else place(item) > passed)]
        page, has_more = ministack.page_of(items, call.request.get("Limit"), table, index)
        shown = [ministack.projected(item, table, index) for item in page] if index else page
        # MiniStack goes through a table by the order of its keys, which here are places in the page
        own_order = None if is_by_key else parsed.get("order")
        paged = {**table, "items": {number: {0: item} for number, item in enumerate(shown)}}
        answer = self._table(paged, {**parsed, "order": own_order})
        if answer[0] != OK or not has_more:
            return answer
        document = json.loads(answer[2]) | {"NextToken": _token(table, index, {key: page[-1][key] for key in unique})}
        return answer[0], answer[1], json.dumps(document, ensure_ascii=False).encode()


def _read_items(table: Document, parsed: Document, keys: list[str]) -> list[Document]:
    """The items that are read: those that have the keys, and meet the conditions on keys if one names a partition."""
    conditions = parsed.get("conditions") or []
    is_query = any(attr == keys[0] and op in ("=", "IN") for attr, op, _ in conditions)
    on_keys = [condition for condition in conditions if is_query and condition[0] in keys]
    return [
        item
        for partition in table["items"].values()
        for item in partition.values()
        if all(key in item for key in keys)
        and all(ministack.meets_condition(item, attr, op, value) for attr, op, value in on_keys)
    ]


def _token(table: Document, index: str | None, key: Document) -> str:
    """A token that goes on after the item of that key, for statements on the same table and index."""
    return base64.b64encode(json.dumps([table["TableName"], index, key]).encode()).decode()


def _read_token(token: object, table: Document, index: str | None) -> Document | None:
    """The key of the last item of the page before, `None` for what is no token of that table and index."""
    try:
        name, of_index, key = json.loads(base64.b64decode(str(token), validate=True))
    except (ValueError, TypeError):
        return None
    return key if (name, of_index) == (table["TableName"], index) and isinstance(key, dict) else None
