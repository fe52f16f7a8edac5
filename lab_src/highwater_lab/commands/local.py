"""`highwater local`: start, inspect and stop the local cloud."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

import click

from highwater.terminal.durations import DurationType
from highwater.terminal.numbers import WholeNumber
from highwater_lab.commands.traffic import traffic_command
from highwater_lab.local.cloud import DRIVEN_FROM
from highwater_lab.local.control import CloudControl, CloudError, CloudStatus, is_origin
from highwater_lab.local.process import ServerOptions, start_process, stop_process
from highwater_lab.local.whereabouts import (
    Whereabouts,
    claim,
    cloud_at,
    find_cloud,
    forget,
    lost,
    none_running,
    recall,
    remember,
    scratch_folder,
    state_folder,
)

DEFAULT_PORT = 4599
_MISUSE = 2
_SESSION_TOKEN = "AWS_SESSION_TOKEN"  # noqa: S105 - the name of a variable
_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")


def _checked_origins(_: click.Context, __: click.Parameter, origins: tuple[str, ...]) -> tuple[str, ...]:
    for origin in origins:
        if not is_origin(origin):
            message = f"{origin!r} is no origin; give scheme, host and port, such as http://localhost:3000"
            raise click.BadParameter(message)
    return origins


class _Group(click.Group):
    """Ends each of its commands with one line where the cloud cannot do what is asked."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except CloudError as error:
            _refuse(str(error))


@click.group(cls=_Group, short_help="An AWS endpoint on this machine.")
def local() -> None:
    """An AWS endpoint on this machine for the real CDK CLI and any AWS SDK.

    Deploy to it, inspect it with boto3 or the AWS CLI, and move its clock ahead to watch scheduled actions run. It
    listens on the loopback interface only and keeps nothing after it is stopped.
    """


