"""Enforces the policies of roles on calls of Lambda functions, with the permissions that operations on items need."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from highwater_local import ministack
from highwater_local.dynamodb.resources import key_schema
from highwater_local.ministack import Answer, Document
from highwater_local.strict.request import AUTOSCALING_SERVICE, CheckedRequest, Need, refused_in_json

# A partition key is compared for equality only: `name = :value` or `:value = name`
_EQUALITY: Final = re.compile(r"([#\w.-]+)\s*=\s*(:\w+)|(:\w+)\s*=\s*([#\w.-]+)", re.ASCII)


def partition_key(table: object, index: object = None) -> str | None:
    """Return the partition key of the table of that name, or of its index; `None` if it does not exist."""
    found = ministack.find_table(table)
    if found is None:
        return None
    return next((str(key["AttributeName"]) for key in key_schema(found, index) if key["KeyType"] == "HASH"), None)


def keys_of_items(table: object, items: Iterable[Any]) -> list[str]:
    """Return the partition key values of items of a table, or of their keys."""
    name = partition_key(table)
    values = (item.get(name) for item in items if isinstance(item, dict))
    return [text for value in values if (text := _text(value)) is not None]


def keys_of_query(request: Document) -> list[str]:
    """Return the partition key value of a Query; for a query of an index, that of the index."""
    name = partition_key(request.get("TableName"), request.get("IndexName"))
    names, values = (_members(request.get(f"ExpressionAttribute{kind}")) for kind in ("Names", "Values"))
    older = _members(_members(request.get("KeyConditions")).get(name or ""))
    found = [_text(value) for value in older.get("AttributeValueList") or []]
    for match in _EQUALITY.finditer(str(request.get("KeyConditionExpression") or "")):
        attribute, value = match[1] or match[4], match[2] or match[3]
        if names.get(attribute, attribute) == name:
            found.append(_text(values.get(value)))
    return [text for text in found if text is not None]


def keys_of_statement(statement: Document) -> list[str]:
    """Return the partition key values that a PartiQL statement names, as MiniStack parses it."""
    name = partition_key(statement["table"], statement.get("index"))
    if "item" in statement:
        return keys_of_items(statement["table"], [statement["item"]])
    found: list[Any] = []
    for attribute, comparison, value in statement.get("conditions") or []:
        if attribute == name and comparison in ("=", "IN"):
            found += value if comparison == "IN" else [value]
    return [text for value in found if (text := _text(value)) is not None]


# What a name at the start of a document path looks like in an expression; values begin with a colon.
_NAME: Final = re.compile(r"(?<![\w.:#])#?[A-Za-z_]\w*", re.ASCII)
# Words of expressions that are no names (Developer Guide, "Using expressions in DynamoDB", read 2026-11)
_WORDS: Final = frozenset({"set", "remove", "add", "delete", "and", "or", "not", "between", "in"})
_FUNCTIONS: Final = frozenset(
    {
        "if_not_exists",
        "list_append",
        "attribute_exists",
        "attribute_not_exists",
        "attribute_type",
        "begins_with",
        "contains",
        "size",
    }
)
_EXPRESSIONS: Final = ("UpdateExpression", "ConditionExpression", "ProjectionExpression")


def attributes_of(request: Document) -> list[str]:
    """Return the names of attributes that an operation on one item names: of its key or item, and in expressions.

    They are the values of the condition key `dynamodb:Attributes` (Developer Guide, "Using IAM policy conditions for
    fine-grained access control", read 2026-11). What the answer has besides is not among them, as it is not known
    before: a request without a projection reads every attribute.
    """
    aliases = _members(request.get("ExpressionAttributeNames"))
    found = [*_members(request.get("Key")), *_members(request.get("Item"))]
    for member in _EXPRESSIONS:
        names = [match[0] for match in _NAME.finditer(str(request.get(member) or ""))]
        found += [aliases.get(name, name) for name in names if name.lower() not in _WORDS and name not in _FUNCTIONS]
    for member in ("AttributeUpdates", "Expected"):
        found += _members(request.get(member))
    found += [name for name in request.get("AttributesToGet") or [] if isinstance(name, str)]
    return sorted(set(map(str, found)))


def _members(value: Any) -> Document:
    """Return the members of an object; none for any other value."""
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    """Return the text of an attribute's value, `None` for any other value."""
    return str(next(iter(value.values()))) if isinstance(value, dict) and value else None


_PREFIX: Final = "dynamodb:"
_ON_ITEM: Final = frozenset({"GetItem", "PutItem", "UpdateItem", "DeleteItem"})
# The member with the list of statements of each batch operation
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
    """Return what an operation on items needs; empty if MiniStack will reject it, `None` for other operations."""
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
            named = {"dynamodb:attributes": attributes_of(request)}
            return [_need(operation, _arn(tables, table), keys_of_items(table, [item]), named)]
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
            # the service reports the error
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
    """Return the ARN of a table, by which a request may name it already, or of its index."""
    named = str(table or "*")
    return (named if named.startswith("arn:") else tables + named) + (f"/index/{index}" if index else "")


def denial(context: Any, role: str, account: str) -> str | None:
    """Return why the role's policies deny the action of the context, `None` if they allow it."""
    kinds = [("n", "identity-based policy", ministack.role_policies(role, account))]
    # one boundary at most, in the shape of a list of policies
    bounds = ministack.role_boundary(ministack.iam_roles.now, role, account)
    kinds += [("", "permissions boundary", bound) for bound in bounds]
    verdicts = [(n, kind, ministack.evaluate_policies(context, policies).decision) for n, kind, policies in kinds]
    for n, kind, decision in verdicts:
        if decision == "Deny":
            return f"with an explicit deny in a{n} {kind}"
    for _, kind, decision in verdicts:
        if decision != "Allow":
            return f"because no {kind} allows the {context.action} action"
    return None


_TOKEN: Final = "highwater-role "  # noqa: S105 - no secret: the cloud is on loopback and takes any credentials
URL_PATH: Final = "/_aws/lambda-url/"
# The answer of a function's URL to a denied request (as users have reported since 2025)
_FORBIDDEN_URL: Final = (
    "Forbidden. For troubleshooting Function URL authorization issues, see: "
    "https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html"
)
# The permissions that Application Auto Scaling requires of the caller that registers a target of DynamoDB (its User
# Guide, "Permissions validation for API calls on target resources", read 2026-11)
_OF_CALLER: Final = ("cloudwatch:DescribeAlarms", "cloudwatch:PutMetricAlarm", "cloudwatch:DeleteAlarms")
_OF_CALLER_ON_TABLE: Final = ("dynamodb:DescribeTable", "dynamodb:UpdateTable")
# Requests for several messages need the permission of the request for one (Amazon SQS Developer Guide, "Amazon SQS API
# permissions", read 2026-11)
_OF_ONE_MESSAGE: Final = {
    f"sqs:{action}Batch": f"sqs:{action}" for action in ("ChangeMessageVisibility", "DeleteMessage", "SendMessage")
}
# Actions without resource-level permissions for which a resource would be assumed (Service Authorization Reference,
# "AWS Application Auto Scaling", "Amazon CloudWatch" and "Amazon DynamoDB", read 2026-11)
_ON_EVERYTHING: Final = frozenset(
    {
        "application-autoscaling:DescribeScalableTargets",
        "application-autoscaling:DescribeScalingActivities",
        "application-autoscaling:DescribeScalingPolicies",
        "application-autoscaling:DescribeScheduledActions",
        "cloudwatch:GetMetricData",
        "cloudwatch:PutMetricData",
        "dynamodb:ListExports",
    }
)
# members of DynamoDB's requests that have the ARN of a table or of its export
_NAMED_BY_ARN: Final = ("ResourceArn", "ExportArn", "TableArn")


def name_roles_in_credentials() -> None:
    """Name the role of a function in its session token from now on, by which its requests are checked."""
    for credentials in ministack.FUNCTION_CREDENTIALS:
        credentials.wrap(_credentials)


def permission_refusal(request: CheckedRequest) -> Answer | None:
    """Return the denial of a request that its role does not allow, `None` for any other."""
    is_url = request.path.startswith(URL_PATH)
    caller = role_of_token(request.headers.get("x-amz-security-token", ""))
    if caller is None and (is_url or request.service == "dynamodb"):
        caller = _role_of_session(request)
    if caller is None or (not is_url and request.action in (None, *ministack.ALWAYS_ALLOWED.now)):
        return None
    role, function = caller
    account, region = ministack.get_account_id(), ministack.get_region()
    principal = f"arn:aws:sts::{account}:assumed-role/{role}/{function}"
    missed_by_service: list[str] = []
    for need in _url_needs(request) if is_url else _needs(request, region, account):
        context = ministack.evaluation_context.now(
            principal_arn=principal,
            principal_type="AssumedRole",
            principal_account=account,
            action=need.action,
            resource_arn=need.arn,
            region=region,
            service_context=_conditions(request, need),
        )
        reason = denial(context, role, account)
        if reason is None:
            continue
        if not need.is_asked_by_service:
            return _denied(request, need, principal, reason)
        missed_by_service.append(need.action)
    return _missed(missed_by_service) if missed_by_service else None


def role_of_token(token: str) -> tuple[str, str] | None:
    """Return the role and the function that a session token of this cloud names, `None` for any other token."""
    if not token.startswith(_TOKEN):
        return None
    role, _, function = token.removeprefix(_TOKEN).partition(" ")
    return role, function


def _role_of_session(request: CheckedRequest) -> tuple[str, str] | None:
    """Return the role and the session's name of credentials issued by AssumeRole."""
    known = ministack.caller_identity(ministack.access_key_of(request.headers)) or {}
    kind, _, names = str(known.get("userArn", "")).rpartition(":")[2].partition("/")
    role, _, session = names.partition("/")
    return (role, session) if kind == "assumed-role" else None


def _url_needs(request: CheckedRequest) -> Iterator[Need]:
    """Yield the permissions that a caller of a function's URL needs: two actions, since October 2025.

    Source: AWS Lambda Developer Guide, "Control access to Lambda function URLs", read 2026-11.
    """
    arn = ministack.function_url_target(request.path.removeprefix(URL_PATH).partition("/")[0])[0]
    yield Need("lambda:InvokeFunctionUrl", arn)
    yield Need("lambda:InvokeFunction", arn)


def _credentials(own: Callable[[Document], dict[str, str]], config: Document) -> dict[str, str]:
    role = str(config.get("Role", "")).rsplit("/", 1)[-1]
    return own(config) | {"AWS_SESSION_TOKEN": f"{_TOKEN}{role} {config.get('FunctionName', '')}"}


def _needs(request: CheckedRequest, region: str, account: str) -> Iterator[Need]:
    """Yield the permissions that the caller needs, each action on each resource."""
    action = request.action
    assert action is not None  # noqa: S101 - the caller looked
    if request.service == AUTOSCALING_SERVICE:
        yield from _autoscaling_needs(request, action, region, account)
        return
    on_items = item_needs(action, request.document, region, account) if request.service == "dynamodb" else None
    if on_items is not None:
        yield from on_items
        return
    if action == "events:PutEvents":
        yield from _event_needs(request, region, account)
        return
    for arn in _arns(request, action, region, account):
        yield Need(_OF_ONE_MESSAGE.get(action, action), arn)


def _autoscaling_needs(request: CheckedRequest, action: str, region: str, account: str) -> Iterator[Need]:
    if action in _ON_EVERYTHING:
        yield Need(action, "*")
        return
    yield Need(action, f"arn:aws:application-autoscaling:{region}:{account}:scalable-target/any")
    if action.endswith(":RegisterScalableTarget"):
        table = str(request.document.get("ResourceId", "")).split("/")[1:2]
        for each in _OF_CALLER_ON_TABLE:
            yield Need(each, f"arn:aws:dynamodb:{region}:{account}:table/{''.join(table)}", is_asked_by_service=True)
        for each in _OF_CALLER:
            alarm = f"arn:aws:cloudwatch:{region}:{account}:alarm:TargetTracking-any"
            yield Need(each, alarm, is_asked_by_service=True)


def _event_needs(request: CheckedRequest, region: str, account: str) -> Iterator[Need]:
    """Yield the permission for each event, on its bus, with its source and type.

    Source: Amazon EventBridge User Guide, "Using IAM policy conditions in Amazon EventBridge", read 2026-11.
    """
    for entry in request.document.get("Entries") or []:
        bus = str(entry.get("EventBusName") or "default")
        arn = bus if bus.startswith("arn:") else f"arn:aws:events:{region}:{account}:event-bus/{bus}"
        of = {"events:source": entry.get("Source"), "events:detail-type": entry.get("DetailType")}
        yield Need("events:PutEvents", arn, of)


def _arns(request: CheckedRequest, action: str, region: str, account: str) -> list[str]:
    """Return the resources of a request, `*` if the action has no resource-level permissions."""
    if action in _ON_EVERYTHING:
        return ["*"]
    document = request.document
    parameter = f"arn:aws:ssm:{region}:{account}:parameter/"
    match action:
        case "cloudwatch:DescribeAlarms":
            return [f"arn:aws:cloudwatch:{region}:{account}:alarm:*"]
        case "ssm:GetParameters":
            return [parameter + str(name).lstrip("/") for name in document.get("Names", [])]
        case "ssm:GetParametersByPath":
            return [parameter + str(document.get("Path", "")).lstrip("/")]
        case "cloudformation:DescribeStacks":
            return request.parameters.get("StackName", ["*"])
        case _ if request.service == "dynamodb":
            found = ministack.table_arns(request.body, region, account)
            named = (document[member] for member in _NAMED_BY_ARN if member in document)
            return list(found) or [str(next(named, "*"))]
        case _:
            arguments = (request.service, request.method, request.path, request.headers, request.body)
            return [ministack.resource_arn_of(*arguments, request.parameters, region, account)]


def _conditions(request: CheckedRequest, need: Need) -> dict[str, Any]:
    """Return the values for the conditions of policies, by condition keys in lower case."""
    context: dict[str, Any] = {"aws:tagkeys": None} | dict(need.conditions)
    if request.path.startswith(URL_PATH):
        return context | {"lambda:functionurlauthtype": "AWS_IAM", "lambda:invokedviafunctionurl": "true"}
    if request.service == AUTOSCALING_SERVICE:
        context["application-autoscaling:service-namespace"] = request.document.get("ServiceNamespace")
    if need.action == "cloudwatch:PutMetricData":
        context["cloudwatch:namespace"] = request.member("Namespace")
    for name, value in (ministack.resource_tags(need.arn) or {}).items():
        context[f"aws:resourcetag/{name}".lower()] = value
    return context


def _missed(actions: list[str]) -> Answer:
    """Return Application Auto Scaling's answer if the caller lacks permissions that it requires.

    Source: its User Guide, "Permissions validation for API calls on target resources", read 2026-11; the text is the
    one that users report.
    """
    message = f"User is missing the following permissions: {', '.join(actions)}"
    return refused_in_json("ValidationException", message)


def _denied(request: CheckedRequest, need: Need, principal: str, reason: str) -> Answer:
    message = f"User: {principal} is not authorized to perform: {need.action} on resource: {need.arn} {reason}"
    if request.path.startswith(URL_PATH):
        return 403, {"content-type": "application/json"}, json.dumps({"Message": _FORBIDDEN_URL}).encode()
    if request.headers.get("x-amz-target"):
        return refused_in_json("AccessDeniedException", message)
    answer: Answer = ministack.denied_answer(
        request.service, need.action, principal, "denied", message=message, headers=request.headers
    )[:3]
    return answer
