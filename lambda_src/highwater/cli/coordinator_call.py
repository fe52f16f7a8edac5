"""What commands that ask a coordinator share: where it is, and what it refuses told in a line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click
from botocore.exceptions import BotoCoreError, ClientError

from highwater.cli.terminal import say
from highwater.client import BoostError, BoostRefusedError
from highwater.core.boosts import LeaseError

_FINDING = 1
_MALFORMED = 400

coordinator_option = click.option(
    "--coordinator", help="Name or URL of the coordinator. By default HIGHWATER_BOOST_URL, or the only one."
)


@contextmanager
def told_in_a_line() -> Iterator[None]:
    """What a coordinator or AWS refuses as one line and an exit status: 2 for what cannot be asked, 1 for the rest."""
    try:
        yield
    except LeaseError as impossible:
        raise click.UsageError(str(impossible)) from impossible
    except BoostRefusedError as refused:
        if refused.status == _MALFORMED:
            raise click.UsageError(str(refused)) from refused
        _end_with_finding(refused)
    except (BoostError, ClientError, BotoCoreError) as failed:
        _end_with_finding(failed)


def _end_with_finding(error: Exception) -> NoReturn:
    where = click.get_current_context().command_path
    say(f"{where}: {' '.join(str(error).split())}", err=True)
    raise click.exceptions.Exit(_FINDING)
