"""`highwater pause` and `highwater resume`: hands off a table, and on again."""

from __future__ import annotations

import json

import click
from botocore.exceptions import BotoCoreError, ClientError

from highwater.aws import autoscaling
from highwater.aws.region import AwsRegion
from highwater.cli.options import as_json_option, region_option
from highwater.core.names import TargetName, table_of_label
from highwater.core.scaler import Mode


@click.command(short_help="Suspend all scaling of a table.")
@click.argument("table")
@region_option
@as_json_option
def pause(table: str, region: str | None, as_json: bool) -> None:
    """Suspend scaling of TABLE and its indexes: target tracking, windows and the scaler leave capacity as it is.

    TABLE is named as `highwater explain` prints it: `orders`, or `eu-west-1/orders` where it is in another region than
    its scaler. After a day the scaler's alarm reminds of it. Tables in DIRECT mode cannot be paused: they have no
    scalable target.
    """
    _suspend(table, region, suspended=True, as_json=as_json)


@click.command(short_help="Let a paused table be scaled again.")
@click.argument("table")
@region_option
@as_json_option
def resume(table: str, region: str | None, as_json: bool) -> None:
    """Let TABLE and its indexes be scaled again; the scaler's next run brings floors to where they should be.

    TABLE is named as `highwater explain` prints it: `orders`, or `eu-west-1/orders`.
    """
    _suspend(table, region, suspended=False, as_json=as_json)


def _suspend(label: str, region: str | None, *, suspended: bool, as_json: bool) -> None:
    table, own_region = table_of_label(label)
    try:
        client = autoscaling.client(own_region or region)
        names = autoscaling.find_targets(client, table)
        if not names:
            raise click.ClickException(_why_no_target(label, region))
        for name in names:
            autoscaling.suspend(client, name, suspended=suspended)
    except (ClientError, BotoCoreError) as refused:
        raise click.ClickException(f"Application Auto Scaling did not answer: {refused}") from refused
    _print(label, names, suspended=suspended, as_json=as_json)


def _why_no_target(label: str, region: str | None) -> str:
    try:
        plans = AwsRegion(region).read_plans().plans
    except (ClientError, BotoCoreError):
        # who may suspend targets need not be allowed to read plans
        plans = ()
    if any(plan.label == label and plan.mode is Mode.DIRECT for plan in plans):
        return (
            f"table {label!r} is in DIRECT mode, which has no scalable target to suspend; set dry_run=True on its "
            "scaler, or take add_direct_table out, and deploy"
        )
    return (
        f"there is no scalable target of a table {label!r} here; deploy the table first, or give --region where it is"
    )


def _print(label: str, names: list[TargetName], *, suspended: bool, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"table": label, "paused": suspended, "targets": [str(name) for name in names]}))
        return
    click.echo(f"{label}: {len(names)} targets {'paused' if suspended else 'are scaled again'}")
