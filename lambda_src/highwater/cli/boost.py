"""`highwater boost`: request capacity and run a command while it is available; list, log and release leases."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import Any, NoReturn

import boto3
import click
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from highwater import (
    Boost,
    BoostAnswer,
    BoostError,
    BoostRefusedError,
    BoostState,
    CoordinatorClient,
    read_units_for_scan,
    write_units_for_load,
)
from highwater import boost as make_boost
from highwater.aws.autoscaling import read_targets
from highwater.aws.coordinator_table import (
    LeasesUnavailableError,
    LeaseTable,
    TableLeases,
    find_lease_table,
)
from highwater.aws.coordinator_table import client as lease_client
from highwater.aws.parameters import read_plans
from highwater.aws.region import AwsRegion
from highwater.cli.options import account_options, as_json_option
from highwater.core.boosts import Lease, LeaseError
from highwater.core.names import TargetName
from highwater.core.units import Dimension
from highwater.terminal.console import open_console, say, tell
from highwater.terminal.credentials import how_to_sign_in
from highwater.terminal.durations import DurationType
from highwater.terminal.numbers import WholeNumber

_FINDING = 1
_MALFORMED = 400
# the caller of commands that have the variables of `highwater local env`
_LOCAL_ROOT = "arn:aws:iam::000000000000:root"
_AS_ROLE = ', on the local cloud with: eval "$(highwater local env --role NAME)"'

coordinator_option = click.option(
    "--coordinator", help="Name or URL of the coordinator. By default HIGHWATER_BOOST_URL, or the only one."
)


@contextmanager
def told_in_a_line() -> Iterator[None]:
    """Print errors of the coordinator and AWS as one line; exit with status 2 for an invalid request, else 1."""
    try:
        yield
    except LeaseError as impossible:
        raise click.UsageError(str(impossible)) from impossible
    except BoostRefusedError as refused:
        if refused.status == _MALFORMED:
            raise click.UsageError(str(refused)) from refused
        _end_with_finding(refused, _AS_ROLE if _LOCAL_ROOT in str(refused) else "")
    except (BoostError, ClientError, BotoCoreError) as failed:
        _end_with_finding(failed, how_to_sign_in(failed))


def _end_with_finding(error: Exception, hint: str = "") -> NoReturn:
    where = click.get_current_context().command_path
    say(f"{where}: {' '.join(str(error).split())}{hint}", err=True)
    raise click.exceptions.Exit(_FINDING)


# what a shell reports for a process ended by a signal
_SIGNALLED = 128
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def run_in_lease(made: Boost, command: tuple[str, ...]) -> int:
    """Run a command during the lease; return its exit status, or 128 plus the number of the signal that ended it."""
    process: subprocess.Popen[bytes] | None = None
    told: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        told.append(number)
        if process is not None:
            process.send_signal(number)

    made.keep_renewed()
    # ignored signals stay ignored, as nohup requires; a terminal sends its interrupts to the command as well
    heard = [number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
    forwarded = [number for number in heard if number is not signal.SIGINT or not _is_in_foreground()]
    before = {number: signal.signal(number, forward) for number in forwarded}
    if signal.SIGINT in heard and signal.SIGINT not in before:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        process = subprocess.Popen(command)  # noqa: S603 - the user's own command
        for number in told:
            process.send_signal(number)
        status = process.wait()
    except OSError as failed:
        raise click.ClickException(f"{command[0]}: cannot be run: {failed.strerror}") from failed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        try:
            made.release()
        except BoostError as failed:
            say(f"highwater boost run: the lease could not be given back, it ends by itself: {failed}", err=True)
    return status if status >= 0 else _SIGNALLED - status


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Make the signals that end a process raise, unless something else handles them, so that the lease is released."""
    ending = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, _frame: FrameType | None) -> None:
        raise click.exceptions.Exit(_SIGNALLED + number)

    for number in ending:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_DFL)


