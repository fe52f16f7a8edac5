"""Roles: permissions boundaries, trust policies, and the size of their policies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from highwater_local import ministack
from highwater_local.ministack import Created, Document, ResourceRefusedError, error_answer

_ROLE: Final = "AWS::IAM::Role"
# MiniStack does not have all of AWS's own policies
_OF_AWS: Final = "arn:aws:iam::aws:policy/"


def apply_boundaries() -> None:
    """Apply the boundaries of roles from now on."""
    for action in ("create", "update"):
        ministack.wrap_resource_handler(_ROLE, action, _bound)
    ministack.refuse_boundary.replace(_reject_boundary)


def _bound(own: Callable[..., Created], name: str, *properties_and_stack: Any) -> Created:
    # a creation has one set of properties, an update the old and the new
    new = [given for given in properties_and_stack if isinstance(given, dict)][-1]
    boundary = new.get("PermissionsBoundary")
    refusal = _boundary_error(boundary)
    if refusal is not None:
        raise ResourceRefusedError(f"{refusal} (Service: Iam, Status Code: 404, NoSuchEntity)")
    created = own(name, *properties_and_stack)
    ministack.iam_roles.now[created[0]]["PermissionsBoundary"] = boundary
    return created


def _reject_boundary(boundary: str) -> Any:
    refusal = _boundary_error(boundary)
    return None if refusal is None else ministack.iam_error(404, "NoSuchEntity", refusal)


def _boundary_error(boundary: str | None) -> str | None:
    """Return IAM's text for a boundary that does not exist, `None` for one that does."""
    if not boundary or boundary.startswith(_OF_AWS) or ministack.is_policy(boundary):
        return None
    return f"Scope ARN: {boundary} does not exist or is not attachable."


_FUNCTION: Final = "AWS::Lambda::Function"
_LAMBDA: Final = "lambda.amazonaws.com"
_CODE: Final = "InvalidParameterValueException"
_REFUSED: Final = "The role defined for the function cannot be assumed by Lambda."


def check_roles_of_functions() -> None:
    """Reject roles that do not trust Lambda, in requests and in stacks, from now on."""
    ministack.create_function.wrap(_create_requested)
    ministack.configure_function.wrap(_configure_requested)
    ministack.wrap_resource_handler(_FUNCTION, "create", _create)
    ministack.wrap_resource_handler(_FUNCTION, "update", _update)


def _create_requested(own: Callable[..., Any], request: Document) -> Any:
    return own(request) if _trusts(request, request.get("FunctionName")) else error_answer(_CODE, _REFUSED)


def _configure_requested(own: Callable[..., Any], name: str, request: Document) -> Any:
    is_fine = "Role" not in request or _trusts(request, name)
    return own(name, request) if is_fine else error_answer(_CODE, _REFUSED)


def _create(own: Callable[..., Created], logical_id: str, properties: Document, stack: str, *rest: Any) -> Created:
    # a name that the engine generates begins like this
    _check(properties, properties.get("FunctionName") or f"{stack}-{logical_id}-any")
    return own(logical_id, properties, stack, *rest)


def _update(own: Callable[..., Created], name: str, old: Document, new: Document, *rest: Any) -> Created:
    _check(new, name)
    return own(name, old, new, *rest)


def _check(function: Document, name: str) -> None:
    if not _trusts(function, name):
        raise ResourceRefusedError(f"{_REFUSED} (Service: Lambda, Status Code: 400, {_CODE})")


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
    """Yield the statements of a trust policy about Lambda."""
    document = json.loads(trust) if isinstance(trust, str) else trust
    statements = document.get("Statement", [])
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal")
        services = principal.get("Service", []) if isinstance(principal, dict) else [principal]
        if {"*", _LAMBDA} & set([services] if isinstance(services, str) else services):
            yield statement


# Of all inline policies of a role together, spaces not counted (IAM User Guide, "IAM and AWS STS quotas", read 2026-11)
MOST_CHARACTERS: Final = 10_240


def limit_policies() -> None:
    """Reject policies that are too large, in requests and in stacks, from now on."""
    # stacks call the function, and requests look it up by the name of their action
    ministack.put_role_policy.wrap(_put_of_stack)
    ministack.IAM_REQUESTS.wrap("PutRolePolicy", _put_requested)


def _put_of_stack(own: Callable[..., Any], parameters: Document) -> Any:
    refusal = _size_error(parameters)
    if refusal is not None:
        raise ResourceRefusedError(refusal)
    return own(parameters)


def _put_requested(own: Callable[..., Any], parameters: Document) -> Any:
    refusal = _size_error(parameters)
    return own(parameters) if refusal is None else ministack.iam_error(409, "LimitExceeded", refusal)


def _size_error(parameters: Document) -> str | None:
    """Return IAM's text if a policy makes its role's policies too large; `None` if not, or if there is no role."""
    role, name, document = (
        ministack.first(parameters.get(each)) for each in ("RoleName", "PolicyName", "PolicyDocument")
    )
    found = ministack.iam_roles.now.get(role)
    if found is None:
        return None
    policies = found["InlinePolicies"] | {name: document}
    if sum(map(_characters, policies.values())) <= MOST_CHARACTERS:
        return None
    return f"Maximum policy size of {MOST_CHARACTERS} bytes exceeded for role {role}"


def _characters(document: Any) -> int:
    text = document if isinstance(document, str) else json.dumps(document)
    return sum(not character.isspace() for character in text)
