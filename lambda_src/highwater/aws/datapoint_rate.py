"""The rate of datapoints that CloudWatch answers in a region."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

# GetMetricData may ask for 396,000 datapoints a second in a region where the first is more than three hours old, in all
# calls together. CloudWatch estimates them from the period and the time asked for, also where there are none (Amazon
# CloudWatch User Guide, "CloudWatch service quotas", read 2026-11). Other readers of the account need some of them.
_DATAPOINTS_PER_SECOND = 330_000


@dataclass(slots=True)
class DatapointRate:
    """Spaces calls of GetMetricData, so that they stay within the rate.

    Attributes:
        clock: Seconds that only move ahead.
        sleep: Waits for the given seconds.
    """

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _free_at: float = 0.0

    def wait_for(self, datapoints: int) -> None:
        """Wait until the datapoints asked for before have had their time, then take the time of *datapoints*."""
        now = self.clock()
        if self._free_at > now:
            self.sleep(self._free_at - now)
            now = self._free_at
        self._free_at = now + datapoints / _DATAPOINTS_PER_SECOND
