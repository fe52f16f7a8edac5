"""The plans of tables that jobs asked about, kept for half a minute in a warm function."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from highwater.aws.plans import ScaledPlans
from highwater.handlers.scaler.region import Region

# As long as the grants. Every job that waits for its capacity asks every two seconds, and an account has 40 reads of
# parameters a second in all (AWS General Reference, Systems Manager quotas, read 2026-11)
_KEPT_SECONDS = 30.0


@dataclass(slots=True)
class KeptPlans:
    """The plans of single tables, as they were read last.

    Attributes:
        clock: Seconds that do not go back.
    """

    clock: Callable[[], float] = time.monotonic
    _read: dict[str, tuple[float, ScaledPlans]] = field(default_factory=dict)

    def read(self, home: Region, scaler: str, label: str, *, is_anew: bool) -> ScaledPlans:
        """Return the plan of one table of *scaler*, read again after half a minute, or now if *is_anew*.

        What is granted must go by the plan of a deploy that has just ended. Only a plan that can be served is kept: a
        table that was just added to the scaler, or whose plan was just repaired, is found at the next request.
        """
        now = self.clock()
        read_at, plans = self._read.get(label, (now, None))
        if plans is None or is_anew or now - read_at >= _KEPT_SECONDS:
            self._read.pop(label, None)
            plans = home.read_plans_of(scaler, [label])
            if any(not plan.is_released for plan in plans.plans):
                self._read[label] = (now, plans)
        return plans
