"""Rates of calls that AWS accepts of an account in a region, in each second of the cloud's clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from highwater_local import ministack
from highwater_local.strict.answers import Answer, refused
from highwater_local.strict.metric_data import MOST_DATAPOINTS, asked_datapoints
from highwater_local.strict.request import Request

# Calls a second (CloudWatch and Systems Manager, "Service quotas", read 2026-11)
_READS_OF_PARAMETERS: Final = "the reads of Systems Manager"
_LIMITS: Final = {
    "cloudwatch:PutMetricAlarm": 3,
    "cloudwatch:DescribeAlarms": 9,
    _READS_OF_PARAMETERS: 40,
    **MOST_DATAPOINTS,
}
_METRIC_DATA: Final = "cloudwatch:GetMetricData"
_GROUPS: Final = {
    "ssm:GetParameter": _READS_OF_PARAMETERS,
    "ssm:GetParameters": _READS_OF_PARAMETERS,
    "ssm:GetParametersByPath": _READS_OF_PARAMETERS,
}


class Rates:
    """Counts calls; *second* tells the cloud's time in seconds since 1970."""

    def __init__(self, second: Callable[[], int]) -> None:
        self._second = second
        # by account, region and name
        self._counted: Counter[tuple[str, str, str]] = Counter()
        self._at = 0

    def refusal(self, request: Request) -> Answer | None:
        """The answer to a call that comes too fast, `None` for any other."""
        now = self._second()
        if request.action == _METRIC_DATA:
            name, taken = asked_datapoints(request, now)
        else:
            name, taken = _GROUPS.get(request.action or "", request.action or ""), 1
        limit = _LIMITS.get(name)
        if limit is None:
            return None
        if self._at != now:
            self._at = now
            self._counted.clear()
        counted = (ministack.get_account_id(), ministack.get_region(), name)
        if self._counted[counted] + taken <= limit:
            self._counted[counted] += taken
            return None
        return refused(request, "ThrottlingException", "Rate exceeded", "Throttling")
