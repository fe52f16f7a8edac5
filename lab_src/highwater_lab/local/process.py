"""Starting and ending the process of a local cloud."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from highwater_lab.local.control import CloudControl, CloudError

_STARTUP = timedelta(seconds=60)


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
    allowed_origins: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    """Start the server in a session of its own, its output in *log*, and wait until it answers.

    Its clock runs *speed* times faster than real time; with *has_instant_updates* changes of tables take no time, and
    if *is_strict* it enforces the policies of functions' roles and rates of calls. Web pages of *allowed_origins* may
    call it.

    What it writes meanwhile, such as unpacked functions, goes below *scratch*, which is the caller's to remove.
    """
    if is_port_taken(port):
        message = f"port {port} is in use; choose another"
        raise CloudError(message)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_ENDPOINT_URL")}
    command = [sys.executable, "-m", "highwater_lab.local.server", "--port", str(port), "--speed", str(speed)]
    command += ["--instant-updates"] if has_instant_updates else []
    command += ["--strict"] if is_strict else []
    command += [f"--allow-origin={origin}" for origin in allowed_origins]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
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