def _is_in_foreground() -> bool:
    """Whether the terminal sends its signals to this process and its children, wherever their input comes from."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


@click.group(short_help="Request capacity for a job, by lease.")
def boost() -> None:
    """Request capacity from a BoostCoordinator, and see what others requested."""


@boost.command("list", short_help="The live and booked boosts of a table.")
@click.argument("table")
@coordinator_option
@account_options
@as_json_option
def list_boosts(table: str, coordinator: str | None, region: str | None, as_json: bool) -> None:
    """List the boosts of TABLE that are live or booked."""
    document = _asked("list", table, coordinator, region)
    tell(document, _listed(document["boosts"]), as_json=as_json)


@boost.command("log", short_help="Who boosted a table, when and why.")
@click.argument("table")
@coordinator_option
@account_options
@as_json_option
def log_of_boosts(table: str, coordinator: str | None, region: str | None, as_json: bool) -> None:
    """Print the last 50 entries of the log of TABLE, which is kept for 90 days."""
    document = _asked("log", table, coordinator, region)
    tell(document, _logged(document["log"]), as_json=as_json)


def _asked(action: str, table: str, coordinator: str | None, region: str | None, **more: str) -> dict[str, Any]:
    client = CoordinatorClient(coordinator=coordinator, session=boto3.Session(region_name=region))
    with told_in_a_line():
        return client.send(action, table=table, **more)


@boost.command("release", short_help="End a boost now.")
@click.argument("table")
@click.argument("id")
@click.option(
    "--force",
    is_flag=True,
    help="End it whoever began it, with permission to write to the coordinator's table in place of a grant.",
)
@coordinator_option
@account_options
@as_json_option
def release_boost(table: str, id: str, force: bool, coordinator: str | None, region: str | None, as_json: bool) -> None:
    """End the boost ID of TABLE now; `highwater boost list TABLE` lists the ids."""
    if force:
        _release_by_force(table, id, region, as_json=as_json)
        return
    document = _asked("release", table, coordinator, region, id=id)
    what = "is given back" if document["released"] else "is over already, or another caller's"
    tell(document, [f"{table}: boost {id} {what}", *document["notes"]], as_json=as_json)


def _release_by_force(table: str, id: str, region: str | None, *, as_json: bool) -> None:
    """End the boosts of all callers with that id; the next tick lowers the floor, within a minute."""
    try:
        home = AwsRegion(region)
        plans = read_plans(home.ssm).plans
        plan = next((plan for plan in plans if plan.label == table and not plan.is_released), None)
        name = None if plan is None else find_lease_table(home.ssm, plan.scaler)
        if plan is None or name is None:
            _end_with_finding(
                LookupError(f"{table}: no coordinator has such a table; highwater status lists the tables")
            )
        # leases end by AWS's time
        now = read_targets(home.autoscaling, [TargetName(plan.table, None, Dimension.WRITE)]).at
        owners = _release_all(LeaseTable(name, lease_client(region)), table, id, now)
    except (BotoCoreError, ClientError, LeasesUnavailableError) as error:
        _end_with_finding(error)
    lines = [f"{table}: boost {id} of {owner} is ended; its floor is lowered within a minute" for owner in owners]
    document = {"id": id, "table": table, "released": owners}
    tell(document, lines or [f"{table}: no boost {id} is live or booked"], as_json=as_json)


def _release_all(leases: LeaseTable, table: str, id: str, now: datetime) -> list[str]:
    def released(known: TableLeases) -> tuple[list[Lease], list[Lease] | None]:
        ended = [lease for lease in known.leases if lease.id == id and lease.ends > now]
        new = [lease.released_at(now) if lease in ended else lease for lease in known.leases]
        return ended, new if ended else None

    owners = sorted({lease.owner for lease in leases.change(table, released, now)})
    for owner in owners:
        leases.log(table, id, "release", {"owner": owner, "session": "", "by": "an operator, by force"}, now)
    return owners


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


_units = WholeNumber(min=1)


@boost.command("run", short_help="Request capacity, and run a command while it is available.")
@click.argument("table")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--write", type=_units, metavar="UNITS", help="Units per second of writes, on top of what is there.")
@click.option("--read", type=_units, metavar="UNITS", help="Units per second of reads, on top of what is there.")
@click.option(
    "--write-total", type=_units, metavar="UNITS", help="Units per second of writes in total, with what is there."
)
@click.option(
    "--read-total", type=_units, metavar="UNITS", help="Units per second of reads in total, with what is there."
)
@click.option(
    "--write-rate",
    type=_units,
    metavar="UNITS",
    help="Units per second that will be written, on top of present traffic.",
)
@click.option(
    "--read-rate", type=_units, metavar="UNITS", help="Units per second that will be read, on top of present traffic."
)
@click.option("--items", type=_units, metavar="NUMBER", help="Size the writes: how many items are loaded ...")
@click.option("--item-bytes", type=_units, metavar="NUMBER", help="... of how many bytes each ...")
@click.option("--scan", is_flag=True, help="Size the reads: the whole table is scanned, by the size DynamoDB knows ...")
@click.option("--done-in", type=DurationType(), help="... and how long the job may take from now on, such as 40m.")
@click.option("--index", help="The index to boost. By default the table, and with its writes all its indexes.")
@click.option(
    "--for", "length", type=DurationType(), required=True, help="How long the lease lasts, such as 30m; up to 1d."
)
@click.option("--at", type=str, help="When the job starts, such as 2027-03-04T02:00Z. By default now.")
@click.option(
    "--hold", type=click.Choice(["lease", "start"]), default="lease", help="start: until traffic has arrived."
)
@click.option("--reason", default="", help="Why, for the log.")
@click.option("--all-or-nothing", is_flag=True, help="Refuse what cannot be granted whole.")
@click.option(
    "--timeout", type=DurationType(), default="5m", show_default=True, help="How long to wait for the capacity."
)
@click.option("--no-wait", is_flag=True, help="Return with the answer, before the capacity is there.")
@coordinator_option
@account_options
@as_json_option
def run_boost(
    table: str,
    command: tuple[str, ...],
    length: timedelta,
    at: str | None,
    timeout: timedelta,
    no_wait: bool,
    all_or_nothing: bool,
    items: int | None,
    item_bytes: int | None,
    scan: bool,
    done_in: timedelta | None,
    region: str | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Request capacity of TABLE from a BoostCoordinator.

    With a COMMAND after `--`, wait for the capacity, run the command, renew the lease while it runs and give it back at
    its end. The exit status is the command's, and signals reach it. Without one, wait for the capacity and leave the
    lease to end by itself, or to `highwater boost release`.

    Exit status: 0 if the capacity is there, 1 if it is refused or does not come in time, 2 for misuse.
    """
    if command:
        _require_program(command[0])
    minutes, rest = divmod(length, timedelta(minutes=1))
    session = boto3.Session(region_name=region)
    with told_in_a_line():
        asked |= _sized(table, asked, items, item_bytes, done_in, session, scan=scan)
    made = make_boost(
        table,
        minutes=minutes + bool(rest),
        at=_instant(at),
        is_all_or_nothing=all_or_nothing,
        timeout=timeout,
        session=session,
        **asked,
    )
    if command and at is not None:
        raise click.UsageError("--at books capacity ahead; a command would start now")
    with told_in_a_line(), ended_by_signals():
        answer = _begin(made, is_kept=not command)
        _show(answer, as_json=as_json, err=bool(command))
        if not no_wait and at is None:
            _wait(made, quiet=as_json, is_kept=not command)
    return run_in_lease(made, command) if command else 0


