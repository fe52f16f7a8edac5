"""The checks of the doctor, in one list, in order of worth; each is a function of a place, and can be read alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from highwater_lab.doctor.account import (
    bootstrap,
    concurrency,
    config,
    permissions,
    quotas,
    service_linked_role,
    types,
)
from highwater_lab.doctor.place import CheckedPlace
from highwater_lab.doctor.result import Result, State, unread
from highwater_lab.doctor.tables import alarms, cost, drift, leftovers, owners
from highwater_lab.services.prices import PriceError

Check: TypeAlias = Callable[[CheckedPlace], Iterator[Result]]

CHECKS: Final[Mapping[str, Check]] = {
    "service-linked-role": service_linked_role,
    "bootstrap": bootstrap,
    "concurrency": concurrency,
    "types": types,
    "owners": owners,
    "cost": cost,
    "leftovers": leftovers,
    "drift": drift,
    "quotas": quotas,
    "permissions": permissions,
    "config": config,
    "alarms": alarms,
}


def run_checks(place: CheckedPlace, names: Iterable[str] = CHECKS) -> Iterator[Result]:
    """Run the checks of these names; one that may not be read is a warning that names the missing permission."""
    for name in names:
        try:
            yield from CHECKS[name](place)
        except (ClientError, BotoCoreError) as error:
            yield unread(name, error)
        except PriceError as unknown:
            yield Result(check=name, state=State.WARNING, text=str(unknown), fix="give a file with --prices")
