"""What commands share: options, shadows, and how a command ends that cannot go on."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

import botocore.session
import click
from botocore.exceptions import BotoCoreError, ClientError, NoRegionError, ProfileNotFound

from highwater import PacedWorkError, PaceError, Pacer
from highwater.bulk.sharing import SharedBudgetError
from highwater.cli.items import InputError, OutputError
from highwater.core.pacing.following import Start
from highwater.terminal.console import say

F = TypeVar("F", bound=Callable[..., Any])
NO_REGION = "no region is set; give --region, or set AWS_REGION"
_CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


def _region(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    # boto3 itself reads AWS_DEFAULT_REGION only
    return value or os.environ.get("AWS_REGION") or None


def _use_profile(_context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    try:
        botocore.session.Session(profile=value).get_scoped_config()
    except ProfileNotFound:
        message = f"no profile {value!r} in your AWS configuration; list them with: aws configure list-profiles"
        raise click.BadParameter(message) from None
    for name in _CREDENTIALS:
        # credentials in the environment would take precedence over those of the profile
        os.environ.pop(name, None)
    os.environ["AWS_PROFILE"] = value


region_option = click.option(
    "--region",
    callback=_region,
    help="Region of the scaler and its tables. By default AWS_REGION, or the region of your AWS configuration.",
)
profile_option = click.option(
    "--profile",
    callback=_use_profile,
    expose_value=False,
    is_eager=True,
    help="Profile of your AWS configuration. By default AWS_PROFILE, or the default profile.",
)


def account_options(command: F) -> F:
    """Add the options for a command's account and region."""
    return region_option(profile_option(command))


@contextmanager
def aws_errors_in_a_line() -> Iterator[None]:
    """Exit with status 2 and one line if no region is set, or if a request to AWS fails."""
    try:
        yield
    except NoRegionError:
        raise click.ClickException(NO_REGION) from None
    except (ClientError, BotoCoreError) as failed:
        raise click.ClickException(f"a request to AWS failed: {failed}") from failed


_NAMES = ("start", "allow_throttles", "coordinator", "budget")


def pace_options(command: F) -> F:
    """Add the options of paced work, such as its start and coordinator; the command gets them as *pacing*."""

    @click.option(
        "--start",
        type=click.Choice([str(each) for each in Start]),
        default=str(Start.FULL),
        help="full: at the whole rate at once, the default. slow: with what there is room for, and more as auto "
        "scaling follows. boosted: ask a coordinator for the capacity first, and start slowly if there is none.",
    )
    @click.option(
        "--allow-throttles",
        is_flag=True,
        help="Keep the rate when requests are throttled; for tables nobody else uses.",
    )
    @click.option("--coordinator", help="Name or URL of the coordinator of a boosted start. By default the only one.")
    @click.option(
        "--budget",
        metavar="NAME",
        help="Share the rate with all workers that give this name, on this machine and others; needs a coordinator.",
    )
    @click.option(
        "--shadow",
        "is_shadow",
        is_flag=True,
        help="Wait for nothing, and say at the end how much longer it would have taken within the rate. It takes no "
        "share of --budget: the rate is compared with this work alone.",
    )
    @functools.wraps(command)
    def with_pacing(*arguments: Any, is_shadow: bool, **options: Any) -> Any:
        pacing = {name: options.pop(name) for name in _NAMES}
        if is_shadow:
            pacing |= {"budget": None, "pacer": Pacer(starts_full=False, is_shadow=True)}
        return command(*arguments, pacing=pacing, **options)

    return with_pacing  # type: ignore[return-value] # click's own decorators change the signature too


def shadow_text(pacing: dict[str, Any]) -> str:
    """Return what `--shadow` adds to the line at the end of work; nothing without it."""
    pacer: Pacer | None = pacing.get("pacer")
    if pacer is None:
        return ""
    return f"; a shadow: within the rate it would have taken {pacer.seconds_behind():,.1f} seconds more"


def shadow_document(pacing: dict[str, Any]) -> dict[str, float]:
    """Return what `--shadow` adds to the document at the end of work; nothing without it."""
    pacer: Pacer | None = pacing.get("pacer")
    return {} if pacer is None else {"seconds_behind": round(pacer.seconds_behind(), 1)}


def warn(work: str, warnings: Iterable[str]) -> None:
    """Print what *work*, such as `scan`, is warned of, a line each, on standard error."""
    for warning in warnings:
        say(f"highwater {work}: {warning}", err=True)


WORK_ERRORS = (PacedWorkError, PaceError, SharedBudgetError, InputError, OutputError)


@contextmanager
def misuse_in_a_line() -> Iterator[None]:
    """Exit with status 2 and one line if the work cannot begin."""
    try:
        yield
    except BotoCoreError as error:
        raise click.UsageError(NO_REGION if "region" in str(error) else str(error)) from error
    except WORK_ERRORS as error:
        raise click.UsageError(str(error)) from error


def end_early(work: str, why: str, status: int, *, can_resume: bool) -> NoReturn:
    """Exit with a status, and one line that says why *work*, such as `scan`, has stopped before its end."""
    goes_on = "; go on with --resume" if can_resume else ""
    say(f"highwater {work}: {' '.join(why.split())}{goes_on}", err=True)
    raise click.exceptions.Exit(status)
