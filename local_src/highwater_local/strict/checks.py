"""All that a strict cloud rejects of requests and stacks."""

from __future__ import annotations

from collections.abc import Callable

from highwater_lab.services.timing import Timing
from highwater_local.ministack import Answer
from highwater_local.strict.express import Express
from highwater_local.strict.names import check_names_in_stacks, name_refusal
from highwater_local.strict.permissions import name_roles_in_credentials, permission_refusal
from highwater_local.strict.rates import Rates
from highwater_local.strict.request import CheckedRequest
from highwater_local.strict.roles import apply_boundaries, check_roles_of_functions, limit_policies


class Checks:
    """Checks requests, and wraps MiniStack's stacks as soon as this is created.

    Args:
        second: Returns the cloud's time in seconds since 1970.
        timing: How long tables and permissions take in express mode.
        is_express: Whether every operation on a stack is in express mode.
    """

    def __init__(self, second: Callable[[], int], timing: Timing, *, is_express: bool) -> None:
        limit_policies()
        apply_boundaries()
        check_roles_of_functions()
        name_roles_in_credentials()
        check_names_in_stacks()
        self._refusals = (
            permission_refusal,
            Rates(second).refusal,
            name_refusal,
            Express(second, timing, is_always=is_express).refusal,
        )

    def refusal(self, request: CheckedRequest) -> Answer | None:
        """Return the rejection of a request by a strict cloud, `None` if the service is to answer."""
        return next((found for refuse in self._refusals if (found := refuse(request)) is not None), None)
