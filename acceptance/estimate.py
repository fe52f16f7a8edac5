"""Tells what a run does, how long it takes and what it can cost, and asks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from rich.console import Console
from rich.table import Table

from acceptance.costs import SMALL_THINGS_USD, Cost, cost_of, ends_within
from acceptance.deployed import plans_of
from acceptance.parts.part import Part
from acceptance.stage import Stage
from highwater.core import Plan
from highwater_lab.services.prices import Prices, load_prices

# The times of a week at which a run could begin
_STEP: Final = timedelta(minutes=30)
_STEPS: Final = 7 * 48
# So much above the least is cheap still
_CHEAP: Final = 1.05


def tell_cost(stage: Stage, parts: Sequence[Part], region: str = "") -> float:
    """Synthesize every part's app and print what it can cost at most; return the sum in USD.

    It is at prices of *region*, by default the place's: a local cloud has only one.
    """
    region = region or stage.place.region
    prices = load_prices(region)
    planned = [(part, _plans_of(stage, part)) for part in parts]
    costs = costs_at(stage.now(), planned, prices)
    view = Table(title=f"At most, in {region}", title_justify="left")
    for column in ("part", "what it does"):
        view.add_column(column)
    for column in ("minutes", "capacity", "marks", "alarms", "USD"):
        view.add_column(column, justify="right")
    for part, cost in zip(parts, costs, strict=True):
        figures = (cost.capacity, cost.marks, cost.alarms, cost.total)
        view.add_row(part.name, part.title, str(part.minutes), *(f"{usd:.2f}" for usd in figures))
    total = _sum(costs)
    minutes = str(sum(part.minutes for part in parts))
    view.add_row("all", "with requests of other services", minutes, "", "", "", f"{total:.2f}")
    stage.console.print(view)
    stage.console.print(
        "Each part deletes what it made, and is ended if it takes half as long again as it should. Its capacity is "
        "counted at the highest level that it can reach, for every clock hour that it can touch. Prices of "
        f"{prices.dated}, without taxes.",
        highlight=False,
    )
    other = other_times(stage.now(), total, planned, prices)
    if other:
        stage.console.print(other, highlight=False)
    return total


def costs_at(start: datetime, planned: Sequence[tuple[Part, Sequence[Plan]]], prices: Prices) -> list[Cost]:
    """What each part can cost at most in a run that begins at *start*, given the plans of its app."""
    # parts may be quicker than they are said to be, so that each may begin at once
    end = start
    found = []
    for part, plans in planned:
        end += ends_within(part.minutes)
        cost = cost_of(
            plans,
            minutes=part.minutes,
            reaches_ceiling=part.reaches_ceiling,
            bare_units=part.bare_units,
            start=start,
            end=end,
            prices=prices,
        )
        found.append(cost)
    return found


def other_times(
    now: datetime, total: float, planned: Sequence[tuple[Part, Sequence[Plan]]], prices: Prices
) -> str | None:
    """Say what the run can cost if it begins at another time of the week from *now* on, and when it is cheap.

    *total* is what it can cost now, in USD. `None` if it hardly depends on the time.
    """
    first = now.replace(minute=0, second=0, microsecond=0) + _STEP
    sums = {at: _sum(costs_at(at, planned, prices)) for at in (first + _STEP * step for step in range(_STEPS))}
    least, most = min(sums.values()), max(sums.values())
    if most <= least * _CHEAP:
        return None
    said = f"Windows that are open make some times of the week dearer: a run can cost {least:.2f} to {most:.2f} USD"
    if total <= least * _CHEAP:
        return f"{said}; now is a cheap time."
    return (
        f"{said}; the next cheap time is {min(at for at, usd in sums.items() if usd <= least * _CHEAP):%A %H:%M} UTC."
    )


def _sum(costs: Sequence[Cost]) -> float:
    return SMALL_THINGS_USD + sum(cost.total for cost in costs)


def _plans_of(stage: Stage, part: Part) -> list[Plan]:
    if part.app is None:
        return []
    with stage.console.status(f"synthesize {part.app.stack} …"):
        out = stage.cdk.synth(part.app, part.context(stage))
    return [plan for _, plan in plans_of(stage.template(part.app, out))]


def is_agreed(console: Console, account: str, title: str, usd: float) -> bool:
    """Ask for the account's number as a confirmation; return whether it was given."""
    console.print(
        f"This deploys to {title}, sends traffic, deletes everything at its end, and costs up to {usd:.2f} USD.\n"
        "Type the account's number to begin:",
        highlight=False,
    )
    return sys.stdin.readline().strip() == account
