"""Values that Application Auto Scaling refuses because they are none of a member's, by the service's own model."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import botocore.session
from botocore.model import ServiceModel, StringShape, StructureShape

from highwater_lab.local.autoscaling.records import ServiceError


def refuse_unknown_values(operation: str, request: dict[str, Any]) -> None:
    """Raise `ServiceError`, in the service's words, for all members of *request* with a value of no enumeration."""
    wrong = [
        f"Value '{request[name]}' at '{name[0].lower()}{name[1:]}' failed to satisfy constraint: Member must satisfy "
        f"enum value set: [{', '.join(sorted(allowed))}]"
        for name, allowed in _enumerations(operation).items()
        if name in request and request[name] not in allowed
    ]
    if wrong:
        count = f"{len(wrong)} validation error{'s' if len(wrong) > 1 else ''} detected"
        raise ServiceError("ValidationException", f"{count}: {'; '.join(wrong)}")


@lru_cache
def _enumerations(operation: str) -> dict[str, frozenset[str]]:
    """The values that the operation's members may have, for those that have a list of them."""
    shape = _model().operation_model(operation).input_shape
    members: dict[str, Any] = dict(shape.members) if isinstance(shape, StructureShape) else {}
    return {
        name: frozenset(member.enum)
        for name, member in members.items()
        if isinstance(member, StringShape) and member.enum
    }


@lru_cache(maxsize=1)
def _model() -> ServiceModel:
    return botocore.session.get_session().get_service_model("application-autoscaling")
