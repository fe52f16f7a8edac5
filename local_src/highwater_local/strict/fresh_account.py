"""A fresh account, in which nothing was deployed before: no role of Application Auto Scaling, ten runs of Lambda.

Each account of the cloud is one; the quota of runs is that of all together, as MiniStack counts them. There is no
bootstrap stack in any local cloud before `cdk bootstrap`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from highwater_local import ministack
from highwater_local.autoscaling.records import ServiceError
from highwater_local.ministack import Answer, Created, Document, ResourceRefusedError, error_answer
from highwater_local.strict.request import CheckedRequest, refused_in_json

_SERVICE: Final = "dynamodb.application-autoscaling.amazonaws.com"
_ROLE: Final = "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
# How MiniStack names the role of that service
_ROLE_OF_MINISTACK: Final = "AWSServiceRoleForDynamodb"
_FUNCTION: Final = "AWS::Lambda::Function"
# AWS Lambda Developer Guide, "Lambda quotas": "New AWS accounts have reduced concurrency and memory quotas"; 10 is what
# users report (aws-samples/one-observability-demo, issue 278; read 2026-11)
_FEWEST_RUNS: Final = 10
# What stays unreserved (AWS Lambda Developer Guide, "Configuring reserved concurrency for a function"); all of a quota
# that is smaller, as the same issue quotes
_LEAST_UNRESERVED: Final = 100
# Users report these texts of AWS; the one of the role for the sibling service Amazon ECS
# (aws-samples/amazon-bedrock-samples, issue 253)
_UNASSUMABLE: Final = "Unable to assume IAM role: {arn}"
_TAKEN: Final = "Service role name {role} has been taken in this account, please try a different suffix."
_TOO_FEW_LEFT: Final = (
    "Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its "
    "minimum value of [{least}]."
)
_CODE: Final = "InvalidParameterValueException"
_RAISE_QUOTA: Final = "ServiceQuotasV20190624.RequestServiceQuotaIncrease"
_RUNS_QUOTA: Final = {"ServiceCode": "lambda", "QuotaCode": "L-B99A9384"}


class FreshAccount:
    """Rejects what a fresh account rejects; in effect as soon as this is created.

    Args:
        second: Returns the cloud's time in seconds since 1970.
        role_delay: Seconds until a new service-linked role can be assumed.
    """

    def __init__(self, second: Callable[[], int], role_delay: int) -> None:
        self._second = second
        self._role_delay = role_delay
        # by account: from when on its role can be assumed
        self._assumable_from: dict[str, int] = {}
        ministack.most_runs.replace(_FEWEST_RUNS)
        ministack.IAM_REQUESTS.wrap("CreateServiceLinkedRole", self._create_requested)
        ministack.reserve_runs.wrap(_reserve_requested)
        ministack.wrap_resource_handler(_FUNCTION, "create", _create_function)
        ministack.wrap_resource_handler(_FUNCTION, "update", _update_function)

    def assume_role(self) -> None:
        """Assume the service-linked role of Application Auto Scaling, as it does in order to register a target.

        Raises:
            ServiceError: There was no role, and it is created now; or the role was created a moment ago.
        """
        role = ministack.iam_roles.now.get(_ROLE)
        if role is None:
            ministack.IAM_REQUESTS.now["CreateServiceLinkedRole"]({"AWSServiceName": [_SERVICE]})
            role = ministack.iam_roles.now.get(_ROLE)
        if self._second() < self._assumable_from.get(ministack.get_account_id(), 0):
            raise ServiceError("ValidationException", _UNASSUMABLE.format(arn=role["Arn"]))

    def answer(self, request: CheckedRequest) -> Answer | None:
        """Raise the quota of concurrent runs as a request asks for, at once; `None` for any other request."""
        if request.headers.get("x-amz-target") != _RAISE_QUOTA:
            return None
        asked = request.document
        if any(asked.get(name) != value for name, value in _RUNS_QUOTA.items()):
            return refused_in_json("NoSuchResourceException", "The specified quota does not exist.")
        desired = asked.get("DesiredValue")
        if not isinstance(desired, int | float) or desired <= ministack.most_runs.now:
            return refused_in_json("IllegalArgumentException", "Your quota increase request is not above the quota.")
        ministack.most_runs.replace(int(desired))
        requested = _RUNS_QUOTA | {
            "DesiredValue": asked["DesiredValue"],
            "Status": "PENDING",
            "Created": self._second(),
        }
        body = json.dumps({"RequestedQuota": requested}).encode()
        return 200, {"content-type": "application/x-amz-json-1.1"}, body

    def _create_requested(self, own: Callable[..., Any], parameters: Document) -> Any:
        if ministack.first(parameters.get("AWSServiceName")) != _SERVICE:
            return own(parameters)
        roles = ministack.iam_roles.now
        if _ROLE in roles:
            return ministack.iam_error(400, "InvalidInput", _TAKEN.format(role=_ROLE))
        status, headers, body = own(parameters)
        role = roles.pop(_ROLE_OF_MINISTACK)
        roles[_ROLE] = role | {"RoleName": _ROLE, "Arn": role["Arn"].replace(_ROLE_OF_MINISTACK, _ROLE)}
        self._assumable_from[ministack.get_account_id()] = self._second() + self._role_delay
        return status, headers, body.replace(_ROLE_OF_MINISTACK.encode(), _ROLE.encode())


def _reserve_requested(own: Callable[..., Any], name: str, request: Document) -> Any:
    refusal = _refusal(name, request.get("ReservedConcurrentExecutions"))
    return own(name, request) if refusal is None else error_answer(_CODE, refusal)


def _create_function(own: Callable[..., Created], logical_id: str, properties: Document, *rest: Any) -> Created:
    _check(None, properties)
    return own(logical_id, properties, *rest)


def _update_function(own: Callable[..., Created], name: str, old: Document, new: Document, *rest: Any) -> Created:
    _check(name, new)
    return own(name, old, new, *rest)


def _check(name: str | None, properties: Document) -> None:
    refusal = _refusal(name, properties.get("ReservedConcurrentExecutions"))
    if refusal is not None:
        raise ResourceRefusedError(f"{refusal} (Service: Lambda, Status Code: 400, {_CODE})")


def _refusal(name: str | None, runs: object) -> str | None:
    """Return Lambda's text if too few concurrent runs stay unreserved, `None` if enough do.

    *name* is that of a function, which gives back what it has reserved before; `None` for one that is being created.
    """
    if runs is None:
        return None
    limits = json.loads(ministack.account_settings()[2])["AccountLimit"]
    own = 0 if name is None else json.loads(ministack.reserved_runs(name)[2]).get("ReservedConcurrentExecutions", 0)
    least = min(_LEAST_UNRESERVED, limits["ConcurrentExecutions"])
    if limits["UnreservedConcurrentExecutions"] + own - int(str(runs)) >= least:
        return None
    return _TOO_FEW_LEFT.format(least=least)
