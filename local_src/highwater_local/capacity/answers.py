"""Answers of operations on items: refused, or told what they consumed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from highwater_local import ministack
from highwater_local.capacity.call import Call, meters_of
from highwater_local.capacity.throttled import Throttled
from highwater_local.resources import Document

Answer = tuple[int, dict[str, Any], Any]
Handler = Callable[[Document], Answer]
OK: Final = 200


def held_back(call: Call, held: Throttled) -> Answer:
    """The answer of a call that got nothing."""
    table = held.table_name
    found = ministack.find_table(table)
    if found is not None:
        meters_of(found).count_throttled_request(call.operation, call.second)
    return held.answer()


def with_capacity(answer: Answer, data: Document, call: Call, *, is_list: bool = False, **more: bool) -> Answer:
    """The answer with what the call consumed, where that was asked for."""
    level = data.get("ReturnConsumedCapacity", "NONE")
    status, headers, body = answer
    if status != OK:
        return answer
    if level == "NONE" or not call.charges:
        return answer
    document = json.loads(body)
    consumed = call.consumed(level, **more)
    document["ConsumedCapacity"] = consumed if is_list else consumed[0]
    return status, headers, json.dumps(document, ensure_ascii=False).encode()
