"""Where the suite runs: a local cloud or an AWS account, with its clock, its clients and the CDK CLI's environment."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import boto3
import botocore.session
from botocore.exceptions import BotoCoreError, ClientError

from highwater.core import HighwaterError
from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT, REGION
from highwater_lab.local.load import Load, LoadClock

# Where a user's profiles are; everything else of AWS_* could point to another place
_FILES_OF_PROFILES: Final = {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE"}
# The first of these that is not the suite's region is the other one of a global table
_REGIONS: Final = ("us-east-1", "eu-west-1")


class AccountError(HighwaterError):
    """The account cannot be used, or it is not the one that was named; one line says why and what to do."""


@dataclass(frozen=True, slots=True)
class AccountClock:
    """AWS's clock, which is this machine's."""

    now: datetime
    speed: int = 1


class Place:
    """One region of an AWS account, by the credentials of a profile, or of a local cloud; only the former is real."""

    is_real = True

    def __init__(self, account: str, region: str, make_client: Callable[..., Any], profile: str = "") -> None:
        self.title = f"account {account}, {region}"
        self.account, self.region = account, region
        self._make_client = make_client
        self._profile = profile
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._is_ending = threading.Event()

    def client(self, service: str, config: Any = None) -> Any:
        """A boto3 client of that service, made once; a new one if it has a *config* of its own."""
        # a session of boto3 makes one client at a time
        with self._lock:
            if config is not None:
                return self._make_client(service, config=config)
            if service not in self._clients:
                self._clients[service] = self._make_client(service)
            return self._clients[service]

    def elsewhere(self) -> Place:
        """Another region of the same account, for clients only."""
        region = next(region for region in _REGIONS if region != self.region)
        return Place(self.account, region, partial(self._make_client, region_name=region))

    def status(self) -> LoadClock:
        """What time it is there."""
        return AccountClock(datetime.now(UTC))

    def environment(self) -> dict[str, str]:
        """All variables for programs that speak to this place and to no other; the CDK CLI finds its credentials."""
        regions = dict.fromkeys(("AWS_REGION", "AWS_DEFAULT_REGION", "CDK_DEFAULT_REGION"), self.region)
        return dict(os.environ) | regions | {"AWS_PROFILE": self._profile, "CDK_DEFAULT_ACCOUNT": self.account}

    def let_pass(self, time_there: timedelta) -> None:
        """Return when so much time has passed there; in a watch that is to end, raise `AccountError` instead."""
        if self._is_ending.wait(time_there.total_seconds()):
            raise AccountError("ended, as what ran beside it did")

    def wait_until(self, at: datetime) -> None:
        """Return when the place's clock has reached *at*."""
        while (left := at - self.status().now) > timedelta(0):
            self.let_pass(left)

    def seconds_until(self, holds: Callable[[], bool], within: timedelta, poll: timedelta) -> int | None:
        """Ask again and again until *holds* is true; return the seconds that took, `None` if longer than *within*."""
        began = self.status().now
        while not holds():
            if self.status().now - began > within:
                return None
            self.let_pass(poll)
        return round((self.status().now - began).total_seconds())

    def side_by_side(self, loads: Sequence[Load], *watches: Callable[[], Any]) -> list[Any]:
        """Send the loads while the watches run; return the loads' reports, then what the watches return."""
        try:
            with ThreadPoolExecutor(len(loads) + len(watches)) as pool:
                running = [pool.submit(job) for job in (*(load.run for load in loads), *watches)]
                try:
                    return [each.result() for each in running]
                except BaseException:
                    self._is_ending.set()
                    for load in loads:
                        load.stop()
                    raise
        finally:
            self._is_ending.clear()


class LocalPlace(Place):
    """A strict local cloud whose clock is driven: it moves only when the suite waits, so no result is the machine's."""

    is_real = False

    def __init__(self, cloud: LocalCloud) -> None:
        super().__init__(ACCOUNT, REGION, partial(boto3.client, **cloud.client_arguments()))
        self.title = "the local cloud"
        self._cloud = cloud
        self._is_playing = False

    def status(self) -> LoadClock:
        """What time it is there."""
        return self._cloud.status()

    def environment(self) -> dict[str, str]:
        """All variables for programs that speak to this cloud and to no other."""
        return dict(os.environ) | self._cloud.environment()

    def let_pass(self, time_there: timedelta) -> None:
        """Move the clock, with all that falls due on the way; beside other work, wait for it together with that."""
        if self._is_playing:
            # in a watch this waits for the cloud's clock
            time.sleep(time_there.total_seconds())
        else:
            self._cloud.step(time_there)

    def side_by_side(self, loads: Sequence[Load], *watches: Callable[[], Any]) -> list[Any]:
        """Run all in lock-step with the clock."""
        self._is_playing = True
        try:
            jobs = [load.run_on for load in loads]
            return self._cloud.play(*jobs, *(lambda _, watch=watch: watch() for watch in watches))
        finally:
            self._is_playing = False


@contextmanager
def local_place() -> Iterator[LocalPlace]:
    """Start a strict local cloud for the length of the block."""
    minute = datetime.now(UTC).replace(second=0, microsecond=0)
    with LocalCloud(clock="driven", starts_at=minute, is_strict=True) as cloud:
        yield LocalPlace(cloud)


def open_account(profile: str, account: str, region: str) -> Place:
    """Open *account* in *region*, by default the profile's; raise `AccountError` unless the profile is fit for it."""
    try:
        session = boto3.Session(profile_name=profile, region_name=region or None)
        _refuse_codes(profile)
        if not session.region_name:
            raise AccountError(f"profile {profile!r} has no region; add REGION=..., such as REGION=us-east-1")
        actual = str(session.client("sts").get_caller_identity()["Account"])
    except (BotoCoreError, ClientError) as error:
        raise AccountError(f"profile {profile!r} cannot be used: {error}; nothing was done") from error
    if actual != account:
        raise AccountError(
            f"profile {profile!r} is of account {actual}, and ACCOUNT is {account}; nothing was done: correct one"
        )
    return Place(account, session.region_name, session.client, session.profile_name)


def _refuse_codes(profile: str) -> None:
    """Refuse a profile that asks for the code of a device: the CDK CLI cannot ask, and a later question would wait."""
    profiles: dict[str, dict[str, str]] = botocore.session.Session().full_config["profiles"]
    name, seen = profile, set[str]()
    while name and name not in seen:
        seen.add(name)
        said = profiles.get(name, {})
        if said.get("role_arn") and said.get("mfa_serial"):
            raise AccountError(
                f"profile {profile!r} asks for a code of {said['mfa_serial']}, which nobody gives during a run; make a "
                "profile of the credentials that aws sts assume-role or get-session-token prints, and name that one"
            )
        name = said.get("source_profile", "")


def forget_other_places() -> None:
    """Remove what a terminal still has from other work and says where AWS is, except the files of profiles."""
    for name in set(os.environ) - _FILES_OF_PROFILES:
        if name.startswith(("AWS_", "CDK_DEFAULT_")):
            del os.environ[name]
