"""How the scaler meets a jump: seconds from it to the last throttle, and the share throttled, beside native.

Two hours steady at the policy's target, then two at two, four and ten times the rate. `make benchmark-jumps`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from highwater.core import Dimension
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import ResourceSetup, Run, TableSetup, TargetSetup
from highwater_lab.traffic import Stream, Traffic, scenario

WRITE: Final = Dimension.WRITE
POLICIES: Final = ("native:70", "native:50", "highwater-floor", "highwater-direct")
FACTORS: Final = (2, 4, 10)
RATE, HALF = 1_000, 120
MEASURED_SECONDS: Final = 4
_QUOTA = 40_000


def jump(factor: int) -> Traffic:
    """Two hours at the rate, two at *factor* times it."""
    counts = {Stream(None, WRITE): [RATE * 60.0] * HALF + [RATE * factor * 60.0] * HALF}
    return Traffic.from_counts(f"jump x {factor}", counts, bin_seconds=60, start=datetime(2026, 3, 2, tzinfo=UTC))


def meet(traffic: Traffic, policy: str, timing: Timing | None = None) -> Run:
    """One policy over it, on a table with room to the quota."""
    write = TargetSetup(units=1, min=1, max=_QUOTA)
    table = ResourceSetup(
        index=None, read=TargetSetup.fixed(1), write=write, warm_read_units=1, warm_write_units=_QUOTA
    )
    return run_policy(policy, TableSetup(name="jump", resources=(table,)), traffic, timing=timing)


def last_throttle(run: Run, begun_minute: int) -> int:
    """Seconds from the jump to the end of the last minute that throttled, 0 where none did."""
    minutes = run.throttled_minutes()
    return (minutes[-1] + 1 - begun_minute) * 60 if minutes else 0


def show(timing: Timing) -> None:
    """Print a line for each policy and jump, and for the article's figure 2."""
    print(f"{'policy':20}" + "".join(f"{f'x {factor}':>20}" for factor in FACTORS) + f"{'figure 2':>20}")
    figure = scenario("figure-2")
    for policy in POLICIES:
        cells = []
        for factor in FACTORS:
            run = meet(jump(factor), policy, timing)
            asked = RATE * factor * 60 * HALF
            cells.append(f"{last_throttle(run, HALF):>6} s {100 * run.throttled_units / asked:>5.2f} %")
        run = meet(figure, policy, timing)
        cells.append(f"{run.throttled_units:>8,.0f} units {100 * run.throttled_units / run.demanded_units:>4.2f} %")
        print(f"{policy:20}" + "".join(f"{cell:>20}" for cell in cells))


def main() -> int:
    """Print two tables: auto scaling as slow as the article's figures have it, and as quick as it was measured."""
    usual = Timing()
    print("seconds to the last throttle, share throttled of all asked for after the jump")
    print(f"\ncapacity {usual.autoscaling_update} s after auto scaling's call, as the simulator has it by default")
    show(usual)
    print(f"\n{MEASURED_SECONDS} s after it: 1.0 to 4.4 s were measured when a floor was raised on a quiet table")
    show(replace(usual, autoscaling_update=MEASURED_SECONDS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
