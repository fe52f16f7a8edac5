"""Transactions: judged whole before they begin, charged twice, cancelled where capacity is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from highwater.core import Dimension
from highwater_local import ministack
from highwater_local.capacity.answers import OK, Answer, Handler, held_back, with_capacity
from highwater_local.capacity.call import Call, Hashes, charging, write_charge
from highwater_local.capacity.charges import Charge
from highwater_local.capacity.throttled import Throttled, cancelled
from highwater_local.resources import Document

_FACTOR = 2
Action = tuple[str, Document, Document, Document | None]


class Transactions:
    """TransactWriteItems, TransactGetItems and ExecuteTransaction, in front of MiniStack's."""

    def __init__(self, call: Callable[..., Call]) -> None:
        self._call = call
        self._write = ministack.transact_write.replace(self.write)
        self._get = ministack.transact_get.replace(self.get)
        self._execute = ministack.execute_transaction.replace(self.execute)

    def write(self, data: Document) -> Answer:
        """TransactWriteItems: judged by what the items are before it, charged by what was written."""
        actions = _actions(data)
        call = self._call("TransactWriteItems", is_strict=False, is_consistent=True, factor=_FACTOR)
        held = self._judge(call, actions)
        if held:
            return self._cancel(call, len(actions), held)
        answer = self._run(call, self._write, data)
        writes = [action for action in actions if action[0] != "ConditionCheck"]
        if answer[0] == OK and writes and not call.effects:
            # a token that was seen before: what it wrote is read
            for _, table, key, _ in actions:
                call.read(table, ministack.find_item(table, key), key.get(table["pk_name"]))
        elif answer[0] == OK or _is_cancelled(answer):
            # checks write nothing and cost as much; in a cancelled transaction so does every action
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
                call.read(table, ministack.find_item(table, key), key.get(table["pk_name"]))
            except Throttled as refused:
                held[number] = refused
        return self._cancel(call, len(actions), held) if held else self._told(answer, data, call)

    def execute(self, data: Document) -> Answer:
        """ExecuteTransaction: charged by what its statements do."""
        call = self._call("ExecuteTransaction", is_strict=False, is_consistent=True, factor=_FACTOR)
        return self._told(self._run(call, self._execute, data), data, call)

    def _run(self, call: Call, own: Handler, data: Document) -> Answer:
        with charging(call):
            return own(data)

    def _judge(self, call: Call, actions: list[Action]) -> dict[int, Throttled]:
        """The actions whose table cannot pay for all that the transaction asks of it."""
        charges: dict[str, tuple[Document, Charge, Hashes]] = {}
        for _, table, key, new in actions:
            old = ministack.find_item(table, key)
            charge, hashes = write_charge(table, old, new or old, _FACTOR)
            known = charges.setdefault(table["TableName"], (table, Charge(Dimension.WRITE), {}))
            known[1].add(charge)
            known[2].update(hashes)
        held = {name: call.judge(table, charge, hashes) for name, (table, charge, hashes) in charges.items()}
        return {
            number: refused
            for number, (_, table, _, _) in enumerate(actions)
            if (refused := held[table["TableName"]]) is not None
        }

    def _cancel(self, call: Call, count: int, held: dict[int, Throttled]) -> Answer:
        for refused in {id(refused): refused for refused in held.values()}.values():
            held_back(call, refused)
        return cancelled(count, held)

    def _told(self, answer: Answer, data: Document, call: Call) -> Answer:
        return with_capacity(answer, data, call, is_list=True, is_transaction=True)


def _actions(data: Document) -> list[Action]:
    """Kind, table, key and new item of each action; none of a request that MiniStack will refuse anyway."""
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
