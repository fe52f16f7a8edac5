"""`highwater boosts` and `highwater unboost`: what is boosted, by whom, and giving it back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import click

from highwater.cli.coordinator_call import coordinator_option, told_in_a_line
from highwater.cli.options import account_options, as_json_option
from highwater.cli.terminal import say
from highwater.client import CoordinatorClient


@click.command(short_help="The live boosts of a table, or who boosted it when and why.")
@click.argument("table")
@click.option("--log", "is_log", is_flag=True, help="The last 50 entries of the log, of 90 days.")
@coordinator_option
@account_options
@as_json_option
def boosts(table: str, is_log: bool, coordinator: str | None, region: str | None, as_json: bool) -> None:
    """List the boosts of TABLE that are live or booked."""
    client = CoordinatorClient(coordinator=coordinator, session=boto3.Session(region_name=region))
    with told_in_a_line():
        document = client.send("log" if is_log else "list", table=table)
    if as_json:
        click.echo(json.dumps(document, indent=1))
        return
    for line in _logged(document["log"]) if is_log else _listed(document["boosts"]):
        say(line)


@click.command(short_help="Give a boost back.")
@click.argument("table")
@click.argument("id")
@coordinator_option
@account_options
@as_json_option
def unboost(table: str, id: str, coordinator: str | None, region: str | None, as_json: bool) -> None:
    """End the boost ID of TABLE now; `highwater boosts TABLE` lists the ids."""
    client = CoordinatorClient(coordinator=coordinator, session=boto3.Session(region_name=region))
    with told_in_a_line():
        document = client.send("release", table=table, id=id)
    if as_json:
        click.echo(json.dumps(document, indent=1))
        return
    say(f"{table}: boost {id} is given back" if document["released"] else f"{table}: boost {id} was over already")
    for note in document["notes"]:
        say(note)


def _listed(listed: list[dict[str, Any]]) -> Iterator[str]:
    if not listed:
        yield "no boost is live or booked"
    for each in listed:
        what = f"{each['units']:,} units/s{' in total' if each['is_total'] else ''} of {each['target']}"
        why = f": {each['reason']}" if each["reason"] else ""
        yield f"{each['id']}  {what} from {_time(each['start'])} until {_time(each['end'])} UTC, {each['owner']}{why}"


def _logged(entries: list[dict[str, Any]]) -> Iterator[str]:
    if not entries:
        yield "nobody asked for a boost in the last 90 days"
    for entry in entries:
        who = entry["owner"] + (f" ({entry['session']})" if entry.get("session") else "")
        if entry["what"] != "begin":
            yield f"{_time(entry['at'])} {entry['what']} {entry['id']} by {who}"
            continue
        got = ", ".join(f"{each['target']} {each['units']:,} of {each['asked']:,}" for each in entry["targets"])
        reasons = {each["reason"] for each in entry["targets"] if each["reason"]}
        why = f": {', '.join(sorted(reasons))}" if reasons else ""
        yield f"{_time(entry['at'])} begin {entry['id']} by {who}: {got} until {_time(entry['end'])}{why}"


def _time(text: str) -> str:
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S}"
