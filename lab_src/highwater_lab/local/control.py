"""Control of a running local cloud: its status, its clock, and clients for it."""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from highwater.core.errors import did_you_mean

REGION = "us-east-1"
ACCOUNT = "000000000000"
# moving the clock by a year takes long
_PATIENCE = timedelta(minutes=10)
_MOST_NAMES = 10
_ORIGIN = re.compile(r"https?://[a-z0-9.\[\]:-]+")


def is_origin(text: str) -> bool:
    """Whether *text* is an origin as browsers send it: scheme, host and, unless it is the default, port."""
    return _ORIGIN.fullmatch(text) is not None


class CloudError(Exception):
    """The local cloud cannot be started or reached; one line says why and what to do."""


@dataclass(frozen=True, slots=True)
class CloudStatus:
    """The status of the local cloud.

    Attributes:
        endpoint: The endpoint URL for AWS clients.
        now: The time of its clock, in UTC.
        speed: How many times faster than real time its clock runs; 0 for a driven clock.
        pid: Its process id.
        version: The version of `highwater-local`.
        tables: The number of tables.
        scalable_targets: The number of registered targets.
        scheduled_actions: The number of scheduled actions.
    """

    endpoint: str
    now: datetime
    speed: int
    pid: int
    version: str
    tables: int
    scalable_targets: int
    scheduled_actions: int


@dataclass(frozen=True, slots=True)
class Throttles:
    """How often a table or an index has throttled for one reason.

    Attributes:
        table: The name of the table.
        index: The name of the index, `None` for the table itself.
        reason: DynamoDB's name of the reason, as in `ThrottlingReasons`: `TableWriteProvisionedThroughputExceeded`.
        requests: The number of throttle events since the table or the index was made.
    """

    table: str
    index: str | None
    reason: str
    requests: int

    @property
    def resource(self) -> str:
        """The table, and the index if it is one, for a report."""
        return f"table {self.table}" if self.index is None else f"table {self.table}, index {self.index}"


def _no_role(role: str, known: Iterable[str]) -> str:
    names = sorted(known)
    if not names:
        return f"the local cloud has no role {role!r}, nor any other; deploy the stack that declares it"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    listed = ", ".join(names[:_MOST_NAMES]) + more + did_you_mean(role, names)
    return f"the local cloud has no role {role!r}; its roles are {listed}"


class CloudControl:
    """Sends commands to a running local cloud."""

    def __init__(self, port: int) -> None:
        self.port = port

    @property
    def endpoint(self) -> str:
        """The endpoint URL for AWS clients; by this name, as S3 addresses are derived from it."""
        return f"http://localhost:{self.port}"

    def status(self, within: timedelta = _PATIENCE) -> CloudStatus:
        """Return the cloud's status; raises `CloudError` if nothing answers *within* that time."""
        return self._status(self._ask("status", within=within))

    def advance(self, ahead: timedelta) -> CloudStatus:
        """Move its clock ahead, and run everything that falls due on the way, in order."""
        return self._status(self._ask("advance", {"seconds": int(ahead.total_seconds())}))

    def run_at(self, speed: int) -> CloudStatus:
        """Make its clock run *speed* times faster than real time, 1 to 1,000, from now on."""
        return self._status(self._ask("speed", {"speed": speed}))

    def step(self, ahead: timedelta) -> CloudStatus:
        """Move its driven clock ahead; wait until everything that this starts has ended or waits for a later time."""
        return self._status(self._ask("step", {"seconds": ahead.total_seconds()}))

    def throttles(self) -> Sequence[Throttles]:
        """Return what the tables and indexes that are there now have throttled, by reason."""
        return [Throttles(**each) for each in self._ask("throttles")["throttles"]]

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection for successive calls of `wait`; the caller closes it."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE.total_seconds())

    def wait(self, connection: http.client.HTTPConnection, seconds: float, seat: int) -> datetime:
        """Wait on its driven clock together with all clients that have taken a seat; return the time after that."""
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
        """Take seats for clients that work concurrently from now on."""
        return list(self._ask("seats", {"number": number})["seats"])

    def leave(self, seat: int) -> None:
        """Leave a seat, so that the clock moves without it."""
        self._ask("leave", {"seat": seat})

    def environment(self, role: str | None = None) -> dict[str, str]:
        """The environment variables that direct AWS's tools to it: endpoint, region, and credentials.

        Args:
            role: The name or ARN of a role of the cloud, whose credentials are to be used, as for a boost. By default
                the account's root.

        Raises:
            CloudError: The cloud has no such role, or does not answer.
        """
        credentials = {} if role is None else self._credentials(role)
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": ACCOUNT,
            "AWS_SECRET_ACCESS_KEY": "local",
            "CDK_DEFAULT_ACCOUNT": ACCOUNT,
            "CDK_DEFAULT_REGION": REGION,
        } | credentials

    def _credentials(self, role: str) -> dict[str, str]:
        """The variables with the credentials of a session of a role."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            pages = self.client("iam").get_paginator("list_roles").paginate()
            arns = {each["RoleName"]: each["Arn"] for page in pages for each in page["Roles"]}
            name = role.rpartition("/")[2]
            # the cloud would give credentials of a role that does not exist
            if arns.get(name) is None or (role != name and role != arns[name]):
                raise CloudError(_no_role(role, arns))
            assumed = self.client("sts").assume_role(RoleArn=arns[name], RoleSessionName="highwater-local")
        except (BotoCoreError, ClientError) as failed:
            raise CloudError(f"the credentials of role {role!r} cannot be had: {failed}") from failed
        given = assumed["Credentials"]
        return {
            "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
            "AWS_SESSION_TOKEN": given["SessionToken"],
        }

    def client_arguments(self) -> dict[str, str]:
        """The arguments for `boto3.client`."""
        return {
            "endpoint_url": self.endpoint,
            "region_name": REGION,
            "aws_access_key_id": ACCOUNT,
            "aws_secret_access_key": "local",
        }

    def client(self, service: str, config: Any = None) -> Any:
        """Return a boto3 client of that service for this cloud, with a `botocore.config.Config` if one is given."""
        # imported here, as most commands need no client and the import takes longer than they run
        import boto3

        return boto3.client(service, config=config, **self.client_arguments())  # type: ignore[call-overload] # any name

    def _ask(
        self, command: str, document: dict[str, Any] | None = None, within: timedelta = _PATIENCE
    ) -> dict[str, Any]:
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/_highwater/{command}", data=body)
        # requests to loopback must not go to the user's proxy
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
        members = {each.name: answer[each.name] for each in fields(CloudStatus) if each.name != "endpoint"}
        members["now"] = datetime.fromisoformat(answer["now"])
        return CloudStatus(endpoint=self.endpoint, **members)
