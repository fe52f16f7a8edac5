"""Which cloud a command acts on: the one that AWS_ENDPOINT_URL names, or the one that `highwater local up` started.

`highwater local up` starts one per user, and records it here. The server locks a file until it ends; whether the file
is locked says whether a cloud runs. However the server or the command ends, the lock ends with it. A second file has
the server's port and process id.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from highwater_lab.local.control import CloudControl, CloudError
from highwater_lab.local.process import is_running

_STARTUP = timedelta(seconds=90)
_ANSWER = timedelta(seconds=10)
_VARIABLE: Final = "AWS_ENDPOINT_URL"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_PORTS: Final = {"http": 80, "https": 443}
_PAUSE = timedelta(milliseconds=50)


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """A started cloud's port and process."""

    port: int
    pid: int

    @property
    def endpoint(self) -> str:
        """The endpoint URL for AWS clients."""
        return CloudControl(self.port).endpoint


def state_folder() -> Path:
    """Return the user's state folder of Highwater (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "highwater"


def scratch_folder() -> Path:
    """Return the folder for the cloud's temporary files; it is emptied for each cloud."""
    folder = state_folder() / "scratch"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


@contextmanager
def claim() -> Iterator[int]:
    """Lock the file of the user's one cloud; yield the descriptor that a server inherits to keep the lock.

    Raises `CloudError` if a cloud runs. Waits for a command that is starting one, as it may succeed or fail.
    """
    state_folder().mkdir(parents=True, exist_ok=True)
    descriptor = os.open(_lock(), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + _STARTUP.total_seconds()
        while not _locks(descriptor, fcntl.LOCK_EX):
            running = _noted()
            if running is not None and is_running(running.pid):
                where = f"{running.endpoint} (process {running.pid})"
                raise CloudError(f"a local cloud is already running at {where}; stop it with: highwater local down")
            _wait(deadline)
        yield descriptor
    finally:
        # closed, not unlocked: a server that has inherited the descriptor keeps the lock
        os.close(descriptor)


def remember(whereabouts: Whereabouts) -> None:
    """Record the started cloud in a file."""
    fresh = _note().with_suffix(".new")
    fresh.write_text(json.dumps({"port": whereabouts.port, "pid": whereabouts.pid}))
    fresh.replace(_note())


def recall() -> Whereabouts | None:
    """Return the running cloud, `None` if there is none. Waits for one that is being started.

    Raises `CloudError` if that takes longer than a minute and a half.
    """
    deadline = time.monotonic() + _STARTUP.total_seconds()
    while _is_claimed():
        noted = _noted()
        if noted is not None and is_running(noted.pid):
            return noted
        _wait(deadline)
    return None


def lost() -> str | None:
    """Return a clause about a cloud that ended without `highwater local down`, if any; call this if none runs."""
    was = _noted()
    if was is None:
        return None
    return f"the one at {was.endpoint} (process {was.pid}) ended without highwater local down, and its tables are gone"


def none_running() -> str:
    """Return a line that says why there is no cloud, and how to start one."""
    gone = lost()
    was = "" if gone is None else f": {gone}"
    return f"no local cloud is running{was}; start one with: highwater local up"


def find_cloud() -> Whereabouts:
    """Return the cloud that a command acts on: the one that AWS_ENDPOINT_URL names, by default the recorded one.

    Raises `CloudError` if no cloud answers there, or none runs.
    """
    recorded, url = recall(), os.environ.get(_VARIABLE)
    if url:
        port = _port_of(url)
        named = None if port is None else cloud_at(port, recorded)
        if named is not None:
            return named
        if recorded is not None:
            raise CloudError(
                f"no local cloud answers at {_VARIABLE}={url}, and highwater local up started the one at "
                f'{recorded.endpoint}; set the variable with: eval "$(highwater local env)", or unset it'
            )
        was = _noted()
        if was is None or was.port != port:
            fix = "unset it, and start one with: highwater local up"
            raise CloudError(f"no local cloud answers at {_VARIABLE}={url}; {fix}")
    if recorded is None:
        raise CloudError(none_running())
    return recorded


def cloud_at(port: int, recorded: Whereabouts | None = None) -> Whereabouts | None:
    """Return the cloud that answers at a port of loopback, whoever started it; `None` if none answers.

    *recorded*, the one that `highwater local up` started, is returned without asking if it has that port.
    """
    if recorded is not None and recorded.port == port:
        return recorded
    try:
        return Whereabouts(port, CloudControl(port).status(within=_ANSWER).pid)
    except (CloudError, HTTPException, ValueError, LookupError, TypeError):
        # nothing answers, or it is another server
        return None


def _port_of(url: str) -> int | None:
    """Return the port of a URL of loopback, `None` for any other URL."""
    try:
        parts = urlsplit(url)
        return (parts.port or _PORTS.get(parts.scheme)) if parts.hostname in _LOOPBACK else None
    except ValueError:
        return None


def forget() -> None:
    """Delete the record and the cloud's temporary files."""
    _note().unlink(missing_ok=True)
    shutil.rmtree(state_folder() / "scratch", ignore_errors=True)


def _noted() -> Whereabouts | None:
    try:
        document = json.loads(_note().read_text())
        return Whereabouts(int(document["port"]), int(document["pid"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_claimed() -> bool:
    try:
        descriptor = os.open(_lock(), os.O_RDWR)
    except OSError:
        return False
    try:
        # a shared lock, so that two commands that only check do not take each other for a cloud
        return not _locks(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _locks(descriptor: int, kind: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        return True
    return False


def _wait(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise CloudError("another highwater local up has not ended for a minute and a half; end it, and try again")
    time.sleep(_PAUSE.total_seconds())


def _lock() -> Path:
    return state_folder() / "local-cloud.lock"


def _note() -> Path:
    return state_folder() / "local-cloud.json"
