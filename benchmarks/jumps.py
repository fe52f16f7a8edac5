"""Compares the scaler with native auto scaling when demand jumps: `make benchmark NAME=jumps`.

Demand is steady for two hours, then two, four or ten times as high for two more. Prints the seconds from the jump to
the last throttle, and the throttled share of the demand after the jump; also for target tracking at 70 % with a job
that boosts the table two minutes before, for half an hour.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Final

from benchmarks.boosted import run_boosted
from benchmarks.figures import SURGE
from benchmarks.scoreboard import table_to_quota
from highwater.core import Dimension
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import Run
from highwater_lab.traffic import Stream, Traffic, scenario

WRITE: Final = Dimension.WRITE
POLICIES: Final = (
    "native:70",
    "native:50",
    "highwater-floor",
    "highwater-direct",
    "highwater-floor-pulse",
    "highwater-direct-pulse",
)
FACTORS: Final = (2, 4, 10)
RATE, HALF = 1_000, 120
# from 4,500 to 18,000
FIGURE_2_ADDED: Final = 13_500


def jump(factor: int) -> Traffic:
    """Return traffic of two hours at the base rate, then two hours at *factor* times the base rate."""
    counts = {Stream(None, WRITE): [RATE * 60.0] * HALF + [RATE * factor * 60.0] * HALF}
    return Traffic.from_counts(f"jump x {factor}", counts, bin_seconds=60, start=datetime(2026, 3, 2, tzinfo=UTC))


def meet(traffic: Traffic, policy: str, timing: Timing | None = None) -> Run:
    """Simulate a policy under *traffic*, on a table whose ceiling is the quota."""
    return run_policy(policy, table_to_quota("jump"), traffic, timing=timing)


def meet_boosted(traffic: Traffic, added_rate: int, begun_minute: int, timing: Timing | None = None) -> Run:
    """Simulate target tracking at 70 % with a job that asks, two minutes before the jump, for what it will write."""
    return run_boosted(table_to_quota("jump"), traffic, [(begun_minute, added_rate)], timing)


def last_throttle(run: Run, begun_minute: int) -> int:
    """Return the seconds from the jump at *begun_minute* to the end of the last throttled minute, 0 if none."""
    minutes = run.throttled_minutes()
    return (minutes[-1] + 1 - begun_minute) * 60 if minutes else 0


def show(timing: Timing) -> None:
    """Print a row for each policy, with a column for each jump and one for figure 2 of the article."""
    print(f"{'policy':24}" + "".join(f"{f'x {factor}':>20}" for factor in FACTORS) + f"{'figure 2':>20}")
    figure = scenario("figure-2")
    for policy in POLICIES:
        cells = []
        for factor in FACTORS:
            run = meet(jump(factor), policy, timing)
            requested_units = RATE * factor * 60 * HALF
            cells.append(f"{last_throttle(run, HALF):>6} s {100 * run.throttled_units / requested_units:>5.2f} %")
        run = meet(figure, policy, timing)
        cells.append(f"{run.throttled_units:>8,.0f} units {100 * run.throttled_units / run.demanded_units:>4.2f} %")
        print(f"{policy:24}" + "".join(f"{cell:>20}" for cell in cells))
    boosted = [meet_boosted(jump(factor), RATE * (factor - 1), HALF, timing) for factor in FACTORS]
    cells = [
        f"{last_throttle(run, HALF):>6} s {100 * run.throttled_units / run.demanded_units:>5.2f} %" for run in boosted
    ]
    run = meet_boosted(figure, FIGURE_2_ADDED, int(SURGE.total_seconds()) // 60, timing)
    cells.append(f"{run.throttled_units:>8,.0f} units {100 * run.throttled_units / run.demanded_units:>4.2f} %")
    print(f"{'native:70, a boost':24}" + "".join(f"{cell:>20}" for cell in cells))


def main() -> int:
    """Print the table."""
    print("seconds from the jump to the last throttle, throttled share of the demand after the jump")
    show(Timing())
    return 0


if __name__ == "__main__":
    sys.exit(main())
