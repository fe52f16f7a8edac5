"""When the scaler looks at a target: seldom while it is calm, every minute while its alarm is in ALARM."""

from __future__ import annotations

from typing import Final

# Every target's metrics are asked for once in so many minutes. CloudWatch charges by the metric asked for, not by the
# datapoint: docs/cost.md has the arithmetic.
FULL_TICK_MINUTES: Final = 5
# Throttles are asked for where one of the last minutes consumed what sets off the alarm
THROTTLE_MINUTES: Final = 30
# Consumption that sets off a target's alarm, of the capacity that it has
_ALARM_PERCENT: Final = 97


def alarm_threshold(capacity_units: int) -> int:
    """Units consumed in a minute above which a target's alarm goes off, for its provisioned units per second."""
    return capacity_units * 60 * _ALARM_PERCENT // 100


def is_full_tick(table: str, minute: int) -> bool:
    """Whether a table's targets are due in that minute since 1970; tables spread over the minutes by their names."""
    return (minute + sum(table.encode())) % FULL_TICK_MINUTES == 0
