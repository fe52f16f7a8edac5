"""How many datapoints a GetMetricData asks for, which CloudWatch limits by the second.

The number is estimated from the request, whatever the metrics have (Amazon CloudWatch User Guide, "CloudWatch service
quotas", read 2026-11).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

from highwater_local.strict.request import Request

# A second, where StartTime is at most three hours ago, and where it is earlier
RECENT: Final = "datapoints of the last three hours"
EARLIER: Final = "datapoints of any time"
MOST_DATAPOINTS: Final = {RECENT: 180_000, EARLIER: 396_000}
_RECENT_SECONDS: Final = 3 * 3600
_PERIOD: Final = re.compile(r"MetricDataQueries\.member\.\d+\.MetricStat\.Period", re.ASCII)


def asked_datapoints(request: Request, second: int) -> tuple[str, int]:
    """The quota that a request falls under in that *second*, and how many datapoints it takes of it."""
    start, end = (_instant(request.member(name)) for name in ("StartTime", "EndTime"))
    if start is None or end is None:
        # the service tells what is wrong
        return RECENT, 0
    quota = RECENT if second - start <= _RECENT_SECONDS else EARLIER
    return quota, sum(-(-int(end - start) // period) for period in _periods(request) if period > 0 and end > start)


def _periods(request: Request) -> list[int]:
    """The period of each query of a metric in seconds; expressions ask for nothing by themselves."""
    queries = request.document.get("MetricDataQueries")
    found = [each["MetricStat"].get("Period") for each in queries or [] if isinstance(each.get("MetricStat"), dict)]
    found += [value for name, values in request.parameters.items() if _PERIOD.fullmatch(name) for value in values]
    return [int(value) for value in found if str(value).isdecimal()]


def _instant(value: Any) -> float | None:
    """Seconds since 1970 of a time, which JSON gives as a number and a form as text; `None` for no time."""
    if isinstance(value, (int, float)):
        return float(value)
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
