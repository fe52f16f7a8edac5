"""The process of a local cloud: its port, its start and its end."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Final

from highwater_lab.local.control import CloudControl, CloudError, CloudStatus

_V4: Final = (socket.AF_INET, "127.0.0.1")
_V6: Final = (socket.AF_INET6, "::1")
_ATTEMPTS: Final = 20


class HeldPort:
    """Listening sockets on *port* of loopback, in IPv4 and IPv6 if both exist: `localhost` may mean either.

    Port 0 is any free port. A server that inherits the sockets is the only one that can answer there: no other process
    can take the port between choosing and serving. Connections made before the server is ready wait.

    Raises `CloudError` if the port is in use.
    """

    def __init__(self, port: int = 0) -> None:
        self._sockets = self._any() if port == 0 else _listening(port)
        self.port = int(self._sockets[0].getsockname()[1])

    def __enter__(self) -> HeldPort:
        """Keep the sockets open for the length of a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the sockets; a process that has inherited them keeps the port."""
        for each in self._sockets:
            each.close()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The descriptors of the sockets, for a process that inherits them."""
        return tuple(each.fileno() for each in self._sockets)

    @staticmethod
    def _any() -> list[socket.socket]:
        for _ in range(_ATTEMPTS):
            try:
                return _listening(0)
            except CloudError:
                # the port is free in one family, and in use in the other
                continue
        raise CloudError("no port of loopback is free in both IPv4 and IPv6")


def _listening(port: int) -> list[socket.socket]:
    sockets = [_listen(*_V4, port)]
    try:
        sockets.append(_listen(*_V6, int(sockets[0].getsockname()[1])))
    except CloudError:
        sockets[0].close()
        raise
    except OSError:
        # the machine has no IPv6
        pass
    return sockets


def _listen(family: int, address: str, port: int) -> socket.socket:
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        # connections of a cloud that has just ended do not keep its port in use
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:
            held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        held.bind((address, port))
        held.listen(1024)
    except OSError as wrong:
        held.close()
        if wrong.errno == errno.EADDRINUSE:
            raise CloudError(f"port {port} is in use; choose another") from wrong
        if wrong.errno == errno.EACCES:
            raise CloudError(f"port {port} is not allowed to this user; choose one above 1023") from wrong
        raise
    return held


