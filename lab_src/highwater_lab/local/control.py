"""Asking a running local cloud: its status, its clock, and clients that talk to it."""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

REGION = "us-east-1"
ACCOUNT = "000000000000"
# moving the clock by a year has much to do
_PATIENCE = timedelta(minutes=10)
_ORIGIN = re.compile(r"https?://[a-z0-9.\[\]:-]+")


def is_origin(text: str) -> bool:
    """Whether *text* is an origin as browsers send it: scheme, host and, where it is not the usual one, port."""
    return _ORIGIN.fullmatch(text) is not None


class CloudError(Exception):
    """The local cloud cannot be started or reached; one line says why and what to do."""


@dataclass(frozen=True, slots=True)
class CloudStatus:
    """What the local cloud says of itself.

    Attributes:
        endpoint: Where AWS clients find it.
        now: Its clock, in UTC.
        speed: How many times faster than real time that runs; 0 for a clock that is driven.
        pid: Its process.
        version: Which `highwater-local` it is.
        tables: How many tables it holds.
        scalable_targets: How many targets are registered.
        scheduled_actions: How many scheduled actions wait.
    """

    endpoint: str
    now: datetime
    speed: int
    pid: int
    version: str
    tables: int
    scalable_targets: int
    scheduled_actions: int


class CloudControl:
    """Talks to a running local cloud."""

    def __init__(self, port: int) -> None:
        self.port = port

    @property
    def endpoint(self) -> str:
        """Where AWS clients find it; by this name, as S3 addresses are made of it."""
        return f"http://localhost:{self.port}"

    def status(self, within: timedelta = _PATIENCE) -> CloudStatus:
        """How it is; raises `CloudError` where nothing answers, or not *within* that time."""
        return self._status(self._ask("status", within=within))

    def advance(self, ahead: timedelta) -> CloudStatus:
        """Move its clock ahead, running all that falls due on the way, in order."""
        return self._status(self._ask("advance", {"seconds": int(ahead.total_seconds())}))

    def run_at(self, speed: int) -> CloudStatus:
        """Have its clock run *speed* times faster than real time, 1 to 1,000, from now on."""
        return self._status(self._ask("speed", {"speed": speed}))

    def step(self, ahead: timedelta) -> CloudStatus:
        """Move its driven clock ahead, and wait until all that this started has ended or waits for a later time."""
        return self._status(self._ask("step", {"seconds": ahead.total_seconds()}))

    def connect(self) -> http.client.HTTPConnection:
        """A connection for many calls of `wait`, one after the other; the caller closes it."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE.total_seconds())

    def wait(self, connection: http.client.HTTPConnection, seconds: float, seat: int) -> datetime:
        """Wait for its driven clock together with all that have taken a seat; the time then."""
        try:
            connection.request("POST", "/_highwater/wait", json.dumps({"seconds": seconds, "seat": seat}))
            with connection.getresponse() as answer:
                document = json.load(answer)
        except (http.client.HTTPException, OSError, ValueError) as unanswered:
            raise CloudError(f"the local cloud at {self.endpoint} has ended") from unanswered
        if answer.status != HTTPStatus.OK:
            raise CloudError(document["message"])
        return datetime.fromisoformat(document["now"])

    def take_seats(self, number: int) -> Sequence[int]:
        """Seats for clients that work side by side from now on."""
        return list(self._ask("seats", {"number": number})["seats"])

    def leave(self, seat: int) -> None:
        """Leave a seat, so that the clock moves without it."""
        self._ask("leave", {"seat": seat})

    def environment(self) -> dict[str, str]:
        """The variables that point AWS's tools at it: endpoint, region, and credentials that mean nothing."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": ACCOUNT,
            "AWS_SECRET_ACCESS_KEY": "local",
            "CDK_DEFAULT_ACCOUNT": ACCOUNT,
            "CDK_DEFAULT_REGION": REGION,
        }

    def client_arguments(self) -> dict[str, str]:
        """What `boto3.client` needs to talk to it."""
        return {
            "endpoint_url": self.endpoint,
            "region_name": REGION,
            "aws_access_key_id": ACCOUNT,
            "aws_secret_access_key": "local",
        }

    def client(self, service: str, config: Any = None) -> Any:
        """A boto3 client of that service, talking to this cloud, with a `botocore.config.Config` if one is given."""
        # most commands need none, and it takes longer to import than they take to run
        import boto3

        return boto3.client(service, config=config, **self.client_arguments())  # type: ignore[call-overload] # any name

    def _ask(
        self, command: str, document: dict[str, Any] | None = None, within: timedelta = _PATIENCE
    ) -> dict[str, Any]:
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/_highwater/{command}", data=body)
        # a proxy of the user's must not be asked about loopback
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=within.total_seconds()) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as refused:
            with refused:
                raise CloudError(json.load(refused)["message"]) from refused
        except (urllib.error.URLError, OSError, ValueError) as unanswered:
            message = f"no local cloud answers at {self.endpoint}; start one with: highwater local up"
            raise CloudError(message) from unanswered

    def _status(self, answer: dict[str, Any]) -> CloudStatus:
        return CloudStatus(
            endpoint=self.endpoint,
            now=datetime.fromisoformat(answer["now"]),
            speed=answer["speed"],
            pid=answer["pid"],
            version=answer["version"],
            tables=answer["tables"],
            scalable_targets=answer["scalable_targets"],
            scheduled_actions=answer["scheduled_actions"],
        )
