"""Tells what a run does, how long it takes and what it can cost, and asks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime

from rich.console import Console
from rich.table import Table

from acceptance.costs import SMALL_THINGS_USD, Cost, cost_of, ends_within
from acceptance.deployed import plans_of
from acceptance.parts.part import Part
from acceptance.stage import Stage
from highwater_lab.services.prices import load_prices


def tell_cost(stage: Stage, parts: Sequence[Part]) -> float:
    """Synthesize every part's app and print what it can cost at most; return the sum in USD."""
    prices = load_prices(stage.place.region)
    # parts may be quicker than they are said to be, so that each may begin at once
    start = end = stage.now()
    view = Table(title=f"At most, in {stage.place.region}", title_justify="left")
    for column in ("part", "what it does"):
        view.add_column(column)
    for column in ("minutes", "capacity", "marks", "alarms", "USD"):
        view.add_column(column, justify="right")
    total = SMALL_THINGS_USD
    for part in parts:
        end += ends_within(part.minutes)
        cost = _cost(stage, part, start, end)
        total += cost.total
        figures = (cost.capacity, cost.marks, cost.alarms, cost.total)
        view.add_row(part.name, part.title, str(part.minutes), *(f"{usd:.2f}" for usd in figures))
    view.add_row(
        "all", "with requests of other services", str(sum(part.minutes for part in parts)), "", "", "", f"{total:.2f}"
    )
    stage.console.print(view)
    stage.console.print(
        "Each part deletes what it made, and is ended if it takes half as long again as it should. Its capacity is "
        "counted at the highest level that it can reach, for every clock hour that it can touch. Prices of "
        f"{prices.dated}, without taxes.",
        highlight=False,
    )
    return total


def _cost(stage: Stage, part: Part, start: datetime, end: datetime) -> Cost:
    plans = []
    if part.app is not None:
        with stage.console.status(f"synthesize {part.app.stack} …"):
            out = stage.cdk.synth(part.app, part.context(stage))
        plans = [plan for _, plan in plans_of(stage.template(part.app, out))]
    return cost_of(
        plans,
        minutes=part.minutes,
        reaches_ceiling=part.reaches_ceiling,
        bare_units=part.bare_units,
        start=start,
        end=end,
        prices=load_prices(stage.place.region),
    )


def is_agreed(console: Console, account: str, title: str, usd: float) -> bool:
    """Ask for the account's number as a confirmation; return whether it was given."""
    console.print(
        f"This deploys to {title}, sends traffic, deletes everything at its end, and costs up to {usd:.2f} USD.\n"
        "Type the account's number to begin:",
        highlight=False,
    )
    return sys.stdin.readline().strip() == account