@local.command()
@click.option(
    "--port",
    type=WholeNumber(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port on the loopback interface; 0 takes any that is free.",
)
@click.option(
    "--speed",
    type=WholeNumber(1, 1000),
    default=1,
    show_default=True,
    help="Speed of the cloud's clock, as a multiple of real time.",
)
@click.option(
    "--clock",
    type=click.Choice(("running", "driven")),
    default="running",
    show_default=True,
    help="A driven clock stands still until highwater local step moves it.",
)
@click.option(
    "--starts-at",
    type=click.DateTime(("%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")),
    help=f"Where a driven clock begins, in UTC.  [default: {DRIVEN_FROM:%Y-%m-%dT%H:%M}, a Monday]",
)
@click.option(
    "--instant-updates",
    "has_instant_updates",
    is_flag=True,
    help="Apply changes of capacity, billing mode and warm throughput at once.",
)
@click.option(
    "--strict",
    "is_strict",
    is_flag=True,
    help="Enforce the policies of Lambda functions' roles, and AWS's rates of calls.",
)
@click.option(
    "--express",
    "is_express",
    is_flag=True,
    help="Carry out every operation on a stack in CloudFormation's express mode; with --strict.",
)
@click.option(
    "--fresh-account",
    "is_fresh_account",
    is_flag=True,
    help="Begin as an account in which nothing was deployed before; with --strict.",
)
@click.option(
    "--allow-origin",
    "allowed_origins",
    multiple=True,
    callback=_checked_origins,
    metavar="ORIGIN",
    help="Let web pages of this origin call the cloud, such as http://localhost:3000. May be repeated.",
)
@_as_json
def up(
    port: int,
    speed: int,
    clock: str,
    starts_at: datetime | None,
    has_instant_updates: bool,
    is_strict: bool,
    is_express: bool,
    is_fresh_account: bool,
    allowed_origins: tuple[str, ...],
    as_json: bool,
) -> None:
    """Start the local cloud in the background.

    Prints environment variables that direct the CDK CLI, the AWS CLI and the SDKs to it. Set them in a shell with:
    eval "$(highwater local up)"
    """
    is_driven = clock == "driven"
    if is_driven and speed != 1:
        _refuse(f"a driven clock has no speed; leave out --speed {speed}, or --clock driven")
    if starts_at is not None and not is_driven:
        _refuse("a running clock begins now; add --clock driven, or leave out --starts-at")
    if is_express and not is_strict:
        _refuse("only a strict cloud has an express mode; add --strict, or leave out --express")
    if is_fresh_account and not is_strict:
        _refuse("only a strict cloud can be a fresh account; add --strict, or leave out --fresh-account")
    options = ServerOptions(
        speed=speed,
        driven_from=(starts_at or DRIVEN_FROM).replace(tzinfo=UTC) if is_driven else None,
        has_instant_updates=has_instant_updates,
        is_strict=is_strict,
        is_express=is_express,
        is_fresh_account=is_fresh_account,
        allowed_origins=allowed_origins,
    )
    with claim() as place:
        gone = lost()
        log = state_folder() / "local-cloud.log"
        server = start_process(port, log, scratch_folder(), options, inherited=(place,))
        # recorded before the server may outlive this command, so that no unrecorded server is left behind
        remember(Whereabouts(server.port, server.pid))
        server.outlive_caller()
    if gone is not None:
        click.echo(f"highwater local: {gone}", err=True)
    control = CloudControl(server.port)
    if as_json:
        click.echo(json.dumps(_document(control.status()) | {"environment": control.environment()}))
        return
    click.echo(f"# local cloud at {control.endpoint} (process {server.pid}); stop it with: highwater local down")
    _print_environment(control.environment())


@local.command(short_help="Print the variables for another terminal.")
@click.option("--role", metavar="NAME", help="Name or ARN of a role of the cloud, whose credentials are to be used.")
@_as_json
def env(role: str | None, as_json: bool) -> None:
    """Print the environment variables that direct AWS's tools to the cloud that highwater local up started.

    Set them in another terminal with: eval "$(highwater local env)"

    Commands then call as the account's root, which may do everything but request a boost. A boost needs a role that
    has grant_boost: give it with --role.
    """
    recorded = recall()
    if recorded is None:
        _refuse(none_running())
    environment = CloudControl(recorded.port).environment(role)
    if as_json:
        click.echo(json.dumps(environment))
        return
    _print_environment(environment)


@local.command(short_help="Show its endpoint, its clock and its contents.")
@_as_json
def status(as_json: bool) -> None:
    """Show the local cloud's endpoint, its clock and the number of its tables."""
    _print_status(_running().status(), as_json)


@local.command(short_help="Move its clock ahead, e.g. by 2h30m.")
@click.argument("duration", type=DurationType())
@_as_json
def advance(duration: timedelta, as_json: bool) -> None:
    """Move the cloud's clock ahead by DURATION, such as 45m, 2h30m or 3d.

    Alarms and scheduled actions that fall due on the way run in order, each at its own time. A schedule of EventBridge
    Scheduler runs once, at the end.
    """
    _print_status(_running().advance(duration), as_json)


@local.command(short_help="Move its driven clock, e.g. by 10s.")
@click.argument("duration", type=DurationType())
@_as_json
def step(duration: timedelta, as_json: bool) -> None:
    """Move the cloud's driven clock ahead by DURATION, such as 10s, 5m or 1h.

    Everything that falls due on the way runs in order, each at its own time: alarms, scheduled actions, schedules of
    EventBridge Scheduler, and the functions that they start. Each function ends, or waits for a later time, before the
    clock moves on. For a cloud that was started with --clock driven.
    """
    _print_status(_running().step(duration), as_json)


@local.command()
@click.option("--port", type=WholeNumber(1, 65535), help="The cloud at this port, if there are two.")
def down(port: int | None) -> None:
    """Stop the local cloud and delete its tables and stacks.

    If AWS_ENDPOINT_URL names another cloud than the one that highwater local up started, say which with --port.
    """
    recorded = recall()
    named = find_cloud() if port is None else cloud_at(port, recorded)
    if named is None:
        _refuse(f"no local cloud answers at port {port}; yours has the port that this prints: highwater local env")
    if port is None and recorded is not None and recorded.port != named.port:
        _refuse(
            f"there are two local clouds: {named.endpoint} of AWS_ENDPOINT_URL, and {recorded.endpoint} of highwater "
            f"local up; say which with --port {named.port} or --port {recorded.port}"
        )
    stop_process(named.pid)
    if recorded is not None and recorded.port == named.port:
        forget()
    elif cloud_at(named.port) is not None:
        _refuse(f"the cloud at {named.endpoint} (process {named.pid}) is not yours to stop")
    click.echo(f"stopped the local cloud at {named.endpoint}")


local.add_command(traffic_command)


def _print_environment(environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    if _SESSION_TOKEN in os.environ and _SESSION_TOKEN not in environment:
        # that of a role, which would count before the key
        click.echo(f"unset {_SESSION_TOKEN}")


def _running() -> CloudControl:
    """The cloud that a command acts on."""
    return CloudControl(find_cloud().port)


def _print_status(cloud: CloudStatus, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(_document(cloud)))
        return
    click.echo(f"endpoint           {cloud.endpoint}")
    driven = "" if cloud.speed else ", driven"
    click.echo(f"clock              {cloud.now:%A %Y-%m-%d %H:%M:%S} UTC{driven}")
    click.echo(f"tables             {cloud.tables}")
    click.echo(f"scalable targets   {cloud.scalable_targets}")
    click.echo(f"scheduled actions  {cloud.scheduled_actions}")


def _document(cloud: CloudStatus) -> dict[str, object]:
    return dataclasses.asdict(cloud) | {"now": cloud.now.isoformat()}


def _refuse(message: str) -> NoReturn:
    click.echo(f"highwater local: {message}", err=True)
    raise click.exceptions.Exit(_MISUSE)
