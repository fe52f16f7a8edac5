"""Finds a coordinator and sends it signed requests.

HighwaterError
└── BoostError: a boost failed
    ├── BoostRefusedError: the coordinator rejects the request
    └── CoordinatorUnavailableError: it does not answer
        └── CoordinatorNotFoundError: no coordinator is found, or several are
"""

from __future__ import annotations

import copy
import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ProxyConnectionError,
)
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from highwater.calls.attempts import AWAITED, COORDINATOR_ATTEMPTS, COORDINATOR_REQUEST, ONCE, client_config
from highwater.client.sessions import arn_place, check_session
from highwater.core.documents import DocumentError, read_document
from highwater.core.errors import HighwaterError
from highwater.core.names import COORDINATORS_PATH, PULSES_PATH
from highwater.core.pulses import PULSE_SOURCE, pulse_detail_type

URL_VARIABLE: Final = "HIGHWATER_BOOST_URL"
PULSES_VARIABLE: Final = "HIGHWATER_PULSES"
_REGION: Final = re.compile(r"https://[^.]+\.lambda-url\.([a-z0-9-]+)\.on\.aws")
# Seconds for a connection, and for an answer
_TIMEOUTS: Final = (30.0, 30.0)
# No request was sent: the network has no way to the URL.
_NO_WAY: Final = (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError)
_NEITHER_WAY: Final = "the coordinator's URL cannot be reached, and no event can be put"
# What to do for a caller that may not pulse.
GIVE_PULSE: Final = "give it grant_pulse in the CDK app, and deploy"


class BoostError(HighwaterError):
    """A boost failed."""


