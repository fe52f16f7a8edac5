"""Traffic to a table beside other work, and what CloudWatch has of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from acceptance.stage import MINUTE, Stage
from highwater.core import Dimension
from highwater_lab.local.load import Load, LoadReport
from highwater_lab.traffic import Stream, Traffic

# A surge asks for so many writes a second, and before that for the calm ones
CALM, PEAK = 7, 70
# Six seconds of retries: a full run sends some hundred thousand requests over the internet, and some are not answered
_SENDING: Final[dict[str, Any]] = {"unanswered_retries": 6, "threads": 16}
# A local cloud gets few large requests, one after the other
_REQUESTS_PER_SECOND: Final = {True: 100, False: 5}
_LOOKS_EVERY: Final = timedelta(seconds=5)
_TOLERANCE: Final = 0.02
_MOST_BEHIND_SECONDS: Final = 10


Levels = Sequence[tuple[int, float]]
"""How many minutes at how many units a second, one after the other."""


def writes(levels: Levels, start: datetime) -> Traffic:
    """Writes from *start* on."""
    return _traffic(levels, start, Dimension.WRITE)


def reads(levels: Levels, start: datetime) -> Traffic:
    """Strongly consistent reads of keys without items, one unit each, from *start* on."""
    return _traffic(levels, start, Dimension.READ)


def _traffic(levels: Levels, start: datetime, dimension: Dimension) -> Traffic:
    counts = [rate * 60.0 for minutes, rate in levels for _ in range(minutes)]
    return Traffic.from_counts(dimension.value, {Stream(None, dimension): counts}, bin_seconds=60, start=start)


def whole_minute(after: datetime) -> datetime:
    """The next whole minute: how soon a surge is seen depends on where in a minute it begins."""
    return after.replace(second=0, microsecond=0) + MINUTE


def load_of(
    stage: Stage,
    table: str,
    traffic: Traffic,
    *,
    prepare: Callable[[Any], None] | None = None,
    requests_per_second: int | None = None,
) -> Load:
    """Traffic to a table that goes on where AWS fails to answer a request; throttled requests are not tried again."""
    rate = requests_per_second or _REQUESTS_PER_SECOND[stage.place.is_real]
    return Load(stage.place, table, traffic, requests_per_second=rate, prepare=prepare, **_SENDING)


def check_sent(stage: Stage, report: LoadReport, levels: Levels, to: str) -> None:
    """Check that all was sent, and in time: otherwise what was measured beside it means nothing."""
    asked = sum(minutes * rate * 60 for minutes, rate in levels)
    sent = sum(report.total(dimension, "asked") for dimension in report.minutes)
    behind = report.most_behind_seconds
    ended = f"; ended by: {report.failure}" if report.failure else ""
    stage.check(
        f"units that the load generator sent to {to}",
        f"{asked:,.0f} and no request late by {_MOST_BEHIND_SECONDS} s",
        f"{sent:,.0f}, the latest request {behind:.0f} s late{ended}",
        holds=not ended and abs(sent - asked) <= asked * _TOLERANCE and behind <= _MOST_BEHIND_SECONDS,
    )


def sums_of(stage: Stage, namespace: str, metric: str, **dimensions: str) -> dict[datetime, float]:
    """A metric's sums in those of the last ten minutes that have a datapoint, by the end of the minute."""
    now, filters = stage.now(), [{"Name": name, "Value": value} for name, value in dimensions.items()]
    asked = {"Namespace": namespace, "MetricName": metric, "Dimensions": filters, "Period": 60, "Statistics": ["Sum"]}
    cloudwatch = stage.place.client("cloudwatch")
    points = cloudwatch.get_metric_statistics(StartTime=now - 10 * MINUTE, EndTime=now, **asked)["Datapoints"]
    return {point["Timestamp"].astimezone(UTC) + MINUTE: point["Sum"] for point in points}


def watch_datapoints(stage: Stage, table: str, until: datetime) -> list[float]:
    """See when each minute's consumption comes to CloudWatch; return the seconds from the minute's end, by minute."""
    seen: dict[datetime, float] = {}
    while (now := stage.now()) < until:
        for ended, units in sums_of(stage, "AWS/DynamoDB", "ConsumedWriteCapacityUnits", TableName=table).items():
            if units > 0:
                seen.setdefault(ended, (now - ended).total_seconds())
        stage.place.let_pass(_LOOKS_EVERY)
    return list(seen.values())
