"""`highwater pause` and `highwater resume`: hands off a table, and on again."""

from __future__ import annotations

import json

import click
from botocore.exceptions import BotoCoreError, ClientError

from highwater.aws import autoscaling

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


@click.command(short_help="Suspend all scaling of a table.")
@click.argument("table")
@_JSON
def pause(table: str, as_json: bool) -> None:
    """Suspend scaling of TABLE and its indexes: target tracking, windows and the scaler leave capacity as it is.

    After a day the scaler's alarm reminds of it.
    """
    _suspend(table, suspended=True, as_json=as_json)


@click.command(short_help="Let a paused table be scaled again.")
@click.argument("table")
@_JSON
def resume(table: str, as_json: bool) -> None:
    """Let TABLE and its indexes be scaled again; the scaler's next run brings floors to where they should be."""
    _suspend(table, suspended=False, as_json=as_json)


def _suspend(table: str, *, suspended: bool, as_json: bool) -> None:
    try:
        client = autoscaling.client()
        names = autoscaling.find_targets(client, table)
        if not names:
            raise click.ClickException(
                f"no scalable target of a table {table!r} here; deploy it first, or set AWS_REGION to where it is"
            )
        for name in names:
            autoscaling.suspend(client, name, suspended=suspended)
    except (ClientError, BotoCoreError) as refused:
        raise click.ClickException(f"Application Auto Scaling could not be asked: {refused}") from refused
    if as_json:
        targets = [f"{name.resource_id} {name.dimension}" for name in names]
        click.echo(json.dumps({"table": table, "paused": suspended, "targets": targets}))
        return
    click.echo(f"{table}: {len(names)} targets {'paused' if suspended else 'are scaled again'}")
