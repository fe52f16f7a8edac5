"""Plans between the runs of one warm function, where there are many.

Parameters are read ten at a time, 40 calls a second for the whole account. Up to some hundred plans are read in every
run, so that a deploy counts at once; more are kept for some minutes, in which a deploy may go unseen.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from highwater.aws import plans
from highwater.aws.plans import StoredPlans

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient

_KEPT = timedelta(minutes=5)
_MOST_READ_ALWAYS = 200


@dataclass(slots=True)
class PlanCache:
    """The plans as they were read last.

    Attributes:
        kept: For how long, by the events' time.
        most_read_always: Up to so many are never kept.
    """

    kept: timedelta = _KEPT
    most_read_always: int = _MOST_READ_ALWAYS
    _read: datetime | None = None
    _plans: StoredPlans | None = None

    def see(self, ssm: SSMClient, now: datetime | None) -> StoredPlans:
        """The plans, read anew where they are too old, or from the future, or nobody knows the time."""
        is_fresh = now is not None and self._read is not None and timedelta(0) <= now - self._read < self.kept
        if self._plans is None or not is_fresh or len(self._plans.plans) <= self.most_read_always:
            self._plans = plans.see_plans(ssm)
            self._read = now
        return self._plans
