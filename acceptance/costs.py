"""What a run can cost at most, by the templates that it deploys and the hours that it may take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from highwater.core import Dimension, Plan, Target, marks_of, timeline, warm_up_charge
from highwater_lab.services.billing import ALARMS_PER_POLICY, HOURS_PER_MONTH
from highwater_lab.services.prices import Prices

# A part is ended when it has taken so many times as long as it is said to take
_PATIENCE: Final = 1.5
# Deleting waits for decreases and for CloudFormation
_DELETING: Final = timedelta(minutes=20)
# What is not listed costs at most this much: some thousand calls of Lambda, EventBridge, SNS, SQS, Systems Manager and
# S3 at millionths of a dollar each, and some hours of a KMS key, which costs a dollar a month
SMALL_THINGS_USD: Final = 0.25


@dataclass(frozen=True, slots=True)
class Cost:
    """The highest cost of one part, in USD.

    Attributes:
        capacity: Provisioned capacity: each table at the highest level that it can reach, in every hour of the part.
        marks: The one-time charge of high-water marks.
        alarms: Alarms, for the hours of the part.
    """

    capacity: float
    marks: float
    alarms: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.capacity + self.marks + self.alarms


def longest(minutes: int) -> timedelta:
    """The time after which a part that is said to take *minutes* is ended."""
    return timedelta(minutes=math.ceil(minutes * _PATIENCE))


def ends_within(minutes: int) -> timedelta:
    """The time after which everything that such a part made is deleted."""
    return longest(minutes) + _DELETING


def clock_hours(minutes: int) -> int:
    """The clock hours that such a part can touch; DynamoDB bills each at its highest capacity."""
    return math.ceil(ends_within(minutes) / timedelta(hours=1)) + 1


def cost_of(
    plans: Sequence[Plan],
    *,
    minutes: int,
    reaches_ceiling: bool,
    bare_units: int,
    start: datetime,
    end: datetime,
    prices: Prices,
) -> Cost:
    """The highest cost of a part that deploys tables with *plans* and makes tables of *bare_units* by itself.

    It is said to take *minutes*, some time between *start* and *end*. Without traffic a table's capacity follows its
    floors, so what counts is the highest floor of that time. Where traffic *reaches_ceiling*, the ceiling counts.
    *bare_units* are counted at the price of writes.
    """
    hours = clock_hours(minutes)
    targets = [target for plan in plans for target in plan.targets()]
    per_hour = bare_units * prices.throughput().write_unit_hour
    for target in targets:
        units = _highest(target, start, end, reaches_ceiling=reaches_ceiling)
        per_hour += units * prices.throughput().unit_hour(target.dimension)
    charges = [warm_up_charge(marks_of(plan)) for plan in plans]
    marks = sum(
        charge.write_units * prices.throughput().unit_hour(Dimension.WRITE)
        + charge.read_units * prices.throughput().unit_hour(Dimension.READ)
        for charge in charges
        if charge is not None
    )
    # target tracking's, and one of the scaler's
    alarms = len(targets) * (ALARMS_PER_POLICY + 1) * prices.alarm_month / HOURS_PER_MONTH
    return Cost(per_hour * hours, marks, alarms * hours)


def _highest(target: Target, start: datetime, end: datetime, *, reaches_ceiling: bool) -> int:
    return max(int(bounds.max if reaches_ceiling else bounds.min) for _, bounds in timeline(target, start, end))
