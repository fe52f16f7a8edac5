"""Where the suite runs: a clock, clients, and the environment of the CDK CLI."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT, REGION
from highwater_lab.local.load import LoadClock

# A surge of 270 writes a second to each of two tables is what a machine with two cores sends and serves in time
_LOCAL_SPEED: Final = 20
# Where a user's profiles are; everything else of AWS_* could point to another place
FILES_OF_PROFILES: Final = frozenset({"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE"})


class Place(Protocol):
    """A local cloud or an AWS account, in one region."""

    @property
    def title(self) -> str:
        """The place in messages and in the report."""

    @property
    def is_real(self) -> bool:
        """Whether what happens there costs money."""

    @property
    def settles_within(self) -> timedelta:
        """How long something may still be listed once it has been deleted, by the place's clock."""

    @property
    def account(self) -> str:
        """The account's number."""

    @property
    def region(self) -> str:
        """The region's name."""

    def status(self) -> LoadClock:
        """What time it is there."""

    def client(self, service: str, config: Any = None) -> Any:
        """A boto3 client of that service."""

    def environment(self) -> dict[str, str]:
        """All variables for programs that speak to this place and to no other."""

    def wait_until(self, at: datetime) -> None:
        """Return when the place's clock has reached *at*; a local cloud's clock is moved ahead."""

    def let_pass(self, time_there: timedelta) -> None:
        """Return when so much time has passed there by itself, while other threads work."""


class Clients:
    """Clients that are made once: making one takes longer than most calls. Threads may share them."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._made: dict[str, Any] = {}
        self._lock = threading.Lock()

    def get(self, service: str, config: Any) -> Any:
        """The client of a service; a new one if it has a *config* of its own."""
        # a session of boto3 makes one client at a time
        with self._lock:
            if config is not None:
                return self._make(service, config=config)
            if service not in self._made:
                self._made[service] = self._make(service)
            return self._made[service]


class LocalPlace:
    """A strict local cloud, whose clock runs faster and may be moved ahead."""

    title: Final = "the local cloud"
    is_real: Final = False
    settles_within: Final = timedelta(minutes=1)
    account: Final = ACCOUNT
    region: Final = REGION

    def __init__(self, cloud: LocalCloud) -> None:
        self._cloud = cloud
        self._clients = Clients(cloud.client)

    def status(self) -> LoadClock:
        """What time it is there."""
        return self._cloud.status()

    def client(self, service: str, config: Any = None) -> Any:
        """A boto3 client of that service."""
        return self._clients.get(service, config)

    def environment(self) -> dict[str, str]:
        """All variables for programs that speak to this cloud and to no other."""
        return environment_without_aws() | self._cloud.environment()

    def wait_until(self, at: datetime) -> None:
        """Move the clock ahead to *at*."""
        ahead = at - self._cloud.status().now
        if ahead.total_seconds() > 0:
            self._cloud.advance(ahead)

    def let_pass(self, time_there: timedelta) -> None:
        """Sleep for the real part of that time."""
        time.sleep(time_there.total_seconds() / self._cloud.status().speed)


def clock_of(place: Place) -> Callable[[], float]:
    """Seconds since 1970 by the place's clock, for what asks too often to ask the place itself.

    They are right until a local cloud's clock is moved ahead: `wait_until` does that.
    """
    began, status = time.monotonic(), place.status()
    return lambda: status.now.timestamp() + (time.monotonic() - began) * status.speed


@contextmanager
def local_place() -> Iterator[LocalPlace]:
    """Start a strict local cloud for the length of the block."""
    with LocalCloud(speed=_LOCAL_SPEED, is_strict=True) as cloud:
        yield LocalPlace(cloud)


def environment_without_aws(kept: frozenset[str] = frozenset()) -> dict[str, str]:
    """The environment of this process without the variables that say where AWS is, except those *kept*.

    An endpoint, a profile or credentials that a terminal still has from other work would aim the suite elsewhere.
    """
    elsewhere = ("AWS_", "CDK_DEFAULT_")
    return {name: value for name, value in os.environ.items() if name in kept or not name.startswith(elsewhere)}


def forget_other_places() -> None:
    """Remove from this process's environment what could aim boto3 at another place than the one that was asked for."""
    kept = environment_without_aws(FILES_OF_PROFILES)
    for name in set(os.environ) - set(kept):
        del os.environ[name]
