"""All that a strict cloud rejects of requests and stacks."""

from __future__ import annotations

from collections.abc import Callable

from highwater_local.strict.names import Names
from highwater_local.strict.permissions import Permissions
from highwater_local.strict.rates import Rates
from highwater_local.strict.request import Answer, Request
from highwater_local.strict.roles import Boundaries, FunctionRoles, RolePolicies


class Checks:
    """Judges requests, and stands in front of MiniStack's stacks as soon as this is made.

    Args:
        second: Tells the cloud's time in seconds since 1970.
    """

    def __init__(self, second: Callable[[], int]) -> None:
        RolePolicies()
        Boundaries()
        FunctionRoles()
        self._refusals = (Permissions().refusal, Rates(second).refusal, Names().refusal)

    def refusal(self, request: Request) -> Answer | None:
        """What a strict cloud answers in place of the service, `None` where the service answers."""
        return next((found for refuse in self._refusals if (found := refuse(request)) is not None), None)