_STARTUP = timedelta(seconds=60)
_COMMAND: Final = "highwater-local"
# a command here would be carried out, and on an index the name may be anybody's
_PAGE: Final = "https://github.com/cdk-highwater/highwater/blob/main/docs/install.md#the-local-cloud"
_VARIABLE: Final = "HIGHWATER_LOCAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The options of a local cloud.

    Attributes:
        speed: How many times faster than real time its clock runs.
        driven_from: The time at which a driven clock starts; `None` for a running clock.
        has_instant_updates: Whether changes of tables take no time.
        is_strict: Whether it enforces the policies of functions' roles, and rates of calls.
        is_express: Whether it also carries out all operations on stacks in express mode; for a strict cloud only.
        is_fresh_account: Whether nothing was deployed in its accounts before; for a strict cloud only.
        allowed_origins: The origins of web pages that may call it.
    """

    speed: int = 1
    driven_from: datetime | None = None
    has_instant_updates: bool = False
    is_strict: bool = False
    is_express: bool = False
    is_fresh_account: bool = False
    allowed_origins: Sequence[str] = ()

    def arguments(self) -> list[str]:
        """The corresponding arguments of `highwater-local`."""
        driven = [] if self.driven_from is None else [f"--driven-from={self.driven_from.isoformat()}"]
        flags = {
            "--instant-updates": self.has_instant_updates,
            "--strict": self.is_strict,
            "--express": self.is_express,
            "--fresh-account": self.is_fresh_account,
        }
        origins = [f"--allow-origin={origin}" for origin in self.allowed_origins]
        return [f"--speed={self.speed}", *driven, *(flag for flag, is_set in flags.items() if is_set), *origins]


@dataclass(slots=True)
class ServerProcess:
    """A server that was started, and answers.

    Attributes:
        port: Its port on loopback.
        pid: The id of its process, which is a session leader.
    """

    port: int
    pid: int
    _process: subprocess.Popen[bytes]
    _lifeline: int

    def outlive_caller(self) -> None:
        """Let the server outlive this process; before this call, it ends with this process."""
        os.write(self._lifeline, b".")
        # nobody waits for the server any more. Otherwise Popen's finalizer would ask for its exit status, and Ctrl-C in
        # that moment would print a traceback, as Python does not raise what comes up in a finalizer
        self._process.returncode = 0

    def stop(self) -> None:
        """End it and the Lambda processes it started."""
        stop_process(self.pid)
        self._process.wait()
        os.close(self._lifeline)


def start_process(
    port: int,
    log: Path,
    scratch: Path,
    options: ServerOptions,
    *,
    inherited: Sequence[int] = (),
) -> ServerProcess:
    """Start the server in a new session, with its output in *log*, and wait until it answers.

    It listens on *port*, or on any free port if that is 0, and keeps the descriptors *inherited* open until it ends.

    Temporary files, such as unpacked functions, are written below *scratch*, which the caller has to remove. If the
    caller is ended by a signal before that, the server ends too and removes *scratch*, unless `outlive_caller` was
    called.

    Raises `CloudError` if the server is not installed or is of another version than this package, if the port is in
    use, or if the server does not answer within a minute.
    """
    server = find_server()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_ENDPOINT_URL")}
    with HeldPort(port) as held:
        watched, lifeline = os.pipe()
        try:
            command = [str(server), f"--port={held.port}", f"--lifeline={watched}", f"--scratch={scratch}"]
            command += options.arguments()
            command += [f"--socket={descriptor}" for descriptor in held.descriptors]
            with log.open("wb") as output:
                process = subprocess.Popen(
                    command,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                    env=environment | {"TMPDIR": str(scratch)},
                    pass_fds=(*held.descriptors, watched, *inherited),
                )
        except BaseException:
            os.close(lifeline)
            raise
        finally:
            os.close(watched)
    started = ServerProcess(held.port, process.pid, process, lifeline)
    try:
        # the server has the port already: wait until it answers there, and fail if it ends first
        status = CloudControl(held.port).status(within=_STARTUP)
    except CloudError as silent:
        started.stop()
        lines = log.read_text(errors="replace").strip().splitlines()
        message = f"the local cloud did not start: {lines[-1] if lines else 'no output'}; its log is {log}"
        raise CloudError(message) from silent
    except BaseException:
        started.stop()
        raise
    wrong = _mismatch(status, process.pid, server)
    if wrong:
        started.stop()
        raise CloudError(wrong)
    return started


def find_server() -> Path:
    """Find the command `highwater-local`: in `HIGHWATER_LOCAL`, in the folder of this Python, or on the path.

    Raises `CloudError` if there is none.
    """
    named = os.environ.get(_VARIABLE)
    beside = str(Path(sys.executable).parent / _COMMAND)
    for command in [named] if named else [beside, _COMMAND]:
        found = shutil.which(command)
        if found is not None:
            return Path(found)
    if named:
        raise CloudError(f"{_VARIABLE} names {named!r}, which is no command; name {_COMMAND}, or unset the variable")
    raise CloudError(f"the local cloud is not installed; install {_COMMAND} {_version()} as {_PAGE} says")


def _mismatch(status: CloudStatus, pid: int, server: Path) -> str:
    """Return why the server that answers is not the expected one; empty if it is."""
    if status.pid != pid:
        return f"{status.endpoint} is answered by process {status.pid}, not by the one started; choose another"
    if status.version != _version():
        return (
            f"{server} is {_COMMAND} {status.version}, and this is highwater-lab {_version()}; install both in the "
            f"same version, as {_PAGE} says"
        )
    return ""


def _version() -> str:
    return metadata.version("highwater-lab")


def stop_process(pid: int) -> None:
    """End a server and the Lambda processes it started; do nothing if it has ended already."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(pid, number)
        except (ProcessLookupError, PermissionError):
            return
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            if not is_running(pid):
                # its children are in its process group: the second signal ends those that are left
                break
            time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Whether the process is running; a zombie is not."""
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except ChildProcessError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # the id now belongs to a process of another user
        return False
    return True
