"""The roles of Lambda functions, which have to let Lambda assume them.

Source: AWS Lambda Developer Guide, "Defining Lambda function permissions with an execution role", read 2026-11; the
words are those that users report, also for a role that does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from highwater_local import ministack

Document = dict[str, Any]
_FUNCTION: Final = "AWS::Lambda::Function"
_LAMBDA: Final = "lambda.amazonaws.com"
_CODE: Final = "InvalidParameterValueException"
_REFUSED: Final = "The role defined for the function cannot be assumed by Lambda."


class UntrustingRoleError(ValueError):
    """A template gives a function a role that Lambda cannot assume."""


class FunctionRoles:
    """Refuses roles that do not trust Lambda, in requests and in stacks; known to MiniStack as soon as this is made."""

    def __init__(self) -> None:
        self._create = ministack.create_function.replace(self._create_requested)
        self._configure = ministack.configure_function.replace(self._configure_requested)
        ministack.wrap_resource_handler(_FUNCTION, "create", _creating)
        ministack.wrap_resource_handler(_FUNCTION, "update", _updating)

    def _create_requested(self, request: Document) -> Any:
        return self._create(request) if _trusts(request, request.get("FunctionName")) else _refused()

    def _configure_requested(self, name: str, request: Document) -> Any:
        return self._configure(name, request) if "Role" not in request or _trusts(request, name) else _refused()


def _creating(own: Callable[..., Any]) -> Callable[..., Any]:
    def create(logical_id: str, properties: Document, stack: str, *rest: Any) -> Any:
        # a name that the engine makes up begins like this
        _check(properties, properties.get("FunctionName") or f"{stack}-{logical_id}-any")
        return own(logical_id, properties, stack, *rest)

    return create


def _updating(own: Callable[..., Any]) -> Callable[..., Any]:
    def update(name: str, old: Document, new: Document, *rest: Any) -> Any:
        _check(new, name)
        return own(name, old, new, *rest)

    return update


def _check(function: Document, name: str) -> None:
    if not _trusts(function, name):
        raise UntrustingRoleError(f"{_REFUSED} (Service: Lambda, Status Code: 400, {_CODE})")


def _refused() -> Any:
    return ministack.error_answer(_CODE, _REFUSED, 400)


def _trusts(function: Document, name: object) -> bool:
    """Whether the role of a function exists and lets Lambda assume it for the function of that *name*."""
    arn = str(function.get("Role"))
    role = ministack.iam_roles.now.get(arn.rpartition("/")[2])
    if role is None:
        return False
    account, region = ministack.get_account_id(), ministack.get_region()
    about = {"aws:sourceaccount": account, "aws:sourcearn": f"arn:aws:lambda:{region}:{account}:function:{name}"}
    context = ministack.evaluation_context.now(
        principal_arn=_LAMBDA,
        principal_type="Service",
        principal_account="",
        action="sts:AssumeRole",
        resource_arn=arn,
        region=region,
        service_context=about,
    )
    about_lambda = ministack.parse_policy({"Statement": list(_statements(role["AssumeRolePolicyDocument"]))})
    return bool(ministack.evaluate_policies(context, [about_lambda]).decision == "Allow")


def _statements(trust: str | Document) -> Iterator[Document]:
    """The statements of a trust policy that speak of Lambda."""
    document = json.loads(trust) if isinstance(trust, str) else trust
    statements = document.get("Statement", [])
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal")
        services = principal.get("Service", []) if isinstance(principal, dict) else [principal]
        if {"*", _LAMBDA} & set([services] if isinstance(services, str) else services):
            yield statement
