"""What the pages say of the scaler's cost and of jumps is what the commands print."""

from __future__ import annotations

from benchmarks.jumps import HALF, RATE, jump, last_throttle, meet
from benchmarks.scaler_cost import LIMIT, METRICS_PER_MONTH, per_scaler, per_target
from tests.cdk_cli import ROOT


def test_cost_page_says_what_the_command_prints() -> None:
    page = (ROOT / "docs" / "cost.md").read_text()
    for lines in (per_target(), per_scaler()):
        for what, usd in lines:
            assert f"| {what} | {usd:.4f} |" in page
        assert f"| together | {sum(usd for _, usd in lines):.4f} |" in page


def test_metrics_that_are_paid_for_are_those_of_the_scoreboard() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert f"per scaled target and month: highwater-floor {METRICS_PER_MONTH:,}, " in page


def test_target_costs_less_than_the_limit() -> None:
    assert sum(usd for _, usd in per_target()) <= LIMIT


def test_tenfold_jump_is_over_as_soon_as_the_first_datapoint_allows() -> None:
    native, floor, direct = (meet(jump(10), policy) for policy in ("native:70", "highwater-floor", "highwater-direct"))
    assert (last_throttle(native, HALF), last_throttle(floor, HALF), last_throttle(direct, HALF)) == (1_860, 300, 240)
    asked = RATE * 10 * 60 * HALF
    assert [round(1000 * run.throttled_units / asked) for run in (native, floor, direct)] == [142, 27, 23]
