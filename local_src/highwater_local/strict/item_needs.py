"""What operations on items need: one action each on a table, and in transactions and PartiQL one for each part.

Sources: Amazon DynamoDB Developer Guide, "Using IAM with DynamoDB transactions", "IAM security policies with PartiQL
for DynamoDB" and "Using IAM policy conditions for fine-grained access control", read 2026-11.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from highwater_local import ministack
from highwater_local.strict.leading_keys import keys_of_items, keys_of_query, keys_of_statement
from highwater_local.strict.need import Need

Document = dict[str, Any]
_PREFIX: Final = "dynamodb:"
_ON_ITEM: Final = frozenset({"GetItem", "PutItem", "UpdateItem", "DeleteItem"})
# Batches of statements are known by the name of their list
_STATEMENTS: Final = {"BatchExecuteStatement": "Statements", "ExecuteTransaction": "TransactStatements"}
_OF_TRANSACTION: Final = {
    "ConditionCheck": "ConditionCheckItem",
    "Delete": "DeleteItem",
    "Get": "GetItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
}
_OF_STATEMENT: Final = {
    "DELETE": "PartiQLDelete",
    # a condition on an item, which only transactions have
    "EXISTS": "PartiQLSelect",
    "INSERT": "PartiQLInsert",
    "SELECT": "PartiQLSelect",
    "UPDATE": "PartiQLUpdate",
}


def item_needs(action: str, request: Document, region: str, account: str) -> list[Need] | None:
    """What an operation on items needs, nothing where MiniStack will refuse it; `None` for any other operation."""
    operation = action.removeprefix(_PREFIX)
    tables = f"arn:aws:dynamodb:{region}:{account}:table/"
    match operation:
        case "Query" | "Scan":
            keys = keys_of_query(request) if operation == "Query" else None
            return [_need(operation, _arn(tables, request.get("TableName"), request.get("IndexName")), keys)]
        case "BatchGetItem" | "BatchWriteItem":
            return list(_batch(operation, request.get("RequestItems"), tables))
        case "TransactGetItems" | "TransactWriteItems":
            return list(_transaction(operation, request.get("TransactItems"), tables))
        case "ExecuteStatement":
            return list(_statements([request], tables, {}))
        case "BatchExecuteStatement" | "ExecuteTransaction":
            enclosing = {"dynamodb:enclosingoperation": operation} if operation == "ExecuteTransaction" else {}
            return list(_statements(request.get(_STATEMENTS[operation]), tables, enclosing))
        case _ if operation in _ON_ITEM:
            table, item = request.get("TableName"), request.get("Key") or request.get("Item")
            return [_need(operation, _arn(tables, table), keys_of_items(table, [item]))]
        case _:
            return None


def _batch(operation: str, asked: Any, tables: str) -> Iterator[Need]:
    for table, parts in asked.items() if isinstance(asked, dict) else ():
        if isinstance(parts, dict):
            items = parts.get("Keys") or []
        else:
            each = [request for part in parts or [] if isinstance(part, dict) for request in part.values()]
            items = [request.get("Item") or request.get("Key") for request in each if isinstance(request, dict)]
        yield _need(operation, _arn(tables, table), keys_of_items(table, items))


def _transaction(operation: str, members: Any, tables: str) -> Iterator[Need]:
    enclosing = {"dynamodb:enclosingoperation": operation}
    for member in members if isinstance(members, list) else ():
        for kind, part in member.items() if isinstance(member, dict) else ():
            if kind in _OF_TRANSACTION and isinstance(part, dict):
                table, item = part.get("TableName"), part.get("Item") or part.get("Key")
                yield _need(_OF_TRANSACTION[kind], _arn(tables, table), keys_of_items(table, [item]), enclosing)


def _statements(members: Any, tables: str, enclosing: Document) -> Iterator[Need]:
    for member in members if isinstance(members, list) else ():
        text, parameters = (member.get("Statement"), member.get("Parameters")) if isinstance(member, dict) else ("", [])
        try:
            parsed = ministack.parse_statement(
                text if isinstance(text, str) else "", parameters if isinstance(parameters, list) else []
            )
        except ValueError:
            # the service tells what is wrong with it
            continue
        keys = keys_of_statement(parsed["select"] if parsed["op"] == "EXISTS" else parsed)
        conditions = dict(enclosing)
        if parsed["op"] == "SELECT":
            conditions["dynamodb:fulltablescan"] = "false" if keys else "true"
        arn = _arn(tables, parsed["table"], parsed.get("index"))
        yield _need(_OF_STATEMENT[parsed["op"]], arn, keys or None, conditions)


def _need(operation: str, arn: str, keys: list[str] | None, conditions: Document | None = None) -> Need:
    leading = {} if keys is None else {"dynamodb:leadingkeys": keys}
    return Need(_PREFIX + operation, arn, (conditions or {}) | leading)


def _arn(tables: str, table: object, index: object = None) -> str:
    """The ARN of a table, which a request may name by that already, or of its index."""
    named = str(table or "*")
    return (named if named.startswith("arn:") else tables + named) + (f"/index/{index}" if index else "")
