"""Batches, of which parts are admitted, and transactions, which are admitted or refused as a whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from highwater_local import ministack
from highwater_local.dynamodb.call import (
    OK,
    Handler,
    MeteredCall,
    Part,
    Throttled,
    charging,
    held_back,
    meters_of,
    with_capacity,
    write_charge,
)
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
        """BatchGetItem: the keys of one table are admitted or refused together.

        Of 79 throttled batches of one table none was answered in part (recorded: radkawar/stackd 9dc356f,
        dynamodb/throughput_boundaries). AWS documents that a batch fails if all of its tables refuse.
        """
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
            held = call.take_together([call.part_of_read(table, key) for key in asked["Keys"]])
            (granted if held is None else refused)[name] = asked
            last = held or last
        if last is not None:
            if not granted:
                return held_back(call, last)
            status, headers, body = self._get({**data, "RequestItems": granted})
            document = json.loads(body)
            document["UnprocessedKeys"] = {**(document.get("UnprocessedKeys") or {}), **refused}
            answer = status, headers, json.dumps(document, ensure_ascii=False).encode()
        return with_capacity(answer, data, call, is_list=True)

    def execute(self, data: Document) -> Answer:
        """BatchExecuteStatement: each throttled statement is answered with an error."""
        call = self._call("BatchExecuteStatement")
        with charging(call):
            answer = self._execute(data)
        # MiniStack names an error after its exception; DynamoDB does so for all but this one
        answer = (*answer[:2], answer[2].replace(b'"Code": "Throttling"', b'"Code": "ThrottlingError"'))
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
_NAMED_AFTER_EXCEPTION: Final = re.compile(rb"\b(ConditionalCheckFailed|DuplicateItem)Exception\b")
# kind, table, key, and the new item of a put
Action = tuple[str, Document, Document, Document | None]


class _WouldWrite(Exception):
    """A transaction on trial has come to its first write."""


class _Trial(MeteredCall):
    """A call that ends before it writes anything, to see whether MiniStack rejects it; nothing is charged."""

    def write(self, table: Document, old: Document | None, new: Document | None) -> None:  # noqa: ARG002 - as `MeteredCall`
        """End the trial."""
        raise _WouldWrite

    def take(self, *part: Any) -> None:
        """Take nothing."""


class Transactions:
    """TransactWriteItems, TransactGetItems and ExecuteTransaction, wrapping MiniStack's.

    A throttled transaction is refused as a whole, with the exception of a single write, and nothing of it is applied
    (recorded: radkawar/stackd 9dc356f, dynamodb/throughput_boundaries).
    """

    def __init__(self, call: Callable[..., MeteredCall]) -> None:
        self._call = call
        self._write = ministack.transact_write.replace(self.write)
        self._get = ministack.transact_get.replace(self.get)
        self._execute = ministack.execute_transaction.replace(self.execute)

    def write(self, data: Document) -> Answer:
        """TransactWriteItems: admitted by the items before it, charged by the items written."""
        actions = _actions(data)
        call = self._call("TransactWriteItems", is_strict=False, is_consistent=True, factor=_FACTOR)
        if (refused := self._refusal(call, actions, self._write, data)) is not None:
            return refused
        answer = self._run(call, self._write, data)
        _count_failed_conditions(answer, actions, call.second)
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
        held = call.take_together([call.part_of_read(table, key) for _, table, key, _ in _actions(data)])
        return held_back(call, held) if held is not None else self._told(answer, data, call)

    def execute(self, data: Document) -> Answer:
        """ExecuteTransaction: charged by the reads and writes of its statements."""
        call = self._call("ExecuteTransaction", is_strict=False, is_consistent=True, factor=_FACTOR)
        actions = _statement_actions(data)
        if (refused := self._refusal(call, actions, self._execute, data)) is not None:
            return refused
        answer = self._run(call, self._execute, data)
        if _is_cancelled(answer):
            # MiniStack names a reason after its exception (recorded: radkawar/stackd 9dc356f,
            # dynamodb/partiql_failure_metrics)
            answer = (*answer[:2], _NAMED_AFTER_EXCEPTION.sub(rb"\1", answer[2]))
        _count_failed_conditions(answer, actions, call.second)
        return self._told(answer, data, call)

    def _run(self, call: MeteredCall, own: Handler, data: Document) -> Answer:
        with charging(call):
            return own(data)

    def _refusal(self, call: MeteredCall, actions: list[Action], own: Handler, data: Document) -> Answer | None:
        """Return the answer to a transaction for which capacity is missing, `None` if there is enough for it.

        DynamoDB checks a request before it looks at capacity: an invalid one is rejected as such.
        """
        parts = [_part(call, action) for action in actions]
        if not call.is_short(parts):
            return None
        invalid = self._rejection(own, data)
        if invalid is not None:
            return invalid
        held = call.judge(parts)
        return None if held is None else held_back(call, held)

    def _rejection(self, own: Handler, data: Document) -> Answer | None:
        """Return MiniStack's answer to a transaction that it rejects before any write, `None` if it would go on."""
        # without its token, which a transaction that is not carried out must not use up
        untold = {name: value for name, value in data.items() if name != "ClientRequestToken"}
        try:
            answer = self._run(_Trial("trial", 0), own, untold)
        except _WouldWrite:
            return None
        return None if answer[0] == OK or _is_cancelled(answer) else answer

    def _told(self, answer: Answer, data: Document, call: MeteredCall) -> Answer:
        return with_capacity(answer, data, call, is_list=True, is_transaction=True)


def _part(call: MeteredCall, action: Action) -> Part:
    kind, table, key, new = action
    if kind == "SELECT":
        return call.part_of_read(table, key)
    old = ministack.find_item(table, key)
    return table, *write_charge(table, old, new or old, _FACTOR)


def _actions(data: Document) -> list[Action]:
    """Return the actions of a transaction; empty for a request that MiniStack is going to reject."""
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


def _statement_actions(data: Document) -> list[Action]:
    """Return the actions of a transaction's statements; empty for a request that MiniStack is going to reject."""
    found: list[Action] = []
    for member in data.get("TransactStatements") or []:
        try:
            parsed = ministack.parse_statement(member.get("Statement", ""), member.get("Parameters") or [])
        except (ValueError, AttributeError):
            return []
        of_item = parsed["select"] if parsed["op"] == "EXISTS" else parsed
        table = ministack.find_table(parsed.get("table"))
        new = parsed.get("item") if parsed["op"] == "INSERT" else None
        equal = {attribute: value for attribute, op, value in of_item.get("conditions") or [] if op == "="}
        key: Any = equal if new is None else new.get("M", new)
        if table is None or any(name not in key for name in (table["pk_name"], table["sk_name"]) if name):
            return []
        found.append((parsed["op"], table, key, None if new is None else key))
    return found


def _is_cancelled(answer: Answer) -> bool:
    return answer[1].get("x-amzn-errortype") == "TransactionCanceledException"


def _count_failed_conditions(answer: Answer, actions: list[Action], second: int) -> None:
    """Count each condition for which a transaction is cancelled for its action's table."""
    if not _is_cancelled(answer):
        return
    # of a transaction that is cancelled for an invalid statement, no actions are known
    for (_, table, _, _), reason in zip(actions, json.loads(answer[2])["CancellationReasons"], strict=False):
        if reason["Code"] == "ConditionalCheckFailed":
            # two in a transaction count twice (recorded: radkawar/stackd 9dc356f, dynamodb/capacity_metrics)
            meters_of(table).failed_conditions[second // 60] += 1
