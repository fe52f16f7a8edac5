"""When the scaler looks at a target: seldom while it is calm, every minute while its alarm is in ALARM."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from highwater.core.scaler.demand import MINUTES_PER_DAY

# Every target's metrics are asked for once in so many minutes. CloudWatch charges by the metric asked for, not by the
# datapoint: docs/cost.md has the arithmetic.
FULL_TICK_MINUTES: Final = 5
# Throttles are asked for where there may have been some in so many minutes, and once in so many of every target: a hot
# key throttles a table that has capacity to spare
THROTTLE_MINUTES: Final = 30
# Consumption that sets off a target's alarm, of the capacity that it has
_ALARM_PERCENT: Final = 97


def alarm_threshold(capacity_units: int) -> int:
    """Units consumed in a minute above which a target's alarm goes off, for its provisioned units per second."""
    return capacity_units * 60 * _ALARM_PERCENT // 100


def may_have_throttled(
    consumed_units: Sequence[int | None], capacity_units: int, last_increase: datetime | None, now: datetime
) -> bool:
    """Whether a target may have throttled lately: a minute consumed what sets off its alarm, or it had less capacity.

    *consumed_units* are those of the last minutes, oldest first; *last_increase* is when its table or index was raised.
    """
    if last_increase is not None and now - last_increase <= timedelta(minutes=THROTTLE_MINUTES):
        return True
    near = alarm_threshold(capacity_units)
    return any(units is not None and units > near for units in consumed_units[-THROTTLE_MINUTES:])


def is_throttle_tick(table: str, minute: int) -> bool:
    """Whether throttles of all targets of a table are asked for in that minute since 1970, one of its full ticks."""
    return (minute + sum(table.encode())) % THROTTLE_MINUTES == 0


def is_daily_tick(table: str, minute: int) -> bool:
    """Whether a table's last day is looked at in that minute since 1970, one of its full ticks."""
    return (minute + sum(table.encode())) % MINUTES_PER_DAY == 0


def is_full_tick(table: str, minute: int) -> bool:
    """Whether a table's targets are due in that minute since 1970; tables spread over the minutes by their names."""
    return (minute + sum(table.encode())) % FULL_TICK_MINUTES == 0
