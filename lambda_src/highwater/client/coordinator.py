"""Finds a coordinator and sends it signed requests.

HighwaterError
└── BoostError: a boost failed
    ├── BoostRefusedError: the coordinator rejects the request
    └── CoordinatorUnavailableError: no coordinator is found, or it does not answer
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, ClientError
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from highwater.core.errors import HighwaterError
from highwater.core.names import COORDINATORS_PATH, PULSES_PATH

URL_VARIABLE: Final = "HIGHWATER_BOOST_URL"
PULSES_VARIABLE: Final = "HIGHWATER_PULSES"
_REGION: Final = re.compile(r"https://[^.]+\.lambda-url\.([a-z0-9-]+)\.on\.aws")
# Requests are idempotent by the boost's id, so one whose answer may have been lost can be sent again.
_ATTEMPTS: Final = 6
_LONGEST_ANSWER: Final = 30
_LONGEST_PAUSE_SECONDS: Final = 16.0


class BoostError(HighwaterError):
    """A boost failed."""


class BoostRefusedError(BoostError):
    """The coordinator rejects a request; *status* is the HTTP status code."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class CoordinatorUnavailableError(BoostError):
    """No coordinator is found, or it does not answer in time."""


def _pause_before(attempt: int) -> float:
    longest = min(2.0 ** (attempt - 1), _LONGEST_PAUSE_SECONDS)
    return random.uniform(longest / 2, longest)  # noqa: S311 - not for security


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
    attempts: int = _ATTEMPTS

    def send(self, action: str, **members: Any) -> dict[str, Any]:
        """Send a request and return the answer. Members that are `None` are left out.

        Raises:
            BoostRefusedError: The coordinator rejects the request; the message is the coordinator's.
            CoordinatorUnavailableError: No coordinator is found, or none of the attempts was answered.
        """
        body = {"do": action} | {name: value for name, value in members.items() if value is not None}
        why = ""
        for attempt in range(self.attempts):
            if attempt:
                self.pause(_pause_before(attempt))
            try:
                status, document = self._post(json.dumps(body).encode())
            except (BotoCoreError, ClientError) as failed:
                why = str(failed)
                continue
            if status == 200:
                return document
            why = str(document.get("error") or document.get("Message") or document.get("message") or f"status {status}")
            if status != 429 and status < 500:
                raise BoostRefusedError(status, self._why_refused(status, why))
        raise CoordinatorUnavailableError(f"the coordinator at {self.url} does not answer: {why}")

    @cached_property
    def url(self) -> str:
        """The coordinator's URL; raises `CoordinatorUnavailableError` if none is found, or several are."""
        given = self.coordinator or os.environ.get(URL_VARIABLE)
        if given is not None and "://" in given:
            return given
        try:
            return self._find(given, COORDINATORS_PATH)
        except (ClientError, BotoCoreError) as failed:
            message = f"the parameters below {COORDINATORS_PATH} cannot be read: {failed}"
            raise CoordinatorUnavailableError(message) from failed

    @cached_property
    def pulse_table(self) -> str:
        """The name of the table for pulses; raises `CoordinatorUnavailableError` if none is found, or several are."""
        known = os.environ.get(PULSES_VARIABLE)
        if known is not None and self.coordinator is None:
            return known
        try:
            return self._find(self.coordinator, PULSES_PATH)
        except (ClientError, BotoCoreError) as failed:
            message = f"the parameters below {PULSES_PATH} cannot be read: {failed}"
            raise CoordinatorUnavailableError(message) from failed

    @cached_property
    def _session(self) -> Any:
        return self.session or boto3.Session()

    @cached_property
    def _http(self) -> URLLib3Session:
        # may also be the path of a file of certificates; botocore's annotation only allows the flag
        verify: Any = os.environ.get("AWS_CA_BUNDLE") or True
        proxies = get_environ_proxies(self.url)
        return URLLib3Session(timeout=_LONGEST_ANSWER, verify=verify, proxies=proxies)

    def _find(self, name: str | None, path: str) -> str:
        ssm = self._session.client("ssm")
        if name is not None:
            try:
                return str(ssm.get_parameter(Name=f"{path}{name}")["Parameter"]["Value"])
            except ssm.exceptions.ParameterNotFound:
                message = f"there is no coordinator {name!r} in this account and region"
                raise CoordinatorUnavailableError(message) from None
        pages = ssm.get_paginator("get_parameters_by_path").paginate(
            # with a trailing slash, IAM would evaluate another resource
            Path=path.rstrip("/")
        )
        found = {each["Name"]: each["Value"] for page in pages for each in page["Parameters"]}
        if len(found) == 1:
            return str(next(iter(found.values())))
        names = ", ".join(sorted(name.removeprefix(path) for name in found))
        if found:
            raise CoordinatorUnavailableError(f"there are several coordinators; give one of their names: {names}")
        message = "there is no coordinator in this account and region; deploy a BoostCoordinator, or give its region"
        raise CoordinatorUnavailableError(message)

    def _post(self, body: bytes) -> tuple[int, dict[str, Any]]:
        credentials = self._session.get_credentials()
        if credentials is None:
            raise CoordinatorUnavailableError("there are no AWS credentials to sign the request with")
        found = _REGION.match(self.url)
        region = found[1] if found else self._session.region_name or "us-east-1"
        headers: Mapping[str, str] = {"content-type": "application/json"}
        request = AWSRequest("POST", self.url, headers=headers, data=body)
        SigV4Auth(credentials.get_frozen_credentials(), "lambda", region).add_auth(request)
        answer = self._http.send(request.prepare())
        try:
            document = json.loads(answer.content)
        except ValueError:
            document = {}
        return answer.status_code, document if isinstance(document, dict) else {}

    def _why_refused(self, status: int, why: str) -> str:
        # This 403 is Lambda's own, whose message goes on with a link; the coordinator's own name the job or the table.
        if status == 403 and why.startswith("Forbidden"):
            return f"the caller may not send requests to {self.url}; give it grant_boost in the CDK app, and deploy"
        return why
