"""What the pages say of the scaler's cost and of jumps is what the commands print."""

from __future__ import annotations

import math
import re

from benchmarks.figures import SURGE
from benchmarks.jumps import FACTORS, FIGURE_2_ADDED, HALF, RATE, jump, last_throttle, meet, meet_boosted
from benchmarks.scaler_cost import (
    LIMIT,
    METRICS_PER_MONTH,
    besides,
    of_fleet,
    per_boost,
    per_coordinator,
    per_pulses,
    per_scaler,
    per_target,
)
from highwater.core.prices import HOURS_PER_MONTH
from highwater_lab.services.prices import load_prices
from highwater_lab.traffic import scenario
from tests.cdk_cli import ROOT


def test_cost_page_says_what_the_command_prints() -> None:
    page = "".join((ROOT / "docs" / name).read_text() for name in ("cost.md", "cost-of-boosts-and-pulses.md"))
    for what, usd in per_pulses():
        assert f"| {what} | {usd:.4f} |" in page
    for what, usd in per_boost():
        assert f"| {what} | {usd:.6f} |" in page
    assert f"| together | {sum(usd for _, usd in per_boost()):.6f} |" in page
    for lines in (per_target(), per_scaler(), besides(), per_coordinator()):
        for what, usd in lines:
            assert f"| {what} | {usd:.4f} |" in page
    for lines in (per_target(), per_scaler()):
        assert f"| together | {sum(usd for _, usd in lines):.4f} |" in page


def test_pages_say_what_thirty_tables_cost() -> None:
    page = (ROOT / "docs" / "cost.md").read_text()
    bare, indexed = of_fleet(30), of_fleet(30, indexes=2)
    names = ["the scaler itself", "the targets"]
    names += ["with or without Highwater: alarms of target tracking", "if you want: `CapacityAlarms` of all tables"]
    names += ["if you want: a coordinator that shares the scaler's function, at most"]
    for name, (_, usd), (_, more) in zip(names, bare, indexed, strict=True):
        assert f"| {name} | {usd:.2f} | {more:.2f} |" in page
    together = [f"{lines[0][1] + lines[1][1]:.2f}" for lines in (bare, indexed)]
    assert f"| **together** | **{together[0]}** | **{together[1]}** |" in page
    write_unit = load_prices().throughput().write_unit_hour * HOURS_PER_MONTH
    assert f"is {write_unit:.2f} USD" in page
    assert f"save {math.ceil((bare[0][1] + bare[1][1]) / write_unit)} of them" in page
    answer = f"{together[0]} USD a month without indexes, and {together[1]} with two indexes"
    assert answer in " ".join((ROOT / "docs" / "faq.md").read_text().split())


def test_metrics_that_are_paid_for_are_those_of_the_scoreboard() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert f"per scaled target and month: highwater-floor {METRICS_PER_MONTH:,}, " in page
    of_pulses = [int(found.replace(",", "")) for found in re.findall(r"highwater-\w+-pulse ([\d,]+)[,.] ?", page)[:2]]
    cost = load_prices().thousand_metrics_requested / 1000
    said = (
        f"{of_pulses[0]:,} metrics for each target and month in FLOOR mode and {of_pulses[1]:,} in DIRECT mode "
        f"([benchmarks](benchmarks.md)), which cost {of_pulses[0] * cost:.2f} and {of_pulses[1] * cost:.2f} USD."
    )
    assert said in " ".join((ROOT / "docs" / "cost-of-boosts-and-pulses.md").read_text().split())


def _worlds(section: str) -> list[list[tuple[float, float]]]:
    """Of each row of a section of docs/worlds.md, throttled and cost in FLOOR and in DIRECT mode."""
    page = (ROOT / "docs" / "worlds.md").read_text().partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[2:4] for line in page.splitlines() if " at " in line]
    return [[(float(cell.split()[0]), float(cell.split()[2])) for cell in row] for row in rows]


def test_readme_says_what_worlds_scoreboard_and_prices_say() -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    for what, section in (
        ("with the [scaler](docs/scaler.md)", "Without pulses"),
        ("with the scaler and [pulses](docs/pulse.md)", "With pulses"),
    ):
        recorded, *others = _worlds(section)
        assert len(others) > 10
        # throttled and cost, each of FLOOR and of DIRECT mode; rounded half up: the page has three digits
        throttled, costs = (
            " / ".join(
                f"{recorded[mode][figure] + 1e-9:.2f} ({max(row[mode][figure] for row in others) + 1e-9:.2f})"
                for mode in range(2)
            )
            for figure in range(2)
        )
        assert f"| {what}, FLOOR mode / DIRECT mode | {costs} | {throttled} |" in readme
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    (on_demand,) = [row[2] for row in rows if len(row) == 3 and row[0] == "on-demand"]
    assert f"On-demand costs {float(on_demand):.2f} of native auto scaling" in readme
    prices = load_prices().throughput()
    even = prices.write_unit_hour / (prices.on_demand_write_million * 3600 / 1_000_000)
    assert f"below {100 * even:.0f} % use of the provisioned capacity" in readme


def test_pages_say_what_worlds_says() -> None:
    choosing, scaler = ((ROOT / "docs" / name).read_text() for name in ("choosing.md", "scaler.md"))
    (floor, direct), (pulsed_floor, pulsed_direct) = (_worlds(f"{name} pulses")[0] for name in ("Without", "With"))
    assert (
        f"| {floor[1]:.3f} of the cost, {floor[0]:.3f} of the throttles | {direct[1]:.3f} and {direct[0]:.3f} |"
        in choosing
    )
    assert (
        f"| {pulsed_floor[1]:.3f} and {pulsed_floor[0]:.3f} | {pulsed_direct[1]:.3f} and {pulsed_direct[0]:.3f} |"
        in choosing
    )
    said = " ".join(scaler.split())
    assert f"it throttles {floor[0]:.3f} of the units at {floor[1]:.3f} of the cost" in said
    assert f"DIRECT mode {direct[0]:.3f} at {direct[1]:.3f}" in said


def test_target_costs_less_than_the_limit() -> None:
    assert sum(usd for _, usd in per_target()) <= LIMIT


def test_tenfold_jump_is_over_as_soon_as_the_first_datapoint_allows() -> None:
    native, floor, direct = (meet(jump(10), policy) for policy in ("native:70", "highwater-floor", "highwater-direct"))
    assert (last_throttle(native, HALF), last_throttle(floor, HALF), last_throttle(direct, HALF)) == (1_500, 240, 240)
    asked = RATE * 10 * 60 * HALF
    assert [round(1000 * run.throttled_units / asked) for run in (native, floor, direct)] == [114, 21, 20]


def test_boost_meets_every_jump_and_figure_2_without_a_throttle() -> None:
    for factor in FACTORS:
        assert meet_boosted(jump(factor), RATE * (factor - 1), HALF).throttled_units == 0
        assert meet(jump(factor), "native:70").throttled_units > 0 or factor == min(FACTORS)
    minute = int(SURGE.total_seconds()) // 60
    figure = scenario("figure-2")
    assert meet_boosted(figure, FIGURE_2_ADDED, minute).throttled_units == 0
    assert meet(figure, "native:70").throttled_units > 0
    page = (ROOT / "docs" / "boosts.md").read_text()
    for name, policy in (("target tracking at 70 %", "native:70"), ("the scaler", "highwater-floor")):
        share = 100 * meet(jump(10), policy).throttled_units / (RATE * 10 * 60 * HALF)
        assert f"| {name} | {share:.2f} % | {meet(figure, policy).throttled_units:,.0f} units |" in page
