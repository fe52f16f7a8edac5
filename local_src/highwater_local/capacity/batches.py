"""Batches: each part is admitted by itself, and what is held back is handed back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from highwater_local import ministack
from highwater_local.capacity.answers import OK, Answer, held_back, with_capacity
from highwater_local.capacity.call import Call, charging
from highwater_local.capacity.throttled import Throttled
from highwater_local.resources import Document


class Batches:
    """BatchWriteItem, BatchGetItem and BatchExecuteStatement, in front of MiniStack's."""

    def __init__(self, call: Callable[[str], Call]) -> None:
        self._call = call
        self._write = ministack.batch_write.replace(self.write)
        self._get = ministack.batch_get.replace(self.get)
        self._execute = ministack.batch_execute.replace(self.execute)

    def write(self, data: Document) -> Answer:
        """BatchWriteItem: MiniStack carries out one part after another; each that is held back is skipped."""
        call = self._call("BatchWriteItem")
        asked = data.get("RequestItems")
        left = _parts(asked)
        refused: list[tuple[str, Any]] = []
        last: Throttled | None = None
        answer: Answer = (OK, {"Content-Type": "application/x-amz-json-1.0"}, b"{}")
        while left is None or left:
            done = call.effects
            try:
                with charging(call):
                    answer = self._write(data if left is None else {**data, "RequestItems": _grouped(left)})
            except Throttled as held:
                last = held
                assert left is not None  # noqa: S101 - a batch that is none is refused before it writes
                at = call.effects - done
                refused.append(left[at])
                left = left[at + 1 :]
            else:
                break
        if answer[0] != OK:
            return answer
        if last is not None and not call.effects:
            return held_back(call, last)
        status, headers, body = answer
        document = {**json.loads(body), "UnprocessedItems": _grouped(refused)}
        return with_capacity((status, headers, json.dumps(document).encode()), data, call, is_list=True)

    def get(self, data: Document) -> Answer:
        """BatchGetItem: keys whose items are held back are answered as unprocessed."""
        answer: Answer = self._get(data)
        if answer[0] != OK:
            return answer
        call = self._call("BatchGetItem")
        granted: Document = {}
        refused: Document = {}
        last: Throttled | None = None
        for name, asked in data["RequestItems"].items():
            table = ministack.find_table(name)
            assert table is not None  # noqa: S101 - MiniStack has looked
            call.is_consistent = asked.get("ConsistentRead") is True
            for key in asked["Keys"]:
                try:
                    call.read(table, ministack.find_item(table, key), key.get(table["pk_name"]))
                except Throttled as held:
                    last = held
                    refused.setdefault(name, {**asked, "Keys": []})["Keys"].append(key)
                else:
                    granted.setdefault(name, {**asked, "Keys": []})["Keys"].append(key)
        if last is not None:
            if not granted:
                return held_back(call, last)
            status, headers, body = self._get({**data, "RequestItems": granted})
            document = {**json.loads(body), "UnprocessedKeys": refused}
            answer = status, headers, json.dumps(document, ensure_ascii=False).encode()
        return with_capacity(answer, data, call, is_list=True)

    def execute(self, data: Document) -> Answer:
        """BatchExecuteStatement: statements that are held back are answered with an error of their own."""
        call = self._call("BatchExecuteStatement")
        with charging(call):
            answer = self._execute(data)
        return with_capacity(answer, data, call, is_list=True)


def _parts(asked: Any) -> list[tuple[str, Any]] | None:
    """Table and request of each part, `None` for what has not the shape of a batch: MiniStack says what is wrong."""
    if not isinstance(asked, dict) or not asked or not all(isinstance(parts, list) for parts in asked.values()):
        return None
    return [(table, part) for table, parts in asked.items() for part in parts]


def _grouped(parts: list[tuple[str, Any]]) -> Document:
    grouped: Document = {}
    for table, part in parts:
        grouped.setdefault(table, []).append(part)
    return grouped
