"""`highwater prices`: shows the prices from which costs are computed, and fetches newer ones into a file."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from highwater.terminal.console import open_console, say
from highwater_lab.commands.options import Misuse, check_places, misuse_of_errors
from highwater_lab.files import read_file, replace_file
from highwater_lab.services.prices import PRICE_LIST_URL, Prices, load_prices, price_file

_SECONDS_TO_WAIT = 60
_path = click.Path(path_type=Path)


@click.command("prices", short_help="Show prices by region, or fetch AWS's current ones into a file.")
@click.option("--prices", "shown", type=_path, help="Show the prices of this file instead of the lab's.")
@click.option("--fetch", is_flag=True, help="Fetch AWS's current price list. Needs no credentials.")
@click.option("--from", "source", type=_path, help="Read AWS's price list, or a CSV of rates, from this file instead.")
@click.option("--out", type=_path, help="Write the fetched prices to this file, for --prices of other commands.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def prices_command(shown: Path | None, fetch: bool, source: Path | None, out: Path | None, as_json: bool) -> None:
    """Show what DynamoDB's throughput costs in each region, in USD, by the file that `rehearse` and `recommend` use.

    The lab's file has a date. For current prices make a file of your own, and give it to them with --prices.

    \b
    highwater prices
    highwater prices --fetch --out prices.json

    Exit status: 0 fine, 2 misuse.
    """  # noqa: D301 - a real backspace character, after which click keeps the line breaks
    if fetch and source is not None:
        raise Misuse("give --fetch or --from, not both")
    is_made = fetch or source is not None
    if is_made == (out is None):
        raise Misuse("--fetch and --from need --out FILE" if is_made else "--out is for --fetch or --from; give one")
    check_places({"--prices": shown, "--from": source}, {"--out": out})
    with misuse_of_errors():
        if out is not None:
            text = _fetched() if source is None else _read(source)
            made = price_file(text, PRICE_LIST_URL if source is None else source.name, datetime.now(UTC).date())
            replace_file(out, (json.dumps(made, indent=2) + "\n").encode())
            shown = out
        prices = load_prices(file=shown)
    if as_json:
        regions = {region: asdict(prices.regions[region]) for region in sorted(prices.regions)}
        click.echo(json.dumps({"dated": prices.dated, "regions": regions}))
        return
    _print(prices, open_console())
    if out is not None:
        say(f"written: {out}")


def _print(prices: Prices, console: Console) -> None:
    view = Table(box=None, pad_edge=False, header_style="dim")
    view.add_column(f"prices of {prices.dated}", no_wrap=True)
    for heading in ("WCU $/hour", "RCU $/hour", "$/M writes", "$/M reads", "of us-east-1"):
        view.add_column(heading, justify="right", no_wrap=True)
    base = prices.throughput().write_unit_hour
    for region in sorted(prices.regions):
        unit = prices.regions[region].standard
        view.add_row(
            region,
            f"{unit.write_unit_hour:.6f}",
            f"{unit.read_unit_hour:.6f}",
            f"{unit.on_demand_write_million:.4f}",
            f"{unit.on_demand_read_million:.4f}",
            f"{unit.write_unit_hour / base:.2f}" if base else "",
        )
    console.print(view)


def _fetched() -> str:
    try:
        with urllib.request.urlopen(PRICE_LIST_URL, timeout=_SECONDS_TO_WAIT) as answer:  # noqa: S310 - a constant
            text: str = answer.read().decode()
    except (OSError, UnicodeDecodeError, urllib.error.URLError) as error:
        raise Misuse(
            f"{PRICE_LIST_URL}: cannot be read: {error}; download it elsewhere and give the file with --from"
        ) from error
    return text


def _read(file: Path) -> str:
    try:
        return read_file(file).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a UTF-8 text file"
        raise Misuse(f"{file}: cannot be read: {reason}") from error
