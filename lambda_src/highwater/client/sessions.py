"""The boto3 sessions and clients that callers pass: which are accepted, where they send, and a session apart."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit
from weakref import WeakSet

import boto3
import botocore.session
from botocore.client import BaseClient
from botocore.exceptions import BotoCoreError, ClientError
from botocore.loaders import create_loader

T = TypeVar("T")
_ASYNCHRONOUS: Final = frozenset({"aioboto3", "aiobotocore"})
_ALLOWED: Final = "a boto3.Session or a DynamoDB client of boto3"


def check_session(session: Any, what: str) -> None:
    """Raise `TypeError` for what is no boto3 session; `None` is one. The message begins with *what*."""
    if session is None:
        return
    allowed = "a boto3.Session"
    if _is_asynchronous(session):
        raise TypeError(_asynchronous(session, what, allowed))
    if not callable(getattr(session, "client", None)):
        raise TypeError(f"{what}: got {_described(session)}, allowed: {allowed}; leave it out for the default one")


def events_of(session_or_client: Any, what: str) -> Any:
    """Return the event hooks of a boto3 session or of a DynamoDB client.

    Raises `TypeError` for anything else, aioboto3's included; the message begins with *what*.
    """
    given = session_or_client
    if _is_asynchronous(given):
        raise TypeError(_asynchronous(given, what, _ALLOWED))
    if isinstance(given, BaseClient):
        if given.meta.service_model.service_name != "dynamodb":
            fix = 'make one with session.client("dynamodb")'
            raise TypeError(f"{what}: got {_described(given)}, allowed: {_ALLOWED}; {fix}")
        return given.meta.events
    events = getattr(given, "events", None)
    if events is None or not callable(getattr(given, "client", None)):
        fix = "pass the session that makes the clients"
        if isinstance(given, str):
            fix = "tables are named by keyword"
        elif hasattr(getattr(given, "meta", None), "client"):
            fix = "pass its client, resource.meta.client"
        elif isinstance(given, botocore.session.Session):
            fix = "pass boto3.Session(botocore_session=...)"
        raise TypeError(f"{what}: got {_described(given)}, allowed: {_ALLOWED}; {fix}")
    return events


def _asynchronous(given: Any, what: str, allowed: str) -> str:
    return f"{what}: got {_described(given)}, which is asynchronous, allowed: {allowed}; use boto3 for these requests"


def _described(given: Any) -> str:
    if isinstance(given, BaseClient):
        return f"a client of {given.meta.service_model.service_name}"
    kind = type(given)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _is_asynchronous(given: Any) -> bool:
    return any(
        kind.__module__.partition(".")[0] in _ASYNCHRONOUS for part in _parts(given) for kind in type(part).__mro__
    )


def _parts(given: Any) -> Iterator[Any]:
    """Yield a session or client and what it is made of, by which asynchronous libraries are recognized."""
    yield given
    yield getattr(given, "_session", None)
    events = getattr(given, "events", None) or getattr(getattr(given, "meta", None), "events", None)
    yield events
    yield getattr(events, "_emitter", None)


@dataclass(slots=True)
class Place:
    """Where tables are: two tables of one name in two places are two tables.

    Attributes:
        region: The AWS region.
        endpoint: The endpoint's URL.
        account: The account's number, `None` while it is not known.
    """

    region: str
    endpoint: str
    account: str | None = None

    @classmethod
    def of(cls, client: Any) -> Place | None:
        """The place of a client's tables; `None` for what has no region and endpoint, which is no boto3 client."""
        meta = getattr(client, "meta", None)
        endpoint = getattr(meta, "endpoint_url", None)
        return None if meta is None or endpoint is None else cls(str(meta.region_name), str(endpoint))

    def has(self, table: str) -> bool:
        """Whether a table, by its name or ARN, is here; one by its name is."""
        region, account = arn_place(table)
        return region in (None, self.region) and (account is None or self.account in (None, account))

    def is_reached_by(self, url: str) -> bool:
        """Whether requests to *url* go here: to the same endpoint, or both to AWS's own endpoints."""
        one, other = urlsplit(url), urlsplit(self.endpoint)
        return one.netloc == other.netloc or (_is_aws(one.hostname) and _is_aws(other.hostname))


def arn_place(table: str) -> tuple[str | None, str | None]:
    """Return the region and the account of a table's ARN, `None` for each that it does not tell, as a name does not."""
    parts = table.split(":", 5)
    if len(parts) < 6 or parts[0] != "arn":
        return None, None
    return parts[3] or None, parts[4] or None


def _is_aws(host: str | None) -> bool:
    return host is not None and host.endswith(_aws_hosts())


@cache
def _aws_hosts() -> tuple[str, ...]:
    """Return the ends of AWS's own host names, of all partitions that botocore knows."""
    partitions = create_loader().load_data("partitions")["partitions"]
    return tuple(f".{each['outputs'][name]}" for each in partitions for name in ("dnsSuffix", "dualStackDnsSuffix"))


class _Given:
    """A provider of credentials that are there already, where botocore looks for one."""

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials

    def load_credentials(self) -> Any:
        return self._credentials


def session_apart(profile: str | None, region: str | None, credentials: Any) -> boto3.Session:
    """Return a new session with these credentials, and with what a profile configures; it has no hooks.

    A session may not be used by several threads (Boto3 documentation, "Session", read 2026-11), so a thread in the
    background has one of its own.
    """
    made = botocore.session.Session(profile=None if profile == "default" else profile)
    if region is not None:
        made.set_config_variable("region", region)
    made.register_component("credential_provider", _Given(credentials))
    return boto3.Session(botocore_session=made)


def account_of(credentials: Any) -> str | None:
    """Return the account that credentials belong to, `None` where they do not tell it."""
    try:
        found = getattr(credentials, "account_id", None)
    except (BotoCoreError, ClientError):
        return None
    return found if isinstance(found, str) and found else None


def renewed_in_forks(begin_anew: Callable[[T], None]) -> WeakSet[T]:
    """Return a set: *begin_anew* is called for each of its members in a forked process, which has none of the threads
    that may hold their locks.
    """
    known: WeakSet[T] = WeakSet()

    def renew_all() -> None:
        for each in list(known):
            begin_anew(each)

    if hasattr(os, "register_at_fork"):
        # not on Windows
        os.register_at_fork(after_in_child=renew_all)
    return known
