"""Starting and ending the process of a local cloud."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from highwater_lab.local.control import CloudControl, CloudError
from highwater_lab.local.held_port import HeldPort

_STARTUP = timedelta(seconds=60)


@dataclass(slots=True)
class ServerProcess:
    """A server that was started, and answers.

    Attributes:
        port: Where on loopback.
        pid: Its process, which leads a session of its own.
    """

    port: int
    pid: int
    _process: subprocess.Popen[bytes]
    _lifeline: int

    def outlive_caller(self) -> None:
        """Leave it running when this process ends; until this is called, it ends by itself then."""
        os.write(self._lifeline, b".")

    def stop(self) -> None:
        """End it and the Lambda processes it started."""
        stop_process(self.pid)
        self._process.wait()
        os.close(self._lifeline)


def start_process(
    port: int,
    log: Path,
    scratch: Path,
    speed: int = 1,
    *,
    has_instant_updates: bool = False,
    is_strict: bool = False,
    allowed_origins: Sequence[str] = (),
    journal: Path | None = None,
    inherited: Sequence[int] = (),
) -> ServerProcess:
    """Start the server in a session of its own, its output in *log*, and wait until it answers.

    It listens on *port*, on any that is free if that is 0. Its clock runs *speed* times faster than real time; with
    *has_instant_updates* changes of tables take no time, and if *is_strict* it enforces the policies of functions'
    roles and rates of calls. Web pages of *allowed_origins* may call it. It keeps a list of what it holds in *journal*,
    if one is given, and the descriptors *inherited* open until it ends.

    What it writes meanwhile, such as unpacked functions, goes below *scratch*, which is the caller's to remove. However
    the caller ends, by a signal too, the server ends with it, unless told to `outlive_caller`.

    Raises `CloudError` where the port is in use, or the server does not answer within a minute.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_ENDPOINT_URL")}
    with HeldPort(port) as held:
        watched, lifeline = os.pipe()
        try:
            command = [sys.executable, "-m", "highwater_lab.local.server", "--port", str(held.port)]
            command += [f"--socket={descriptor}" for descriptor in held.descriptors]
            command += [f"--lifeline={watched}", f"--speed={speed}"]
            command += ["--instant-updates"] if has_instant_updates else []
            command += ["--strict"] if is_strict else []
            command += [f"--allow-origin={origin}" for origin in allowed_origins]
            command += [] if journal is None else [f"--journal={journal}"]
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
        # it has the port already: this waits until it answers there, and fails if it ends before
        answering = CloudControl(held.port).status(within=_STARTUP).pid
    except CloudError as silent:
        started.stop()
        lines = log.read_text(errors="replace").strip().splitlines()
        message = f"the local cloud did not start: {lines[-1] if lines else 'no output'}; its log is {log}"
        raise CloudError(message) from silent
    except BaseException:
        started.stop()
        raise
    if answering != process.pid:
        started.stop()
        raise CloudError(f"port {held.port} is answered by process {answering}, not by the one started; choose another")
    return started


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
    except PermissionError:
        # somebody else's now
        return False
    return True