class BoostRefusedError(BoostError):
    """The coordinator rejects a request; *status* is the HTTP status code."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class CoordinatorUnavailableError(BoostError):
    """No coordinator is found, or it does not answer in time."""


class CoordinatorNotFoundError(CoordinatorUnavailableError):
    """No coordinator is found, or several are, or the caller may not look for them."""


@dataclass(kw_only=True)
class CoordinatorClient:
    """Sends requests to one coordinator; may be used from several threads.

    Attributes:
        coordinator: Its name or URL. By default the one of the environment variable HIGHWATER_BOOST_URL, which
            `grant_boost` sets for Lambda functions, or else the only one in the account and region.
        session: The boto3 session with the caller's credentials and region. By default the default one.
        pause: Sleeps for the given number of seconds before a retry. The backoff is at random between a half and all of
            1, then 2, 4, 8 and 16 seconds, so that jobs that start together do not retry together.
        attempts: How many times a request is sent at most.
        timeouts: Seconds to wait for a connection, and for an answer.
        account: The coordinator's account, `None` until its parameter was read.

    Example:
        ```python
        client = highwater.CoordinatorClient(coordinator="Boosts")
        answer = client.send("begin", id=str(uuid.uuid4()), table="orders", write=8_000, minutes=30)
        print(highwater.BoostAnswer.from_document(answer).outcome)
        ```
    """

    coordinator: str | None = None
    session: Any = None
    pause: Callable[[float], None] = lambda seconds: time.sleep(seconds)
    attempts: int = COORDINATOR_ATTEMPTS
    timeouts: tuple[float, float] = _TIMEOUTS
    account: str | None = field(default=None, init=False)
    _has_no_way: bool = field(default=False, init=False, repr=False)
    _finding: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        """Raises `TypeError` for a session that is not boto3's."""
        check_session(self.session, "session")

    def send(self, action: str, **members: Any) -> dict[str, Any]:
        """Send a request and return the answer. Members that are `None` are left out.

        Raises:
            BoostRefusedError: The coordinator rejects the request; the message is the coordinator's.
            CoordinatorUnavailableError: No coordinator is found, or none of the attempts was answered.
        """
        body = {"do": action} | {name: value for name, value in members.items() if value is not None}
        why, last = "", None
        for attempt in range(self.attempts):
            if attempt:
                self.pause(COORDINATOR_REQUEST.seconds(attempt))
            try:
                status, document = self._post(json.dumps(body).encode())
            except (BotoCoreError, ClientError) as failed:
                why, last = str(failed), failed
                continue
            last = None
            if status == 200:
                return document
            why = str(document.get("error") or document.get("Message") or document.get("message") or f"status {status}")
            if status != 429 and status < 500:
                raise BoostRefusedError(status, self._why_refused(action, status, why))
        raise CoordinatorUnavailableError(f"the coordinator at {self.url} does not answer: {why}") from last

    def wake(self, table: str) -> None:
        """Ask for the scaler's turn for a table whose fleet pulses.

        Where the network has no way to the URL, such as in a private subnet, an event of EventBridge asks, for which
        there is an interface endpoint. What worked last is tried first.

        Raises:
            BoostRefusedError: The coordinator rejects the request.
            CoordinatorUnavailableError: No coordinator is found, or neither way leads to it.
        """
        if not self._has_no_way:
            try:
                self.send("pulse", table=table)
            except CoordinatorUnavailableError as error:
                if not isinstance(error.__cause__, _NO_WAY):
                    raise
            else:
                return
        self._has_no_way = False
        self._put_event(table)
        self._has_no_way = True

    def _put_event(self, table: str) -> None:
        event = {
            "Source": PULSE_SOURCE,
            "DetailType": pulse_detail_type(table),
            "Detail": json.dumps({"pulses": self.pulse_table, "table": table}),
        }
        try:
            with self._finding:
                events = self._events
            answer = events.put_events(Entries=[event])
        except (BotoCoreError, ClientError) as failed:
            raise CoordinatorUnavailableError(f"{_NEITHER_WAY}: {failed}") from failed
        if answer["FailedEntryCount"]:
            raise CoordinatorUnavailableError(f"{_NEITHER_WAY}: {answer['Entries'][0].get('ErrorMessage')}")

    def with_attempts(self, attempts: int) -> CoordinatorClient:
        """Return a client for the same coordinator, with what this one found, that sends a request so many times."""
        made = copy.copy(self)
        made.attempts = attempts
        return made

    @cached_property
    def url(self) -> str:
        """The coordinator's URL; raises `CoordinatorNotFoundError` if none is found, or several are."""
        given = self.coordinator or os.environ.get(URL_VARIABLE)
        if given is not None and "://" in given:
            return given
        return self._find(given, COORDINATORS_PATH)

    @cached_property
    def pulse_table(self) -> str:
        """The name of the table for pulses; raises `CoordinatorNotFoundError` if none is found, or several are."""
        known = os.environ.get(PULSES_VARIABLE)
        if known is not None and self.coordinator is None:
            return known
        return self._find(self.coordinator, PULSES_PATH)

    @cached_property
    def _session(self) -> Any:
        return self.session or boto3.Session()

    @cached_property
    def _events(self) -> Any:
        return self._session.client("events", config=client_config(ONCE, self.timeouts))

    @cached_property
    def _http(self) -> URLLib3Session:
        # may also be the path of a file of certificates, and two timeouts; botocore's annotations allow less
        verify: Any = os.environ.get("AWS_CA_BUNDLE") or True
        timeouts: Any = self.timeouts
        proxies = get_environ_proxies(self.url)
        return URLLib3Session(timeout=timeouts, verify=verify, proxies=proxies)

    def _find(self, name: str | None, path: str) -> str:
        try:
            # the session is not for several threads at a time
            with self._finding:
                return self._read(name, path)
        except (ClientError, BotoCoreError) as failed:
            raise CoordinatorNotFoundError(f"the parameters below {path} cannot be read: {failed}") from failed

    def _read(self, name: str | None, path: str) -> str:
        # 40 reads a second are answered in an account, and a fleet may start at one time
        ssm = self._session.client("ssm", config=client_config(AWAITED, self.timeouts))
        if name is not None:
            try:
                return self._value(ssm.get_parameter(Name=f"{path}{name}")["Parameter"])
            except ssm.exceptions.ParameterNotFound:
                message = f"there is no coordinator {name!r} in this account and region"
                raise CoordinatorNotFoundError(message) from None
        pages = ssm.get_paginator("get_parameters_by_path").paginate(
            # with a trailing slash, IAM would evaluate another resource
            Path=path.rstrip("/")
        )
        found = {each["Name"]: each for page in pages for each in page["Parameters"]}
        if len(found) == 1:
            return self._value(next(iter(found.values())))
        names = ", ".join(sorted(name.removeprefix(path) for name in found))
        if found:
            raise CoordinatorNotFoundError(f"there are several coordinators; give one of their names: {names}")
        message = "there is no coordinator in this account and region; deploy a BoostCoordinator, or give its region"
        raise CoordinatorNotFoundError(message)

    def _value(self, parameter: Mapping[str, Any]) -> str:
        self.account = arn_place(parameter.get("ARN", ""))[1]
        return str(parameter["Value"])

    def _post(self, body: bytes) -> tuple[int, dict[str, Any]]:
        credentials = self._session.get_credentials()
        if credentials is None:
            why = "there are no AWS credentials to sign the request with"
            raise CoordinatorUnavailableError(why) from NoCredentialsError()
        found = _REGION.match(self.url)
        region = found[1] if found else self._session.region_name or "us-east-1"
        headers: Mapping[str, str] = {"content-type": "application/json"}
        request = AWSRequest("POST", self.url, headers=headers, data=body)
        SigV4Auth(credentials.get_frozen_credentials(), "lambda", region).add_auth(request)
        answer = self._http.send(request.prepare())
        try:
            document = read_document(answer.content)
        except DocumentError:
            document = {}
        return answer.status_code, document if isinstance(document, dict) else {}

    def _why_refused(self, action: str, status: int, why: str) -> str:
        # This 403 is Lambda's own, whose message goes on with a link; the coordinator's own name the job or the table.
        if status == 403 and why.startswith("Forbidden"):
            fix = GIVE_PULSE if action == "pulse" else "give it grant_boost in the CDK app, and deploy"
            return f"the caller may not send requests to {self.url}; {fix}"
        return why
