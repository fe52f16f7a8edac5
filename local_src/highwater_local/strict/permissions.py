"""The policies of roles, enforced on what Lambda functions call: an action that they do not allow is AccessDenied.

MiniStack's evaluator judges the policies. A function gets credentials whose session token names its role; requests
without such a token are the developer's own and may do everything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from highwater_local import ministack
from highwater_local.strict.item_needs import item_needs
from highwater_local.strict.need import Need
from highwater_local.strict.request import AUTOSCALING_SERVICE, Request
from highwater_local.strict.verdicts import denial

_TOKEN: Final = "highwater-role "  # noqa: S105 - no secret: the cloud is on loopback and takes any credentials
URL_PATH: Final = "/_aws/lambda-url/"
Answer = tuple[int, dict[str, str], bytes]
# What a function's URL answers (as users report since 2025)
_FORBIDDEN_URL: Final = (
    "Forbidden. For troubleshooting Function URL authorization issues, see: "
    "https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html"
)
# What Application Auto Scaling asks of the caller that registers a target of DynamoDB (its User Guide, "Permissions
# validation for API calls on target resources", read 2026-11)
_OF_CALLER: Final = ("cloudwatch:DescribeAlarms", "cloudwatch:PutMetricAlarm", "cloudwatch:DeleteAlarms")
_OF_CALLER_ON_TABLE: Final = ("dynamodb:DescribeTable", "dynamodb:UpdateTable")
# Whoever makes a schedule passes a role to it (EventBridge Scheduler User Guide, "Using identity-based policies", read
# 2026-11)
_PASSING_ROLES: Final = frozenset({"scheduler:CreateSchedule", "scheduler:UpdateSchedule"})
# Actions without resource-level permissions that MiniStack would name a resource for (Service Authorization Reference,
# "AWS Application Auto Scaling" and "Amazon CloudWatch", read 2026-11)
_ON_EVERYTHING: Final = frozenset(
    {
        "application-autoscaling:DescribeScalableTargets",
        "application-autoscaling:DescribeScalingActivities",
        "application-autoscaling:DescribeScalingPolicies",
        "application-autoscaling:DescribeScheduledActions",
        "cloudwatch:GetMetricData",
        "cloudwatch:PutMetricData",
    }
)


class Permissions:
    """Judges requests by the role in their session token."""

    def __init__(self) -> None:
        for credentials in ministack.FUNCTION_CREDENTIALS:
            credentials.replace(_credentials(credentials.now))

    def refusal(self, request: Request) -> Answer | None:
        """The answer to a request that its role does not allow, `None` for any other."""
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
    """The role and the function that a session token of this cloud names, `None` for any other token."""
    if not token.startswith(_TOKEN):
        return None
    role, _, function = token.removeprefix(_TOKEN).partition(" ")
    return role, function


def _role_of_session(request: Request) -> tuple[str, str] | None:
    """The role and the session's name of credentials that AssumeRole gave out."""
    known = ministack.caller_identity(ministack.access_key_of(request.headers)) or {}
    kind, _, names = str(known.get("userArn", "")).rpartition(":")[2].partition("/")
    role, _, session = names.partition("/")
    return (role, session) if kind == "assumed-role" else None


def _url_needs(request: Request) -> Iterator[Need]:
    """What a caller of a function's URL must be allowed: two actions, since October 2025.

    Source: AWS Lambda Developer Guide, "Control access to Lambda function URLs", read 2026-11.
    """
    arn = ministack.function_url_target(request.path.removeprefix(URL_PATH).partition("/")[0])[0]
    yield Need("lambda:InvokeFunctionUrl", arn)
    yield Need("lambda:InvokeFunction", arn)


def _credentials(own: Any) -> Any:
    def credentials(config: dict[str, Any]) -> dict[str, str]:
        role = str(config.get("Role", "")).rsplit("/", 1)[-1]
        token = {"AWS_SESSION_TOKEN": f"{_TOKEN}{role} {config.get('FunctionName', '')}"}
        return dict(own(config)) | token

    return credentials


def _needs(request: Request, region: str, account: str) -> Iterator[Need]:
    """What the caller must be allowed, each action on each resource."""
    action = request.action
    assert action is not None  # noqa: S101 - the caller looked
    if request.service == AUTOSCALING_SERVICE:
        yield from _autoscaling_needs(request, action, region, account)
        return
    on_items = item_needs(action, request.document, region, account) if request.service == "dynamodb" else None
    if on_items is not None:
        yield from on_items
        return
    for arn in _arns(request, action, region, account):
        yield Need(action, arn)
    if action in _PASSING_ROLES:
        yield Need("iam:PassRole", str(request.document.get("Target", {}).get("RoleArn", "*")))


def _autoscaling_needs(request: Request, action: str, region: str, account: str) -> Iterator[Need]:
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


def _arns(request: Request, action: str, region: str, account: str) -> list[str]:
    """The resources of a request, `*` where the action knows none."""
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
        case "scheduler:CreateSchedule" | "scheduler:UpdateSchedule" | "scheduler:DeleteSchedule":
            in_query = request.parameters.get("groupName", ["default"])[0]
            group, name = document.get("GroupName", in_query), request.path.rpartition("/")[2]
            return [f"arn:aws:scheduler:{region}:{account}:schedule/{group}/{name}"]
        case _ if request.service == "dynamodb":
            found = ministack.table_arns(request.body, region, account)
            return list(found) or [str(document.get("ResourceArn", "*"))]
        case _:
            arguments = (request.service, request.method, request.path, request.headers, request.body)
            return [ministack.resource_arn_of(*arguments, request.parameters, region, account)]


def _conditions(request: Request, need: Need) -> dict[str, Any]:
    """The values that conditions of policies are compared with, by keys in lower case."""
    context: dict[str, Any] = {"aws:tagkeys": None} | dict(need.conditions)
    if request.path.startswith(URL_PATH):
        return context | {"lambda:functionurlauthtype": "AWS_IAM", "lambda:invokedviafunctionurl": "true"}
    if need.action == "iam:PassRole":
        context["iam:passedtoservice"] = "scheduler.amazonaws.com"
    if request.service == AUTOSCALING_SERVICE:
        context["application-autoscaling:service-namespace"] = request.document.get("ServiceNamespace")
    if need.action == "cloudwatch:PutMetricData":
        context["cloudwatch:namespace"] = request.member("Namespace")
    for name, value in (ministack.resource_tags(need.arn) or {}).items():
        context[f"aws:resourcetag/{name}".lower()] = value
    return context


def _missed(actions: list[str]) -> Answer:
    """Application Auto Scaling's answer where it was denied what it asked for in the caller's name.

    Source: its User Guide, "Permissions validation for API calls on target resources", read 2026-11; the words are
    those that users report.
    """
    message = f"User is missing the following permissions: {', '.join(actions)}"
    body = json.dumps({"__type": "ValidationException", "message": message}).encode()
    return 400, {"content-type": "application/x-amz-json-1.1"}, body


def _denied(request: Request, need: Need, principal: str, reason: str) -> Answer:
    message = f"User: {principal} is not authorized to perform: {need.action} on resource: {need.arn} {reason}"
    if request.path.startswith(URL_PATH):
        return 403, {"content-type": "application/json"}, json.dumps({"Message": _FORBIDDEN_URL}).encode()
    if request.headers.get("x-amz-target"):
        body = json.dumps({"__type": "AccessDeniedException", "message": message}).encode()
        return 400, {"content-type": "application/x-amz-json-1.1"}, body
    answer: Answer = ministack.denied_answer(
        request.service, need.action, principal, "denied", message=message, headers=request.headers
    )[:3]
    return answer
