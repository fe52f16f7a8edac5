"""Where the cloud that `highwater local up` started is remembered: one per user.

A file that the server keeps locked for as long as it lives says whether there is one. However the server or the command
ends, the lock ends with it; a note beside it says which process it is.
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
from pathlib import Path

from highwater_lab.local.control import CloudControl, CloudError
from highwater_lab.local.process import is_running

_STARTUP = timedelta(seconds=90)
_PAUSE = timedelta(milliseconds=50)


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """A started cloud's port and process."""

    port: int
    pid: int

    @property
    def endpoint(self) -> str:
        """Where AWS clients find it."""
        return CloudControl(self.port).endpoint


def state_folder() -> Path:
    """The user's state folder of Highwater (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "highwater"


def scratch_folder() -> Path:
    """Where the cloud keeps what it unpacks; made anew for each."""
    folder = state_folder() / "scratch"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


@contextmanager
def claim() -> Iterator[int]:
    """Claim the place of the user's one cloud; the descriptor that a server inherits to keep it.

    Raises `CloudError` where one runs. Waits for a command that is starting one, as what follows from it is not known.
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
        # closed, not unlocked: a server that has inherited it keeps the lock
        os.close(descriptor)


def remember(whereabouts: Whereabouts) -> None:
    """Write down what was started."""
    fresh = _note().with_suffix(".new")
    fresh.write_text(json.dumps({"port": whereabouts.port, "pid": whereabouts.pid}))
    fresh.replace(_note())


def recall() -> Whereabouts | None:
    """The cloud that runs; `None` where none does. Waits for one that is being started.

    Raises `CloudError` where that takes longer than a minute and a half.
    """
    deadline = time.monotonic() + _STARTUP.total_seconds()
    while _is_claimed():
        noted = _noted()
        if noted is not None and is_running(noted.pid):
            return noted
        _wait(deadline)
    return None


def lost() -> str | None:
    """Name, in a clause, the cloud that ended without `highwater local down`, if one did; ask it where none runs."""
    was = _noted()
    if was is None:
        return None
    return f"the one at {was.endpoint} (process {was.pid}) ended without highwater local down, and its tables are gone"


def none_running() -> str:
    """Why there is no cloud, and how to start one, in one line."""
    gone = lost()
    was = "" if gone is None else f": {gone}"
    return f"no local cloud is running{was}; start one with: highwater local up"


def forget() -> None:
    """Clear the note and what the cloud unpacked away."""
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
        # shared, so that two that only look do not take each other for a cloud
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
