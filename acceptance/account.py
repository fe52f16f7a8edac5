"""An AWS account as the place of the suite, once it is certain that it is the one that was meant."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import boto3
import botocore.session
from botocore.exceptions import BotoCoreError, ClientError

from acceptance.place import FILES_OF_PROFILES, Clients, Place, environment_without_aws
from highwater.core import HighwaterError

_ACCOUNT_NUMBER: Final = re.compile(r"\d{12}")
# The parameter in which `cdk bootstrap` keeps its version (AWS CDK Developer Guide, "Bootstrapping")
_BOOTSTRAPPED: Final = "/cdk-bootstrap/hnb659fds/version"


class AccountError(HighwaterError):
    """The account cannot be used, or it is not the one that was named; one line says why and what to do."""


@dataclass(frozen=True, slots=True)
class AccountClock:
    """AWS's clock, which is this machine's."""

    now: datetime
    speed: int = 1


class AccountPlace:
    """One region of one account, by the credentials of a profile."""

    is_real: Final = True
    # Application Auto Scaling deletes its alarms some time after it has answered that a target is deregistered
    settles_within: Final = timedelta(minutes=5)

    def __init__(self, session: boto3.Session, account: str, region: str, sleep: Callable[[float], None]) -> None:
        self._session = session
        self._clients = Clients(session.client)
        self.account = account
        self.region = region
        self._sleep = sleep

    @property
    def title(self) -> str:
        """The account and region."""
        return f"account {self.account}, {self.region}"

    def status(self) -> AccountClock:
        """What time it is."""
        return AccountClock(datetime.now(UTC))

    def client(self, service: str, config: Any = None) -> Any:
        """A boto3 client of that service, by the profile."""
        return self._clients.get(service, config)

    def environment(self) -> dict[str, str]:
        """All variables for the CDK CLI, which finds the credentials by the profile."""
        return environment_without_aws(FILES_OF_PROFILES) | {
            "AWS_PROFILE": self._session.profile_name,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "CDK_DEFAULT_ACCOUNT": self.account,
            "CDK_DEFAULT_REGION": self.region,
        }

    def wait_until(self, at: datetime) -> None:
        """Sleep until then."""
        while (left := (at - datetime.now(UTC)).total_seconds()) > 0:
            self._sleep(min(left, 10))

    def let_pass(self, time_there: timedelta) -> None:
        """Sleep for that time."""
        self._sleep(time_there.total_seconds())


def open_account(
    profile: str, account: str, region: str | None, sleep: Callable[[float], None] = time.sleep
) -> AccountPlace:
    """Open the account that *profile* has credentials for, in *region* or else in the profile's region.

    Raises `AccountError` if the profile is not there or has no region, if it asks for a code, if its credentials are
    refused, or if they are of another account than *account*.
    """
    if not _ACCOUNT_NUMBER.fullmatch(account):
        raise AccountError(f"ACCOUNT is {account!r}; expected the 12 digits of the account that the suite may use")
    try:
        session = boto3.Session(profile_name=profile, region_name=region)
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
    return AccountPlace(session, account, session.region_name, sleep)


def require_bootstrap(place: Place, profile: str) -> None:
    """Raise `AccountError` unless the CDK is bootstrapped there."""
    parameters = place.client("ssm")
    try:
        parameters.get_parameter(Name=_BOOTSTRAPPED)
    except parameters.exceptions.ParameterNotFound:
        where = f"aws://{place.account}/{place.region}"
        raise AccountError(
            f"the CDK is not bootstrapped in {where}; run: npx cdk bootstrap {where} --profile {profile}"
        ) from None
    except (BotoCoreError, ClientError) as error:
        raise AccountError(f"profile {profile!r} cannot be used: {error}; nothing was done") from error


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
