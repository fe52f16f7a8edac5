"""A request to a strict cloud: its operation, caller and needed permissions, and rejections in its own protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from highwater_local import ministack
from highwater_local.ministack import Answer

AUTOSCALING_PREFIX: Final = "AnyScaleFrontendService."
AUTOSCALING_SERVICE: Final = "application-autoscaling"


@dataclass(frozen=True)
class CheckedRequest:
    """A request.

    Attributes:
        method: The HTTP method.
        path: The path, without the query.
        headers: The headers, with names in lower case.
        query: The query string.
        body: The body.
    """

    method: str
    path: str
    headers: dict[str, str]
    query: str
    body: bytes

    @cached_property
    def service(self) -> str:
        """The service, by MiniStack's name."""
        if self._target.startswith(AUTOSCALING_PREFIX):
            return AUTOSCALING_SERVICE
        return str(ministack.service_of(self.method, self.path, self.headers, self.parameters))

    @cached_property
    def action(self) -> str | None:
        """The IAM action, such as `dynamodb:UpdateTable`; `None` if no permission is needed."""
        if self.service == AUTOSCALING_SERVICE:
            return f"{AUTOSCALING_SERVICE}:{self._target.removeprefix(AUTOSCALING_PREFIX)}"
        found: str | None = ministack.action_of(
            self.service, self.method, self.path, self.headers, self.body, self.parameters
        )
        return found

    @cached_property
    def parameters(self) -> dict[str, list[str]]:
        """The parameters of the query, and of a body that is a form."""
        found = parse_qs(self.query, keep_blank_values=True)
        if "x-www-form-urlencoded" in self.headers.get("content-type", ""):
            found |= parse_qs(self.body.decode("utf-8", "replace"), keep_blank_values=True)
        return found

    @cached_property
    def document(self) -> dict[str, Any]:
        """The members of a JSON body."""
        try:
            found = json.loads(self.body or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def member(self, name: str) -> Any:
        """Return a member of the request, from JSON or a form; `None` if it has none of that name."""
        return self.document.get(name, self.parameters.get(name, [None])[0])

    @property
    def _target(self) -> str:
        return self.headers.get("x-amz-target", "")


@dataclass(frozen=True, slots=True)
class Need:
    """A permission that a caller needs: an action on a resource.

    Attributes:
        action: The action.
        arn: The resource, `*` for an action without resource-level permissions.
        conditions: Values of the request for the conditions of policies, by condition keys in lower case.
        is_asked_by_service: Whether the called service requires it of the caller.
    """

    action: str
    arn: str
    conditions: Mapping[str, Any] = field(default_factory=dict)
    is_asked_by_service: bool = False


def refused_in_json(code: str, message: str) -> Answer:
    """Return the answer of a service with a JSON protocol with that error."""
    body = json.dumps({"__type": code, "message": message}).encode()
    return 400, {"content-type": "application/x-amz-json-1.1"}, body


def refused(request: CheckedRequest, code: str, message: str, older_code: str | None = None) -> Answer:
    """Return the answer with that error, which may have another code in the older query protocol."""
    if "json" in request.headers.get("content-type", ""):
        return refused_in_json(code, message)
    error = f"<Error><Type>Sender</Type><Code>{older_code or code}</Code><Message>{escape(message)}</Message></Error>"
    return 400, {"content-type": "text/xml"}, f"<ErrorResponse>{error}</ErrorResponse>".encode()
