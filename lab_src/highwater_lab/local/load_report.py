"""What the clients of a load saw."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from datetime import datetime

from highwater.core import Dimension


@dataclass(slots=True)
class LoadMinute:
    """What was asked for and granted in one minute of the cloud's clock, in units; the answer's minute counts."""

    asked: float = 0.0
    granted: float = 0.0
    throttled: float = 0.0


@dataclass(slots=True)
class LoadReport:
    """What the clients saw.

    Attributes:
        begun: The cloud's time at the start.
        speed: How many times faster than real time its clock ran; 0 for a clock that was driven.
        units_per_request: How large each request was, by dimension.
        minutes: By dimension, each minute of the cloud since the start.
        requests: How many were sent.
        throttled_requests: How many of them were throttled in the end.
        retries: How often the SDK sent one again.
        unanswered: How often the server failed to answer, or the connection was lost, and the load sent it again.
        latencies_ms: Real milliseconds of each answered request.
        most_behind_seconds: By how many cloud seconds the latest answer came after its request had been due.
        failure: What ended the load before its time; empty if nothing did.
    """

    begun: datetime
    speed: int
    units_per_request: dict[Dimension, int]
    minutes: dict[Dimension, list[LoadMinute]]
    requests: int = 0
    throttled_requests: int = 0
    retries: int = 0
    unanswered: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    most_behind_seconds: float = 0.0
    failure: str = ""

    def total(self, dimension: Dimension, member: str) -> float:
        """All units `asked`, `granted` or `throttled` of a dimension."""
        return float(sum(getattr(minute, member) for minute in self.minutes[dimension]))

    def latency_ms(self, percent: int) -> float:
        """A percentile of the latencies, 0 where nothing was answered."""
        if len(self.latencies_ms) < 2:
            return self.latencies_ms[0] if self.latencies_ms else 0.0
        return statistics.quantiles(self.latencies_ms, n=100)[percent - 1]
