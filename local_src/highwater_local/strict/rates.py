"""AWS's quotas of calls and datapoints per second, for an account in a region, by the cloud's clock."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from highwater_local import ministack
from highwater_local.ministack import Answer
from highwater_local.strict.request import CheckedRequest, refused

# Quotas per second, for a StartTime at most three hours ago, and for an earlier one
RECENT: Final = "datapoints of the last three hours"
EARLIER: Final = "datapoints of any time"
MOST_DATAPOINTS: Final = {RECENT: 180_000, EARLIER: 396_000}
_RECENT_SECONDS: Final = 3 * 3600
_PERIOD: Final = re.compile(r"MetricDataQueries\.member\.\d+\.MetricStat\.Period", re.ASCII)


def asked_datapoints(request: CheckedRequest, second: int) -> tuple[str, int]:
    """Return the quota that applies to a request in that *second*, and the number of datapoints that it uses."""
    start, end = (_instant(request.member(name)) for name in ("StartTime", "EndTime"))
    if start is None or end is None:
        # the service reports the error
        return RECENT, 0
    quota = RECENT if second - start <= _RECENT_SECONDS else EARLIER
    return quota, sum(-(-int(end - start) // period) for period in _periods(request) if period > 0 and end > start)


def _periods(request: CheckedRequest) -> list[int]:
    """Return the period of each query of a metric in seconds; expressions themselves request no datapoints."""
    queries = request.document.get("MetricDataQueries")
    found = [each["MetricStat"].get("Period") for each in queries or [] if isinstance(each.get("MetricStat"), dict)]
    found += [value for name, values in request.parameters.items() if _PERIOD.fullmatch(name) for value in values]
    return [int(value) for value in found if str(value).isdecimal()]


def _instant(value: Any) -> float | None:
    """Return a time in seconds since 1970, from a number in JSON or text in a form; `None` if it is not a time."""
    if isinstance(value, (int, float)):
        return float(value)
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


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
    """Counts calls; *second* returns the cloud's time in seconds since 1970."""

    def __init__(self, second: Callable[[], int]) -> None:
        self._second = second
        # by account, region and name
        self._counted: Counter[tuple[str, str, str]] = Counter()
        self._at = 0

    def refusal(self, request: CheckedRequest) -> Answer | None:
        """Return the rejection of a call above the rate, `None` for any other."""
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
