"""What a run can cost at most, by the units that each part may provision and the hours that it may take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from rich.console import Console
from rich.table import Column, Table

from acceptance.stage import Part
from highwater_lab.services.prices import Prices, load_prices

# A part is ended when it has taken so many times as long as it is said to take
_PATIENCE: Final = 1.5
# Deleting waits for decreases and for CloudFormation
_DELETING: Final = timedelta(minutes=20)
# What is not listed costs at most this much: some hours of a hundred alarms and of a KMS key, which cost 10 cents and a
# dollar a month; some thousand requests of on-demand tables and calls of Lambda, EventBridge, SNS, SQS, Systems Manager
# and S3 at millionths of a dollar each
SMALL_THINGS_USD: Final = 0.25


def longest(minutes: int) -> timedelta:
    """The time after which a part that is said to take *minutes* is ended."""
    return timedelta(minutes=math.ceil(minutes * _PATIENCE))


def clock_hours(minutes: int) -> int:
    """The clock hours that such a part can touch; DynamoDB bills each at its highest capacity."""
    return math.ceil((longest(minutes) + _DELETING) / timedelta(hours=1)) + 1


def cost_of(part: Part, prices: Prices) -> float:
    """The highest cost of a part's capacity in USD: all in every hour, its units at the price of writes."""
    price = prices.throughput()
    hourly = part.units * price.write_unit_hour + part.read_units * price.read_unit_hour
    return hourly * clock_hours(part.minutes)


def tell_cost(console: Console, parts: Sequence[Part], region: str) -> float:
    """Print what each part can cost at most in *region*; return the sum in USD."""
    prices = load_prices(region)
    numbers = (Column(name, justify="right") for name in ("minutes", "units", "read units", "hours", "USD"))
    view = Table("part", "what it does", *numbers, title=f"At most, in {region}", title_justify="left")
    for part in parts:
        usd = f"{cost_of(part, prices):.2f}"
        counts = (part.minutes, part.units, part.read_units or "", clock_hours(part.minutes))
        view.add_row(part.name, part.title, *map(str, counts), usd)
    total = SMALL_THINGS_USD + sum(cost_of(part, prices) for part in parts)
    minutes = str(sum(part.minutes for part in parts))
    view.add_row("all", "with what other services cost", minutes, "", "", "", f"{total:.2f}")
    console.print(view)
    console.print(
        "Each part deletes what it made, and is ended if it takes half as long again as it should. All units that it "
        "may provision are counted, at the price of writes unless they are listed as read units, for every clock hour "
        f"that it can touch. Prices of "
        f"{prices.dated}, without taxes.",
        highlight=False,
    )
    return total
