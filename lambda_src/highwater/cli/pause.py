"""`highwater pause` and `highwater resume`: suspend and resume all scaling of a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import click
from botocore.exceptions import BotoCoreError, ClientError, NoRegionError

from highwater.aws import autoscaling, parameters, tables
from highwater.aws.autoscaling import RegisteredTargets
from highwater.aws.parameters import read_plans
from highwater.aws.tables import DescribedTable, TableBusyError, TableNotFoundError, TableRefusedError
from highwater.cli.options import NO_REGION, account_options, as_json_option
from highwater.core.errors import did_you_mean
from highwater.core.names import TargetName, table_of_label, target_label
from highwater.core.scaler import Mode
from highwater.terminal.console import say

_FINDING = 1


@click.command(short_help="Suspend all scaling of a table.")
@click.argument("table")
@click.option("--yes", is_flag=True, help="Pause also where that moves capacity at once.")
@account_options
@as_json_option
def pause(table: str, yes: bool, region: str | None, as_json: bool) -> None:
    """Suspend scaling of TABLE and its indexes: target tracking, windows and the scaler do not change their capacity.

    Pausing itself changes capacity that is outside the bounds of its target: Application Auto Scaling at once lowers
    it to the ceiling, or raises it to the floor. Where that would happen, nothing is paused and the exit status is 1;
    --yes pauses all the same. To set capacity outside the bounds by hand, pause first.

    Give TABLE as `highwater explain` prints it: `orders`, or `eu-west-1/orders` if the table is in another region than
    its scaler. If the table is still paused after a day, the scaler's alarm `Paused` goes off. Tables in DIRECT mode
    have no scalable target and cannot be paused.
    """
    _suspend(table, region, suspended=True, may_move_capacity=yes, as_json=as_json)


@click.command(short_help="Resume scaling of a paused table.")
@click.argument("table")
@account_options
@as_json_option
def resume(table: str, region: str | None, as_json: bool) -> None:
    """Resume scaling of TABLE and its indexes; the scaler's next run corrects their floors.

    Capacity outside the bounds of its target is moved into them at once.

    Give TABLE as `highwater explain` prints it: `orders`, or `eu-west-1/orders`.
    """
    _suspend(table, region, suspended=False, may_move_capacity=True, as_json=as_json)


def _suspend(label: str, region: str | None, *, suspended: bool, may_move_capacity: bool, as_json: bool) -> None:
    table, own_region = table_of_label(label)
    done: list[TargetName] = []
    try:
        client = autoscaling.client(own_region or region)
        names = autoscaling.find_targets(client, table)
        if not names:
            raise click.ClickException(_why_no_target(label, region))
        if not may_move_capacity:
            targets = autoscaling.read_targets(client, names)
            described = tables.describe_table(tables.client(own_region or region), table)
            _refuse_to_move_capacity(label, moves_of(names, targets, described))
        for name in names:
            autoscaling.suspend(client, name, suspended=suspended)
            done.append(name)
    except NoRegionError:
        raise click.ClickException(NO_REGION) from None
    except (TableNotFoundError, TableBusyError, TableRefusedError) as unknown:
        raise click.ClickException(
            f"table {label!r} cannot be described, so it is not known whether pausing would move its capacity, and "
            f"nothing is paused: {unknown}; to pause all the same, give --yes"
        ) from unknown
    except (ClientError, BotoCoreError) as failed:
        what = "paused" if suspended else "resumed"
        so_far = f"; {what} before: {', '.join(map(str, done))}; run the command again for the rest" if done else ""
        raise click.ClickException(f"a request to Application Auto Scaling failed: {failed}{so_far}") from failed
    _print(label, names, suspended=suspended, as_json=as_json)


def moves_of(names: Iterable[TargetName], targets: RegisteredTargets, described: DescribedTable) -> list[str]:
    """Describe each change of capacity that registering the targets *names* would cause."""
    moves = []
    for name in names:
        bounds, units = targets.of(name), described.capacities.get(name.index)
        provisioned = 0 if units is None else units.of(name.dimension)
        # a table on demand has no units, and nothing moves them
        if bounds is None or not provisioned or bounds.min <= provisioned <= bounds.max:
            continue
        is_above = provisioned > bounds.max
        where = f"its ceiling of {bounds.max:,}" if is_above else f"its floor of {bounds.min:,}"
        verb = "lowered" if is_above else "raised"
        label = target_label(name.index, name.dimension)
        moves.append(f"{label} would be {verb} from {provisioned:,} units/s to {where}")
    return moves


def _refuse_to_move_capacity(label: str, moves: Sequence[str]) -> None:
    if not moves:
        return
    fix = "change the bounds first, or give --yes to pause all the same"
    say(f"highwater: {label}: pausing would change capacity at once: {', '.join(moves)}; {fix}", err=True)
    raise click.exceptions.Exit(_FINDING)


def _why_no_target(label: str, region: str | None) -> str:
    try:
        plans = read_plans(parameters.client(region)).plans
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
        f"--region{did_you_mean(label, {plan.label for plan in plans})}"
    )


def _print(label: str, names: list[TargetName], *, suspended: bool, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"table": label, "paused": suspended, "targets": [str(name) for name in names]}))
        return
    say(f"{label}: {len(names)} targets {'paused' if suspended else 'resumed'}")
