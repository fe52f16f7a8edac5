"""What a caller must be allowed for a request to be carried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Need:
    """An action on a resource that a caller must be allowed.

    Attributes:
        action: The action.
        arn: The resource, `*` for an action that knows none.
        conditions: Values of the request that conditions of policies are compared with, by keys in lower case.
        is_asked_by_service: Whether the called service itself asks for it in the caller's name.
    """

    action: str
    arn: str
    conditions: Mapping[str, Any] = field(default_factory=dict)
    is_asked_by_service: bool = False
