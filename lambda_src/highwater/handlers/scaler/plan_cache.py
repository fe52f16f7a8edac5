"""Plans between the runs of one warm function, where there are many.

SSM parameters are read ten at a time, 40 calls a second for the whole account. Up to some hundred plans are read in
every run, so that a deploy counts at once; more are kept for some minutes, in which a deploy may go unnoticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from highwater.aws.plans import ScaledPlans
from highwater.handlers.scaler.region import Region

_KEPT = timedelta(minutes=5)
_MOST_READ_ALWAYS = 200


@dataclass(slots=True)
class PlanCache:
    """The plans as they were read last.

    Attributes:
        kept: For how long, by the events' time.
        most_read_always: Up to so many plans are read in every run.
    """

    kept: timedelta = _KEPT
    most_read_always: int = _MOST_READ_ALWAYS
    _read_at: datetime | None = None
    _plans: ScaledPlans | None = None

    def read(self, home: Region, scaler: str, now: datetime | None) -> ScaledPlans:
        """The plans of *scaler*.

        They are read again where the last reading is too old or later than *now*, or *now* is not known.
        """
        is_fresh = now is not None and self._read_at is not None and timedelta(0) <= now - self._read_at < self.kept
        if self._plans is None or not is_fresh or len(self._plans.plans) <= self.most_read_always:
            self._plans = home.read_plans(scaler)
            self._read_at = now
        return self._plans
