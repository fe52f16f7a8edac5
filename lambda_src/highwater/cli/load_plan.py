"""What `highwater load --plan` says."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Final

import click

from highwater.cli.terminal import open_console, say
from highwater.client import Put, WritePlan
from highwater.core.prices import unit_hour_micro_usd
from highwater.core.units import Dimension

_MOST_SHOWN: Final = 10
_EVERY: Final = 1_000


@dataclass(slots=True)
class ShownRejects:
    """The first items that DynamoDB would not take: where they stand, and why."""

    lines: list[tuple[str, str]] = field(default_factory=list)

    def add(self, place: str, why: str) -> None:
        """Keep one, if it is among the first ten."""
        if len(self.lines) < _MOST_SHOWN:
            self.lines.append((place, why))


def print_plan(plan: WritePlan, rejects: ShownRejects, write: float, region: str, *, as_json: bool) -> None:
    """Print what a load at *write* units per second costs."""
    price = unit_hour_micro_usd(region, Dimension.WRITE)
    usd = None if price is None else plan.units * price / 3_600 / 1_000_000
    if as_json:
        first = [{"at": place, "why": why} for place, why in rejects.lines]
        rest = {"units": plan.units, "usd": None if usd is None else round(usd, 4), "first_rejects": first}
        click.echo(json.dumps(asdict(plan) | rest))
        return
    say(f"{plan.table}: {plan.items:,} items, {plan.size_bytes:,} bytes")
    say(f"write units: {plan.table_units:,} of the table, for items that are not there yet")
    for index, units in plan.index_units.items():
        say(f"write units of index {index}: {units:,}")
    say(f"time at {write:,g} units/s: {timedelta(seconds=plan.seconds)} or more")
    if usd is not None:
        say(
            f"worth {usd:,.2f} USD of provisioned capacity, which the table has anyway unless it is raised for the load"
        )
    say("to fill a new table, an import from S3 consumes no capacity: aws dynamodb import-table")
    for place, why in rejects.lines:
        say(f"{place}: would be rejected: {why}", err=True)
    if plan.rejected > len(rejects.lines):
        say(f"{plan.rejected - len(rejects.lines):,} more items would be rejected", err=True)


@contextlib.contextmanager
def counting(title: str) -> Iterator[Callable[[Iterable[Put]], Iterator[Put]]]:
    """Pass items through; show how many they were so far on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield iter
        return
    with open_console(stderr=True).status(f"{title} …") as status:

        def count(items: Iterable[Put]) -> Iterator[Put]:
            for number, item in enumerate(items):
                if number % _EVERY == 0:
                    status.update(f"{title}: {number:,} items read")
                yield item

        yield count
