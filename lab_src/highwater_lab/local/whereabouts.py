"""Where the cloud that `highwater local up` started is remembered: one per user."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from highwater_lab.local.control import CloudControl, CloudError


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """A started cloud's port and process."""

    port: int
    pid: int


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


def remember(whereabouts: Whereabouts) -> None:
    """Write down what was started."""
    state_folder().mkdir(parents=True, exist_ok=True)
    _file().write_text(json.dumps({"port": whereabouts.port, "pid": whereabouts.pid}))


def recall() -> Whereabouts | None:
    """What was started and still lives; a note of a process that is gone is cleared away."""
    try:
        document = json.loads(_file().read_text())
        whereabouts = Whereabouts(int(document["port"]), int(document["pid"]))
    except (OSError, ValueError, KeyError, TypeError):
        forget()
        return None
    if not _answers(whereabouts):
        forget()
        return None
    return whereabouts


def _answers(whereabouts: Whereabouts) -> bool:
    """Whether that very process serves; one that was killed may linger in the process table without serving."""
    try:
        return CloudControl(whereabouts.port).status().pid == whereabouts.pid
    except (CloudError, KeyError):
        return False


def forget() -> None:
    """Clear the note away."""
    _file().unlink(missing_ok=True)
    shutil.rmtree(state_folder() / "scratch", ignore_errors=True)


def _file() -> Path:
    return state_folder() / "local-cloud.json"
