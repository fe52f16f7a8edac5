"""Batches, whose parts are admitted one by one, and transactions, which are admitted or cancelled as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from highwater.core import Dimension
from highwater_local import ministack
from highwater_local.dynamodb.call import (
    OK,
    Handler,
    Hashes,
    MeteredCall,
    Throttled,
    cancelled,
    charging,
    held_back,
    with_capacity,
    write_charge,
)
from highwater_local.dynamodb.charges import Charge
from highwater_local.dynamodb.wording import no_batch_text
from highwater_local.ministack import Answer, Document, rejected


class Batches:
    """BatchWriteItem, BatchGetItem and BatchExecuteStatement, wrapping MiniStack's."""

    def __init__(self, call: Callable[[str], MeteredCall]) -> None:
        self._call = call
        self._write = ministack.batch_write.replace(self.write)
        self._get = ministack.batch_get.replace(self.get)
        self._execute = ministack.batch_execute.replace(self.execute)

    def write(self, data: Document) -> Answer:
        """BatchWriteItem: MiniStack carries out one part after another; throttled parts are skipped."""
        call = self._call("BatchWriteItem")
        asked = data.get("RequestItems")
        if not asked and (text := no_batch_text()) is not None:
            return rejected(text)
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
        """BatchGetItem: keys whose reads are throttled are returned as unprocessed."""
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
                    call.read(table, key)
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
        """BatchExecuteStatement: each throttled statement is answered with an error."""
        call = self._call("BatchExecuteStatement")
        with charging(call):
            answer = self._execute(data)
        return with_capacity(answer, data, call, is_list=True)


def _parts(asked: Any) -> list[tuple[str, Any]] | None:
    """Return table and request of each part; `None` for a malformed batch, which MiniStack rejects."""
    if not isinstance(asked, dict) or not asked or not all(isinstance(parts, list) for parts in asked.values()):
        return None
    return [(table, part) for table, parts in asked.items() for part in parts]


def _grouped(parts: list[tuple[str, Any]]) -> Document:
    grouped: Document = {}
    for table, part in parts:
        grouped.setdefault(table, []).append(part)
    return grouped


_FACTOR = 2
Action = tuple[str, Document, Document, Document | None]
# by the names of the tables, what a whole transaction costs each of them
Charges = dict[str, tuple[Document, Charge, Hashes]]


class _WouldWrite(Exception):
    """A transaction on trial has come to its first write."""


class _Trial(MeteredCall):
    """A call that ends before it writes anything, to see whether MiniStack rejects it."""

    def write(self, table: Document, old: Document | None, new: Document | None) -> None:  # noqa: ARG002 - as `MeteredCall`
        """End the trial."""
        raise _WouldWrite


class Transactions:
    """TransactWriteItems, TransactGetItems and ExecuteTransaction, wrapping MiniStack's."""

    def __init__(self, call: Callable[..., MeteredCall]) -> None:
        self._call = call
        self._write = ministack.transact_write.replace(self.write)
        self._get = ministack.transact_get.replace(self.get)
        self._execute = ministack.execute_transaction.replace(self.execute)

    def write(self, data: Document) -> Answer:
        """TransactWriteItems: admitted by the items before it, charged by the items written."""
        actions = _actions(data)
        call = self._call("TransactWriteItems", is_strict=False, is_consistent=True, factor=_FACTOR)
        charges = _charges(actions)
        is_short = any(call.is_short(*charge) for charge in charges.values())
        if is_short and (invalid := self._refusal(data)) is not None:
            # DynamoDB checks a request before it looks at capacity
            return invalid
        held = self._judge(call, actions, charges)
        if held:
            return self._cancel(call, len(actions), held)
        answer = self._run(call, self._write, data)
        writes = [action for action in actions if action[0] != "ConditionCheck"]
        if answer[0] == OK and writes and not call.effects:
            # a token that was used before: the items that it wrote are read
            for _, table, key, _ in actions:
                call.read(table, key)
        elif answer[0] == OK or _is_cancelled(answer):
            # condition checks write nothing but cost as much; in a cancelled transaction so does every action
            for kind, table, key, _ in actions:
                if kind == "ConditionCheck" or answer[0] != OK:
                    item = ministack.find_item(table, key)
                    call.write(table, item, item)
        return self._told(answer, data, call)

    def get(self, data: Document) -> Answer:
        """TransactGetItems."""
        answer: Answer = self._get(data)
        if answer[0] != OK:
            return answer
        call = self._call("TransactGetItems", is_consistent=True, factor=_FACTOR)
        held: dict[int, Throttled] = {}
        actions = _actions(data)
        for number, (_, table, key, _) in enumerate(actions):
            try:
                call.read(table, key)
            except Throttled as refused:
                held[number] = refused
        return self._cancel(call, len(actions), held) if held else self._told(answer, data, call)

    def execute(self, data: Document) -> Answer:
        """ExecuteTransaction: charged by the reads and writes of its statements."""
        call = self._call("ExecuteTransaction", is_strict=False, is_consistent=True, factor=_FACTOR)
        return self._told(self._run(call, self._execute, data), data, call)

    def _run(self, call: MeteredCall, own: Handler, data: Document) -> Answer:
        with charging(call):
            return own(data)

    def _refusal(self, data: Document) -> Answer | None:
        """Return MiniStack's answer to a transaction that it rejects before any write, `None` if it would go on."""
        # without its token, which a transaction that is not carried out must not use up
        untold = {name: value for name, value in data.items() if name != "ClientRequestToken"}
        try:
            answer = self._run(_Trial("TransactWriteItems", 0), self._write, untold)
        except _WouldWrite:
            return None
        return None if answer[0] == OK or _is_cancelled(answer) else answer

    def _judge(self, call: MeteredCall, actions: list[Action], charges: Charges) -> dict[int, Throttled]:
        """Return the actions whose table lacks the capacity for the whole transaction."""
        held = {name: call.judge(*charge) for name, charge in charges.items()}
        return {
            number: refused
            for number, (_, table, _, _) in enumerate(actions)
            if (refused := held[table["TableName"]]) is not None
        }

    def _cancel(self, call: MeteredCall, count: int, held: dict[int, Throttled]) -> Answer:
        for refused in {id(refused): refused for refused in held.values()}.values():
            held_back(call, refused)
        return cancelled(count, held)

    def _told(self, answer: Answer, data: Document, call: MeteredCall) -> Answer:
        return with_capacity(answer, data, call, is_list=True, is_transaction=True)


def _charges(actions: list[Action]) -> Charges:
    charges: Charges = {}
    for _, table, key, new in actions:
        old = ministack.find_item(table, key)
        charge, hashes = write_charge(table, old, new or old, _FACTOR)
        known = charges.setdefault(table["TableName"], (table, Charge(Dimension.WRITE), {}))
        known[1].add(charge)
        known[2].update(hashes)
    return charges


def _actions(data: Document) -> list[Action]:
    """Return kind, table, key and new item of each action; empty for a request that MiniStack is going to reject."""
    found: list[Action] = []
    for member in data.get("TransactItems") or []:
        if not isinstance(member, dict) or len(member) != 1:
            return []
        ((kind, action),) = member.items()
        table = ministack.find_table((action or {}).get("TableName"))
        new: Any = (action or {}).get("Item") if kind == "Put" else None
        key: Any = new if kind == "Put" else (action or {}).get("Key")
        if table is None or not isinstance(key, dict) or table["pk_name"] not in key:
            return []
        found.append((kind, table, key, new))
    return found


def _is_cancelled(answer: Answer) -> bool:
    return answer[1].get("x-amzn-errortype") == "TransactionCanceledException"