def _require_program(name: str) -> None:
    """Raise an error if the command cannot be run, before capacity is bought for it."""
    if shutil.which(name) is not None:
        return
    if os.sep in name:
        raise click.UsageError(f"{name!r} is no program that you may execute; check its path and its mode")
    raise click.UsageError(f"no command {name!r} on PATH; check its name, or give its path, such as ./{name}")


def _sized(
    table: str,
    asked: dict[str, Any],
    items: int | None,
    item_bytes: int | None,
    done_in: timedelta | None,
    session: boto3.Session,
    *,
    scan: bool,
) -> dict[str, int]:
    """Return the units with which the job meets its deadline."""
    is_load = items is not None or item_bytes is not None
    if not is_load and not scan:
        if done_in is not None:
            raise click.UsageError("--done-in sizes a job; give --items and --item-bytes, or --scan")
        return {}
    if done_in is None or (is_load and (items is None or item_bytes is None)):
        raise click.UsageError("a job is sized by --items, --item-bytes and --done-in, or by --scan and --done-in")
    found: dict[str, int] = {}
    if is_load and items is not None and item_bytes is not None:
        found["write"] = write_units_for_load(items, item_bytes, done_in)
    if scan:
        found["read"] = read_units_for_scan(table, done_in, index=asked["index"], session=session)
    return found


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise click.UsageError(f"{text!r} is no instant with its zone; write it like 2027-03-04T02:00Z")
    return at.astimezone(UTC)


def _show(answer: BoostAnswer, *, as_json: bool, err: bool) -> None:
    if as_json:
        document = asdict(answer) | {"start": answer.start.isoformat(), "end": answer.end.isoformat()}
        click.echo(json.dumps(document | {"usd_per_hour": answer.usd_per_hour, "usd": answer.usd}, indent=1), err=err)
        return
    for line in (*answer.lines(), f"boost {answer.id}"):
        say(line, err=err)


def _begin(made: Boost, *, is_kept: bool) -> BoostAnswer:
    try:
        return made.begin()
    except BoostRefusedError:
        raise
    except BaseException:
        # the boost may have been granted although its answer was lost
        if not is_kept:
            with suppress(BoostError):
                made.release()
        raise


def _wait(made: Boost, *, quiet: bool, is_kept: bool) -> None:
    """Wait for the capacity with a progress bar; unless *is_kept*, release the lease if the capacity does not come."""
    console = Console(quiet=True) if quiet else open_console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("asking for capacity", total=None)

        def on_progress(state: BoostState) -> None:
            ready, wanted = sum(t.provisioned for t in state.targets), sum(t.wanted for t in state.targets)
            progress.update(task, description=state.line(), completed=min(ready, wanted), total=wanted)

        made.on_progress = on_progress
        try:
            made.wait()
        except BaseException:
            if not is_kept:
                made.release()
            raise
