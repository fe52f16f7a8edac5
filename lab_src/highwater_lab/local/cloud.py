"""Starting, asking and ending the local cloud's process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

REGION = "us-east-1"
ACCOUNT = "000000000000"
_STARTUP = timedelta(seconds=60)


class CloudError(Exception):
    """The local cloud cannot be started or reached; one line says why and what to do."""


@dataclass(frozen=True, slots=True)
class CloudStatus:
    """What the local cloud says of itself.

    Attributes:
        endpoint: Where AWS clients find it.
        now: Its clock, in UTC.
        speed: How many times faster than real time that runs.
        pid: Its process.
        tables: How many tables it holds.
        scalable_targets: How many targets are registered.
        scheduled_actions: How many scheduled actions wait.
    """

    endpoint: str
    now: datetime
    speed: int
    pid: int
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

    def status(self) -> CloudStatus:
        """How it is; raises `CloudError` where nothing answers."""
        return self._status(self._ask("status"))

    def advance(self, ahead: timedelta) -> CloudStatus:
        """Move its clock ahead, running all that falls due on the way, in order."""
        return self._status(self._ask("advance", {"seconds": int(ahead.total_seconds())}))

    def run_at(self, speed: int) -> CloudStatus:
        """Have its clock run *speed* times faster than real time, 1 to 1,000, from now on."""
        return self._status(self._ask("speed", {"speed": speed}))

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

    def _ask(self, command: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/_highwater/{command}", data=body)
        # a proxy of the user's must not be asked about loopback
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=600) as answer:
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
            tables=answer["tables"],
            scalable_targets=answer["scalable_targets"],
            scheduled_actions=answer["scheduled_actions"],
        )


def free_port() -> int:
    """A port on loopback that nobody listens on just now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_port_taken(port: int) -> bool:
    """Whether somebody listens on that port of loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def start_process(
    port: int,
    log: Path,
    scratch: Path,
    speed: int = 1,
    *,
    has_instant_updates: bool = False,
    is_strict: bool = False,
) -> subprocess.Popen[bytes]:
    """Start the server in a session of its own, its output in *log*, and wait until it answers.

    Its clock runs *speed* times faster than real time; with *has_instant_updates* changes of tables take no time, and
    if *is_strict* it enforces the policies of functions' roles and rates of calls.

    What it writes meanwhile, such as unpacked functions, goes below *scratch*, which is the caller's to remove.
    """
    if is_port_taken(port):
        message = f"port {port} is in use; choose another"
        raise CloudError(message)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_ENDPOINT_URL")}
    command = [sys.executable, "-m", "highwater_lab.local.server", "--port", str(port), "--speed", str(speed)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *(["--instant-updates"] if has_instant_updates else []), *(["--strict"] if is_strict else [])],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=environment | {"TMPDIR": str(scratch)},
        )
    control = CloudControl(port)
    deadline = time.monotonic() + _STARTUP.total_seconds()
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            control.status()
        except CloudError:
            time.sleep(0.05)
        else:
            return process
    stop_process(process.pid)
    lines = log.read_text(errors="replace").strip().splitlines()
    message = f"the local cloud did not start: {lines[-1] if lines else 'no output'}; its log is {log}"
    raise CloudError(message)


def stop_process(pid: int) -> None:
    """End a server and the Lambda processes it started; one that is gone is fine."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(pid, number)
        except (ProcessLookupError, PermissionError):
            return
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            if not is_running(pid):
                # its children are of its group: the second signal ends those that stay
                break
            time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Whether the process lives; one that waits to be reaped does not."""
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except ChildProcessError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@dataclass(slots=True)
class LocalCloud:
    """A local cloud for the length of a `with` block, on a port of its own unless one is given.

    With *speed* N its clock runs N times faster than real time: what AWS does takes an N-th of its time, and capacity
    units are for seconds of that clock. With *has_instant_updates* a change of a table's capacity, billing mode or warm
    throughput is there at once, as a fast test suite may want it; by default it takes the time that AWS takes. If it
    *is_strict*, functions may do only what the policies of their roles allow, and calls that come too fast are refused.

    Example: `with LocalCloud() as cloud: cloud.client("dynamodb").list_tables()`.
    """

    port: int = 0
    log: Path | None = None
    speed: int = 1
    has_instant_updates: bool = False
    is_strict: bool = False
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _scratch: Any = field(default=None, repr=False)

    def __enter__(self) -> LocalCloud:
        """Start it; raises `CloudError` where it cannot start."""
        self.port = self.port or free_port()
        self._scratch = tempfile.TemporaryDirectory(prefix="highwater-local-", ignore_cleanup_errors=True)
        try:
            folder = Path(self._scratch.name)
            log = self.log or folder / "server.log"
            self._process = start_process(
                self.port,
                log,
                folder,
                self.speed,
                has_instant_updates=self.has_instant_updates,
                is_strict=self.is_strict,
            )
        except CloudError:
            self._scratch.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        if self._process is not None:
            stop_process(self._process.pid)
            self._process.wait()
        self._scratch.cleanup()

    @property
    def control(self) -> CloudControl:
        """Its status and clock."""
        return CloudControl(self.port)

    @property
    def endpoint(self) -> str:
        """Where AWS clients find it."""
        return self.control.endpoint

    def environment(self) -> dict[str, str]:
        """The variables that point AWS's tools at it."""
        return self.control.environment()

    def client_arguments(self) -> dict[str, str]:
        """What `boto3.client` needs to talk to it."""
        return {
            "endpoint_url": self.endpoint,
            "region_name": REGION,
            "aws_access_key_id": ACCOUNT,
            "aws_secret_access_key": "local",
        }

    def client(self, service: str) -> Any:
        """A boto3 client of that service, talking to this cloud."""
        # most commands need none, and it takes longer to import than they take to run
        import boto3

        return boto3.client(service, **self.client_arguments())  # type: ignore[call-overload] # any service's name

    def status(self) -> CloudStatus:
        """How it is."""
        return self.control.status()

    def advance(self, ahead: timedelta) -> CloudStatus:
        """Move its clock ahead, running all that falls due on the way, in order."""
        return self.control.advance(ahead)

    def run_at(self, speed: int) -> CloudStatus:
        """Have its clock run *speed* times faster than real time, 1 to 1,000, from now on."""
        return self.control.run_at(speed)
