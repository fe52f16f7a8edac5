"""`highwater pause` and `highwater resume`: suspend and resume all scaling of a table."""

from __future__ import annotations

import json

import click
from botocore.exceptions import BotoCoreError, ClientError, NoRegionError

from highwater.aws import autoscaling
from highwater.aws.region import AwsRegion
from highwater.cli.options import NO_REGION, account_options, as_json_option
from highwater.cli.terminal import say
from highwater.core.names import TargetName, table_of_label
from highwater.core.scaler import Mode


@click.command(short_help="Suspend all scaling of a table.")
@click.argument("table")
@account_options
@as_json_option
def pause(table: str, region: str | None, as_json: bool) -> None:
    """Suspend scaling of TABLE and its indexes: target tracking, windows and the scaler do not change their capacity.

    Give TABLE as `highwater explain` prints it: `orders`, or `eu-west-1/orders` if the table is in another region than
    its scaler. If the table is still paused after a day, the scaler's alarm `Paused` goes off. Tables in DIRECT mode
    have no scalable target and cannot be paused.
    """
    _suspend(table, region, suspended=True, as_json=as_json)


@click.command(short_help="Resume scaling of a paused table.")
@click.argument("table")
@account_options
@as_json_option
def resume(table: str, region: str | None, as_json: bool) -> None:
    """Resume scaling of TABLE and its indexes; the scaler's next run corrects their floors.

    Give TABLE as `highwater explain` prints it: `orders`, or `eu-west-1/orders`.
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
    except NoRegionError:
        raise click.ClickException(NO_REGION) from None
    except (ClientError, BotoCoreError) as failed:
        raise click.ClickException(f"a request to Application Auto Scaling failed: {failed}") from failed
    _print(label, names, suspended=suspended, as_json=as_json)


def _why_no_target(label: str, region: str | None) -> str:
    try:
        plans = AwsRegion(region).read_plans().plans
    except (ClientError, BotoCoreError):
        # permission to suspend targets does not include permission to read plans
        plans = ()
    if any(plan.label == label and plan.mode is Mode.DIRECT for plan in plans):
        return (
            f"table {label!r} is in DIRECT mode, which has no scalable target to suspend; set dry_run=True on its "
            "scaler, or remove the call of add_direct_table, and deploy"
        )
    return (
        f"table {label!r} has no scalable target in this region; deploy the table first, or give its region with "
        "--region"
    )


def _print(label: str, names: list[TargetName], *, suspended: bool, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"table": label, "paused": suspended, "targets": [str(name) for name in names]}))
        return
    say(f"{label}: {len(names)} targets {'paused' if suspended else 'resumed'}")
