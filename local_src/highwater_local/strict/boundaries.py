"""Permissions boundaries of roles: MiniStack stores them for requests, and this makes it keep those of templates too.

A boundary is a managed policy that exists (IAM API Reference, PutRolePermissionsBoundary, read 2026-11).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from highwater_local import ministack

_ROLE: Final = "AWS::IAM::Role"
# MiniStack does not have all of AWS's own policies
_OF_AWS: Final = "arn:aws:iam::aws:policy/"


class MissingBoundaryError(ValueError):
    """A template gives a role a boundary that does not exist."""


class Boundaries:
    """Keeps the boundaries of roles; known to MiniStack as soon as this is made."""

    def __init__(self) -> None:
        for action in ("create", "update"):
            ministack.wrap_resource_handler(_ROLE, action, _bounding)
        ministack.refuse_boundary.replace(_refused)


def _bounding(own: Callable[..., Any]) -> Callable[..., Any]:
    def provision(name: str, *properties_and_stack: Any) -> Any:
        # a creation has one set of properties, an update the old and the new
        new = [given for given in properties_and_stack if isinstance(given, dict)][-1]
        boundary = new.get("PermissionsBoundary")
        refusal = _refusal(boundary)
        if refusal is not None:
            raise MissingBoundaryError(f"{refusal} (Service: Iam, Status Code: 404, NoSuchEntity)")
        created = own(name, *properties_and_stack)
        ministack.iam_roles.now[created[0]]["PermissionsBoundary"] = boundary
        return created

    return provision


def _refused(boundary: str) -> Any:
    refusal = _refusal(boundary)
    return None if refusal is None else ministack.iam_error(404, "NoSuchEntity", refusal)


def _refusal(boundary: str | None) -> str | None:
    """IAM's text for a boundary that does not exist, `None` for one that does."""
    if not boundary or boundary.startswith(_OF_AWS) or ministack.iam_policies.now.get(boundary) is not None:
        return None
    return f"Scope ARN: {boundary} does not exist or is not attachable."
