"""Command-line options common to the commands for live tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import botocore.session
import click
from botocore.exceptions import ProfileNotFound

F = TypeVar("F", bound=Callable[..., Any])
NO_REGION = "no region is set; give --region, or set AWS_REGION"
_CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


def _region(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    # boto3 itself knows AWS_DEFAULT_REGION only
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
        # they would come before those of the profile
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
    """Add the options that say which account and region a command is for."""
    return region_option(profile_option(command))
