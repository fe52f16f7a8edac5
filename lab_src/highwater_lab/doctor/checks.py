"""The checks of the doctor, in one list, in order of worth; each is a function of a place, and can be read alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from highwater_lab.doctor import account, tables
from highwater_lab.doctor.place import Place
from highwater_lab.doctor.result import Result, State, unread
from highwater_lab.services.prices import PriceError

Check: TypeAlias = Callable[[Place], Iterator[Result]]

CHECKS: Final[Mapping[str, Check]] = {
    "service-linked-role": account.service_linked_role,
    "bootstrap": account.bootstrap,
    "concurrency": account.concurrency,
    "owners": tables.owners,
    "cost": tables.cost,
    "leftovers": tables.leftovers,
    "drift": tables.drift,
    "quotas": account.quotas,
    "permissions": account.permissions,
    "config": account.config,
    "alarms": tables.alarms,
}


def run_checks(place: Place, names: Iterable[str] = CHECKS) -> Iterator[Result]:
    """Run the checks of these names; one that may not be read is a warning that names the missing permission."""
    for name in names:
        try:
            yield from CHECKS[name](place)
        except (ClientError, BotoCoreError) as error:
            yield unread(name, error)
        except PriceError as unknown:
            yield Result(check=name, state=State.WARNING, text=str(unknown), fix="give a file with --prices")
