"""What the scaler costs at its defaults, in USD a month at us-east-1 prices, with the arithmetic: `make scaler-cost`.

CloudWatch's prices are the lab's (prices.json). Those of Lambda, EventBridge Scheduler and CloudWatch Logs are from
their price pages, read 2026-11, without free tiers.
"""

from __future__ import annotations

import sys
from typing import Final

from highwater_lab.services.billing import HOURS_PER_MONTH
from highwater_lab.services.prices import load_prices

LIMIT: Final = 0.25
_MINUTES: Final = HOURS_PER_MONTH * 60
# what highwater-floor asked for on average over the serviceable traces: docs/benchmarks.md. At least 10,220: one metric
# every five minutes and one more twice an hour. More while the target's alarm is in ALARM, and in the half hour after a
# rise.
METRICS_PER_MONTH: Final = 14_559
_LAMBDA_GB_SECOND, _LAMBDA_REQUEST, _SCHEDULE_RUN = 0.0000133334, 0.0000002, 0.000001
_MEMORY_GB, _SECONDS_PER_RUN = 0.5, 1.0
_OWN_ALARMS: Final = 10


def per_target() -> list[tuple[str, float]]:
    """What each target adds a month, a line for each item."""
    prices = load_prices()
    metrics = METRICS_PER_MONTH * prices.thousand_metrics_requested / 1000
    return [("an alarm on its consumption", prices.alarm_month), (f"{METRICS_PER_MONTH:,} metrics", metrics)]


def per_scaler() -> list[tuple[str, float]]:
    """What a scaler costs a month, however many targets it has, a line for each item."""
    return [
        (f"{_OWN_ALARMS} alarms on itself", _OWN_ALARMS * load_prices().alarm_month),
        (f"{_MINUTES:,} runs of a schedule", _MINUTES * _SCHEDULE_RUN),
        (
            f"{_MINUTES:,} runs of {_SECONDS_PER_RUN:.0f} s at {_MEMORY_GB} GB",
            _MINUTES * (_MEMORY_GB * _SECONDS_PER_RUN * _LAMBDA_GB_SECOND + _LAMBDA_REQUEST),
        ),
    ]


def main() -> int:
    """Print both; 1 where a target costs more than the limit."""
    for title, lines in (("each target", per_target()), ("each scaler", per_scaler())):
        print(title)
        for what, usd in lines:
            print(f"  {what:<55}{usd:>9.4f}")
        total = sum(usd for _, usd in lines)
        print(f"  {'USD a month':<55}{total:>9.4f}")
    return 0 if sum(usd for _, usd in per_target()) <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
