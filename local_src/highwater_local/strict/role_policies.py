"""The size of a role's policies, which IAM limits and MiniStack does not."""

from __future__ import annotations

import json
from typing import Any, Final

from highwater_local import ministack

# Of all inline policies of a role together, spaces not counted (IAM User Guide, "IAM and AWS STS quotas", read 2026-11)
MOST_CHARACTERS: Final = 10_240


class TooLargePolicyError(ValueError):
    """The policies of a role would be larger than IAM allows."""


class RolePolicies:
    """Refuses policies that are too large, in requests and in stacks; known to MiniStack as soon as this is made."""

    def __init__(self) -> None:
        # stacks call the function, and requests find it by the name of their action
        self._put = ministack.put_role_policy.replace(self._put_of_stack)
        ministack.IAM_REQUESTS.now["PutRolePolicy"] = self._put_requested

    def _put_of_stack(self, parameters: dict[str, Any]) -> Any:
        refusal = _refusal(parameters)
        if refusal is not None:
            raise TooLargePolicyError(refusal)
        return self._put(parameters)

    def _put_requested(self, parameters: dict[str, Any]) -> Any:
        refusal = _refusal(parameters)
        return self._put(parameters) if refusal is None else ministack.iam_error(409, "LimitExceeded", refusal)


def _refusal(parameters: dict[str, Any]) -> str | None:
    """IAM's text for a policy that makes those of its role too large; `None` if it does not, or there is no role."""
    role, name, document = (_first(parameters.get(each)) for each in ("RoleName", "PolicyName", "PolicyDocument"))
    found = ministack.iam_roles.now.get(role)
    if found is None:
        return None
    policies = found["InlinePolicies"] | {name: document}
    if sum(map(_characters, policies.values())) <= MOST_CHARACTERS:
        return None
    return f"Maximum policy size of {MOST_CHARACTERS} bytes exceeded for role {role}"


def _first(value: Any) -> Any:
    """The value of a member, which requests give as a list of one."""
    return value[0] if isinstance(value, list) else value


def _characters(document: Any) -> int:
    text = document if isinstance(document, str) else json.dumps(document)
    return sum(not character.isspace() for character in text)
