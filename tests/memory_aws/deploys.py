"""Asking the function for deploys as CloudFormation does: events of custom resources, and waiting for the answer."""

from __future__ import annotations

from itertools import count

from botocore.exceptions import ClientError

from highwater.handlers.deploy.response import EventOutcome
from tests.memory_aws.account import Account, Role
from tests.memory_aws.clients import Functions
from tests.memory_aws.tables import Document

HOUR = 3600
_REQUESTS = count(1)
ACTIONS = (
    "application-autoscaling:DescribeScalableTargets",
    "application-autoscaling:RegisterScalableTarget",
    "cloudformation:DescribeStacks",
    "cloudformation:ListStackResources",
    "dynamodb:DescribeTable",
    "dynamodb:ListTagsOfResource",
    "dynamodb:TagResource",
    "dynamodb:UntagResource",
    "dynamodb:UpdateTable",
    "lambda:InvokeFunction",
    "ssm:GetParameter",
    "ssm:PutParameter",
)


def role_for_deploys(*missing: str) -> Role:
    """The role of the function for deploys: it may do all that the function does, but for what is *missing*."""
    return Role({"All": [{"Action": [action for action in ACTIONS if action not in missing], "Resource": "*"}]})


def custom_resource_event(
    kind: str, request: str, properties: Document, old: Document | None = None, logical_id: str = "Any"
) -> Document:
    """An event as CloudFormation sends it for a custom resource."""
    event: Document = {
        "RequestType": request,
        "ResourceType": kind,
        "LogicalResourceId": logical_id,
        "StackId": "arn:aws:cloudformation:us-east-1:000000000000:stack/orders/1",
        "RequestId": f"request-{next(_REQUESTS)}",
        "ResponseURL": "https://cloudformation.invalid/",
        "ResourceProperties": properties,
    }
    event |= {} if request == "Create" else {"PhysicalResourceId": logical_id}
    return event if old is None else event | {"OldResourceProperties": old}


def ask(account: Account, event: Document) -> EventOutcome:
    """Serve an event, and what the function hands on, until CloudFormation has its one answer."""
    asked = account.now
    account.serve(event)
    while not (found := [outcome for answered, outcome in account.answers if _is_same(answered, event)]):
        assert account.waiting, f"nobody answers {event['RequestType']} of {event['LogicalResourceId']}"
        account.serve_waiting()
    assert account.now - asked <= HOUR, f"CloudFormation does not wait so long for {event['RequestType']}"
    (answer,) = found
    return answer


def _is_same(answered: Document, asked: Document) -> bool:
    return bool(answered["RequestId"] == asked["RequestId"])


def refuse_two_invocations(account: Account, error: ClientError) -> list[str]:
    """Have Lambda refuse the first two invocations with this error; return the list of functions that are invoked."""
    invoked: list[str] = []

    class LateFunctions(Functions):
        def invoke(self, function: str, event: Document) -> None:
            invoked.append(function)
            if len(invoked) < 3:
                raise error
            super().invoke(function, event)

    account.wrap = lambda client: LateFunctions(account) if isinstance(client, Functions) else client
    return invoked
