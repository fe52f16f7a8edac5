"""A request to the cloud, as far as permissions and rates go by it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qs

from highwater_local import ministack

AUTOSCALING_PREFIX: Final = "AnyScaleFrontendService."
AUTOSCALING_SERVICE: Final = "application-autoscaling"


@dataclass(frozen=True)
class Request:
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
        """The service, by MiniStack's names."""
        if self._target.startswith(AUTOSCALING_PREFIX):
            return AUTOSCALING_SERVICE
        return str(ministack.service_of(self.method, self.path, self.headers, self.parameters))

    @cached_property
    def action(self) -> str | None:
        """The IAM action, such as `dynamodb:UpdateTable`; `None` for what needs no permission."""
        if self.service == AUTOSCALING_SERVICE:
            return f"{AUTOSCALING_SERVICE}:{self._target.removeprefix(AUTOSCALING_PREFIX)}"
        found: str | None = ministack.action_of(
            self.service, self.method, self.path, self.headers, self.body, self.parameters
        )
        return found

    @cached_property
    def parameters(self) -> dict[str, list[str]]:
        """The members of the query, and of a body that is a form."""
        found = parse_qs(self.query, keep_blank_values=True)
        if "x-www-form-urlencoded" in self.headers.get("content-type", ""):
            found |= parse_qs(self.body.decode("utf-8", "replace"), keep_blank_values=True)
        return found

    @cached_property
    def document(self) -> dict[str, Any]:
        """The members of a body that is JSON."""
        try:
            found = json.loads(self.body or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def member(self, name: str) -> Any:
        """A member of the request, as JSON or as a form gives it; `None` where it has none of that name."""
        return self.document.get(name, self.parameters.get(name, [None])[0])

    @property
    def _target(self) -> str:
        return self.headers.get("x-amz-target", "")
