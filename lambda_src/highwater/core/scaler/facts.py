"""What a decision rests on: the settings, the target as it stands, and what CloudWatch and the fleet told of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import Final

from highwater.core.limits import PARTITION_WRITE_UNITS
from highwater.core.plan.zones import MINUTES_PER_HOUR
from highwater.core.scaler.burst import is_expected_so_far
from highwater.core.scaler.demand import demand_by_minute
from highwater.core.scaler.fleet import FleetDemand, help_seconds
from highwater.core.scaler.inputs import MINUTE, Observation, TargetState
from highwater.core.scaler.settings import HOLD_MINUTES, JUMP_MINUTES, LOWERED_FROM_MINUTE, ScalerSettings

# Consumption jumps where four minutes average more than this share of the highest of the fifteen minutes before (pays
# most on tweets_cvs).
_JUMP_PERCENT: Final = 160
# Throttles may be retries of few requests, and a client may count wrongly: at most so many times what was consumed (a
# bound for safety, which pays nowhere).
STEP_TIMES: Final = 20
# Consumption is missing once its newest datapoint is older than this; CloudWatch's are there after three minutes.
MISSING_AFTER: Final = timedelta(minutes=10)


class Source(Enum):
    """What a target is sized from."""

    PLAN = "plan"  # the plan alone: demand is left to target tracking
    CLOUDWATCH = "cloudwatch"  # minutes that CloudWatch has
    PULSES = "pulses"  # those and what the fleet tells, as that covers enough of them


@dataclass(frozen=True)
class History:
    """The last minutes of a target in CloudWatch.

    Attributes:
        seen: Consumption and throttles by minute.
    """

    seen: Observation

    @cached_property
    def demand(self) -> list[int | None]:
        """The units asked for in each minute, refused ones included."""
        return demand_by_minute(self.seen)

    @cached_property
    def jumps(self) -> int:
        """How often consumption jumped in the last eight hours."""
        return self.seen.known_units.count_jumps(JUMP_MINUTES, _JUMP_PERCENT)

    @cached_property
    def is_throttled(self) -> bool:
        """Whether requests were throttled in the last half hour: the bucket is emptier than it is believed to be."""
        return any(self.seen.throttled_units)


@dataclass(frozen=True)
class Facts(History):
    """All that a stage may look at.

    Attributes:
        settings: The scaler's mode, and what a throttled unit is worth.
        state: The target as it stands.
        fleet: What the fleet's pulses add to the minutes in CloudWatch; a fleet that tells nothing asks for nothing.
        now: The instant in UTC that is decided for.
    """

    settings: ScalerSettings
    state: TargetState
    fleet: FleetDemand
    now: datetime

    @cached_property
    def source(self) -> Source:
        """What the target is sized from: from pulses where they cover enough of what CloudWatch counts."""
        if not self.settings.mode.follows_demand:
            return Source.PLAN
        return Source.PULSES if self.fleet.coverage_percent else Source.CLOUDWATCH

    @property
    def step_units(self) -> int:
        """The most that may be asked for, in units per second; for a table that was idle, what a partition serves."""
        past = self.seen.regret
        highest = max(self.seen.consumed_units.peak(), past.highest_units if past else 0)
        return max(per_second(highest * STEP_TIMES), PARTITION_WRITE_UNITS)

    @cached_property
    def missing_data(self) -> str | None:
        """Why too little is known to lower anything, in a sentence; `None` where enough is.

        CloudWatch now and then has no datapoint for an idle minute (recorded: radkawar/stackd 9dc356f,
        testdata/aws/dynamodb/capacity_metrics, one of ten). Such a minute alone, between two that are known, hides
        nothing that would last; two in a row, or more than a fifth of the minutes, may.
        """
        window = self.seen.known_units[-HOLD_MINUTES:]
        # the newest minutes may still be coming
        settled = window[: -(MISSING_AFTER // MINUTE)]
        if self.seen.age(self.now) > MISSING_AFTER:
            return "no fresh datapoint: nothing is lowered on missing data"
        if self.seen.lacks_throttles:
            return "throttles are likely, and CloudWatch did not report them"
        has_gap = any(one is None and other is None for one, other in pairwise(settled))
        if len(window) < HOLD_MINUTES or has_gap or 5 * settled.count(None) > len(settled):
            return f"datapoints are missing in the last {HOLD_MINUTES} minutes"
        return None

    def minutes_that_count(self, hold_minutes: int) -> int:
        """For how many minutes a peak counts: so many, and at least back to when the last hour's lowering began."""
        return max(hold_minutes, (self.now.minute - LOWERED_FROM_MINUTE) % MINUTES_PER_HOUR)

    def newest_demand(self, minutes: int) -> list[int | None]:
        """The demand of the last *minutes* that CloudWatch has, and of those after them that only pulses have."""
        pending = self.seen.pending_minutes
        demand = self.demand[-(minutes + pending) :]
        told = self.fleet.minutes if self.source is Source.PULSES else ()
        return [*demand[: len(demand) - pending], *told]

    @cached_property
    def help_seconds(self) -> int:
        """How long it takes until a raise for what the fleet asks for is there."""
        return help_seconds(self.settings.mode, self.fleet.rate, self.state.mark_units)

    @cached_property
    def bucket_lasts(self) -> bool:
        """Whether the burst bucket lasts until help is there, or what goes on is like what it served before."""
        fleet, capacity = self.fleet, self.state.capacity_units
        if fleet.lasts(capacity, self.help_seconds):
            return True
        if fleet.was_refused or self.is_throttled:
            return False
        return is_expected_so_far(self.seen.known_units[:], fleet.minutes, capacity, fleet.burst_seconds)


def per_second(units_per_minute: int, percent: int = 100) -> int:
    """Capacity, in units per second, of which *units_per_minute* are so many percent."""
    return -(-units_per_minute * 100 // (60 * percent))
