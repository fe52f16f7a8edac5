"""The local cloud's process: MiniStack with Application Auto Scaling, capacity control and a clock of its own.

Serves AWS requests and, under `/_highwater/`, the cloud's own commands (`commands.py`); on loopback only.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import io
import json
import logging
import os
import shutil
import signal
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from highwater_lab.services.timing import Timing
from highwater_local import ministack
from highwater_local.autoscaling.operations import PendingUpdates, answer
from highwater_local.autoscaling.records import ServiceError
from highwater_local.autoscaling.service import AutoScaling
from highwater_local.clock import CloudClock, CloudTime
from highwater_local.cloudformation import Provisioners, StackOperations
from highwater_local.cloudwatch import Alarms, Metrics
from highwater_local.commands import CONTROL_PATH, Answer, Commands
from highwater_local.drift import Drift
from highwater_local.dynamodb.call import throttles_of
from highwater_local.dynamodb.data_plane import DataPlane
from highwater_local.dynamodb.exports import Exports
from highwater_local.dynamodb.tables import Tables
from highwater_local.functions import Functions, Invocations, wrap_urls
from highwater_local.guard import Guard
from highwater_local.mappings import Mappings
from highwater_local.parameters import wrap_parameters
from highwater_local.redrive import Redrives
from highwater_local.requests import HeldFaults, again, is_object, malformed, read_body
from highwater_local.schedules import wrap_schedules
from highwater_local.strict.express import Express
from highwater_local.strict.fresh_account import FreshAccount
from highwater_local.strict.names import check_names_in_stacks, name_refusal
from highwater_local.strict.permissions import name_roles_in_credentials, permission_refusal
from highwater_local.strict.rates import Rates
from highwater_local.strict.request import AUTOSCALING_PREFIX, CheckedRequest
from highwater_local.strict.roles import apply_boundaries, check_roles_of_functions, limit_policies
from highwater_local.timeline import Agenda, Timeline

_NO_OBJECT = {"__type": "SerializationException", "message": "the request is no JSON object"}
# BatchWriteItem's 16 MB are the largest request (Amazon DynamoDB API Reference, read 2026-11), written as text
_MOST_BODY_BYTES = 2**25
# Attempts to remove all files, as deploys and functions may write some meanwhile
_REMOVALS = 20
_CLOCKED_PREFIXES = (AUTOSCALING_PREFIX, "DynamoDB_")
# returns the answer to a request, mostly its rejection, `None` for a request that the service is to answer
Check = Callable[[CheckedRequest], ministack.Answer | None]


class LocalAws:
    """The ASGI application: control requests, Application Auto Scaling, and everything else to MiniStack.

    MiniStack has to be loaded; its services are wrapped as soon as this is created.
    """

    def __init__(
        self,
        port: int,
        clock: CloudClock,
        *,
        has_instant_updates: bool = False,
        is_strict: bool = False,
        is_express: bool = False,
        is_fresh_account: bool = False,
    ) -> None:
        self.clock = clock
        timing = Timing.instant_updates() if has_instant_updates else Timing()
        self._tables = Tables(self.clock.now, timing)
        self._autoscaling: dict[tuple[str, str], AutoScaling] = {}
        self._is_instant = has_instant_updates
        alarms = Alarms(
            Metrics(self.clock.second), self.clock.now, lambda name, values: self.autoscaling().act(name, values)
        )
        self.agenda = Agenda(self.clock, self._autoscaling, alarms)
        self.timeline = Timeline(self.clock, self.agenda)
        invocations = Invocations(self.timeline, port, self.clock)
        self._commands = Commands(
            self.clock, self.agenda, self.timeline, invocations.run_of, self._contents, self._throttles
        )
        if clock.is_driven:
            self.agenda.follow(Mappings(clock, invocations))
        ministack.run_by(CloudTime(self.clock))
        DataPlane(self.clock.second)
        Exports(self.clock.now)
        Functions(self.clock.second)
        wrap_urls(port)
        Provisioners(self._tables, self.autoscaling)
        wrap_parameters()
        wrap_schedules()
        StackOperations(self.timeline, self.clock.now)
        Drift(self.autoscaling)
        Redrives(self.clock.second)
        self._pending = PendingUpdates() if is_strict else None
        self._checks = _checks(self.clock, timing, is_express=is_express) if is_strict else ()
        self._account: FreshAccount | None = None
        if is_fresh_account:
            self._account = FreshAccount(self.clock.second, timing.permission)
            self._checks = (*self._checks, self._account.answer)

    def autoscaling(self) -> AutoScaling:
        """Application Auto Scaling of the account and region that the request is for."""
        scope = (ministack.get_account_id(), ministack.get_region())
        if scope not in self._autoscaling:
            self._autoscaling[scope] = AutoScaling(
                *scope,
                self._tables,
                self.clock.now,
                is_instant=self._is_instant,
                assume_role=None if self._account is None else self._account.assume_role,
            )
        return self._autoscaling[scope]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await ministack.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        target = headers.get("x-amz-target", "")
        if scope["path"].startswith(CONTROL_PATH):
            body = await read_body(receive)
            await self._answer(send, *await self._commands.answer(scope["path"], scope["method"], body))
            return
        if self._checks or target:
            body = await read_body(receive)
            if headers.get("content-encoding") == "gzip":
                # as boto3 sends large requests of PutMetricData
                scope, body = _unpacked(scope, body)
            receive = again(body, receive)
            if target and not is_object(body):
                await self._answer(send, 400, _NO_OBJECT)
                return
            refused = self._refusal(scope, headers, body) if self._checks else None
            if refused is not None:
                await self._send(send, *refused)
                return
        if not target:
            await ministack.app(scope, receive, send)
            return
        guarded = HeldFaults(send)
        try:
            if target.startswith(AUTOSCALING_PREFIX):
                operation = target.removeprefix(AUTOSCALING_PREFIX)
                await self._answer(guarded, *await self._autoscale(operation, headers, body))
            else:
                await ministack.app(
                    scope, receive, self._dated(guarded) if target.startswith(_CLOCKED_PREFIXES) else guarded
                )
        except Exception:
            wrong = malformed(target, body)
            if wrong is None or guarded.has_begun:
                raise
            await self._answer(send, 400, wrong)
            return
        if guarded.held:
            wrong = malformed(target, body)
            if wrong is not None:
                await self._answer(send, 400, wrong)
            else:
                await guarded.release()

    def _contents(self) -> dict[str, int]:
        """Return the counts of the cloud's resources, for its status."""
        services = self._autoscaling.values()
        return {
            "tables": len(ministack.every_table()),
            "scalable_targets": sum(len(service.targets) for service in services),
            "scheduled_actions": sum(len(target.actions) for each in services for target in each.targets.values()),
        }

    def _throttles(self) -> list[dict[str, Any]]:
        """Return what the tables of all accounts and regions have throttled since they were made."""
        return [each for name, table in ministack.every_table() for each in throttles_of(name, table)]

    async def _autoscale(self, operation: str, headers: dict[str, str], body: bytes) -> Answer:
        ministack.enter_scope(headers)
        try:
            request = json.loads(body or b"{}")
        except ValueError:
            request = None
        if not isinstance(request, dict):
            return 400, _NO_OBJECT
        try:
            if self._pending is None:
                return 200, answer(self.autoscaling(), operation, request)
            return 200, await self._pending.answer(self.autoscaling(), operation, request)
        except ServiceError as refused:
            return 400, {"__type": refused.code, "message": refused.message}

    def _refusal(self, scope: Any, headers: dict[str, str], body: bytes) -> ministack.Answer | None:
        """Return the answer of a strict cloud, mostly a rejection, `None` if the service is to answer."""
        ministack.enter_scope(headers)
        query = scope["query_string"].decode("latin-1")
        request = CheckedRequest(scope["method"], scope["path"], headers, query, body)
        return next((found for check in self._checks if (found := check(request)) is not None), None)

    async def _send(self, send: Any, status: int, headers: dict[str, str], body: bytes) -> None:
        listed = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        listed += [(b"content-length", str(len(body)).encode()), (b"date", self._date())]
        await send({"type": "http.response.start", "status": status, "headers": listed})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, send: Any, status: int, document: dict[str, Any]) -> None:
        headers = {"content-type": "application/x-amz-json-1.1"}
        await self._send(send, status, headers, json.dumps(document).encode())

    def _dated(self, send: Any) -> Any:
        """Date answers by the cloud's clock: code that runs in the cloud reads the time from them."""

        async def dated(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = [(name, value) for name, value in message["headers"] if name.lower() != b"date"]
                message = {**message, "headers": [*headers, (b"date", self._date())]}
            await send(message)

        return dated

    def _date(self) -> bytes:
        return format_datetime(self.clock.now(), usegmt=True).encode("ascii")


def _checks(clock: CloudClock, timing: Timing, *, is_express: bool) -> tuple[Check, ...]:
    """Return the checks of requests to a strict cloud; what its stacks make is checked from now on."""
    limit_policies()
    apply_boundaries()
    check_roles_of_functions()
    name_roles_in_credentials()
    check_names_in_stacks()
    express = Express(clock.second, timing, is_always=is_express)
    return permission_refusal, Rates(clock.second).refusal, name_refusal, express.refusal


def _unpacked(scope: Any, body: bytes) -> tuple[Any, bytes]:
    """Return a request without its compression.

    A body that is not compressed, as it says, or that becomes larger than any request may be, has no content.
    """
    try:
        unpacked = gzip.GzipFile(fileobj=io.BytesIO(body)).read(_MOST_BODY_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        unpacked = b""
    body = unpacked if len(unpacked) <= _MOST_BODY_BYTES else b""
    return {**scope, "headers": [header for header in scope["headers"] if header[0] != b"content-encoding"]}, body


def _log_by(clock: CloudClock) -> None:
    """Date the process's own log by the cloud's clock, in UTC, and log what this package warns of."""
    make = logging.getLogRecordFactory()

    def dated(*arguments: Any, **options: Any) -> logging.LogRecord:
        record = make(*arguments, **options)
        record.created = clock.now().timestamp()
        record.msecs = record.created % 1 * 1000
        return record

    logging.setLogRecordFactory(dated)
    logging.Formatter.converter = staticmethod(time.gmtime)
    # MiniStack's own log is quieter
    logging.getLogger("highwater_local").setLevel(logging.WARNING)


def _end_with_caller(lifeline: int, scratch: Path | None) -> None:
    """Kill this process when *lifeline*, a pipe that only the caller can write to, breaks; not after it wrote a byte.

    Runs in a thread, and waits for nothing: a deploy may be waiting for a driven clock, which no client moves any more.
    The processes of functions, which are in this process group, are killed too.
    """
    if os.read(lifeline, 1):
        return
    for _ in range(_REMOVALS):
        # the caller, which would remove the folder, was killed
        if scratch is None or not scratch.exists():
            break
        shutil.rmtree(scratch, ignore_errors=True)
    os.killpg(os.getpgrp(), signal.SIGKILL)


async def serve(aws: LocalAws, given: argparse.Namespace) -> None:
    """Serve on the given sockets until a signal ends the server; web pages of the given origins may call the cloud."""
    import uvicorn

    config = uvicorn.Config(
        Guard(aws, given.port, given.allow_origin),
        http="httptools",
        ws="wsproto",
        lifespan="on",
        loop="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
        # at the end, do not wait for idle keep-alive connections
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    # it would take signals for itself
    server.capture_signals = nullcontext
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, setattr, server, "should_exit", True)
    aws.timeline.run_in(loop)
    moves = aws.timeline.drive() if aws.clock.is_driven else aws.agenda.follow_clock()
    background = [loop.create_task(moves)]
    try:
        # loopback only: the caller listens there already
        await server.serve([socket.socket(fileno=descriptor) for descriptor in given.socket])
    finally:
        for task in background:
            task.cancel()


def main(arguments: list[str] | None = None) -> int:
    """Run the server in the foreground."""
    parser = argparse.ArgumentParser(prog="highwater-local", description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="port on loopback that it is asked at")
    parser.add_argument("--socket", type=int, action="append", required=True, help="descriptor that listens there")
    parser.add_argument("--lifeline", type=int, required=True, help="descriptor of a pipe; it ends when that breaks")
    parser.add_argument("--scratch", type=Path, help="folder to be removed if it ends because that pipe breaks")
    parser.add_argument("--speed", type=int, default=1, help="how many times faster than real time the clock runs")
    parser.add_argument("--driven-from", type=datetime.fromisoformat, help="stand still at this time until driven")
    parser.add_argument("--instant-updates", action="store_true", help="changes of tables take no time")
    parser.add_argument("--strict", action="store_true", help="enforce the policies of roles, and rates of calls")
    parser.add_argument("--express", action="store_true", help="every operation on a stack is in express mode")
    parser.add_argument("--fresh-account", action="store_true", help="nothing was deployed in its accounts before")
    parser.add_argument("--allow-origin", action="append", default=[], help="origin of web pages that may call it")
    given = parser.parse_args(arguments)
    # MiniStack's settings; all listeners except this one are off
    os.environ.update(
        GATEWAY_PORT=str(given.port),
        MINISTACK_HOST="localhost",
        LOG_LEVEL=os.environ.get("HIGHWATER_LOCAL_LOG_LEVEL", "ERROR"),
        IOT_MTLS_ENABLED="0",
        SFTP_ENABLED="0",
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",  # noqa: S106 - the local cloud takes any
    )
    os.environ.pop("AWS_ENDPOINT_URL", None)
    try:
        import uvicorn  # noqa: F401 - looked for before anything starts

        ministack.load()
        # functions inherit the environment, and their loggers this level
        os.environ.pop("LOG_LEVEL")
    except ModuleNotFoundError as absent:
        library = str(absent.name).split(".")[0]
        print(f"the local cloud lacks the library {library}; {ministack.REINSTALL}", file=sys.stderr)
        return 1
    except ministack.MiniStackError as wrong:
        print(wrong, file=sys.stderr)
        return 1
    clock = CloudClock(given.speed, given.driven_from)
    modes = {"is_strict": given.strict, "is_express": given.express, "is_fresh_account": given.fresh_account}
    aws = LocalAws(given.port, clock, has_instant_updates=given.instant_updates, **modes)
    _log_by(aws.clock)
    threading.Thread(target=_end_with_caller, args=(given.lifeline, given.scratch), daemon=True).start()
    asyncio.run(serve(aws, given))
    # worker threads of finished Lambdas must not keep the process alive
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
