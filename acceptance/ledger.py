"""A file that lists what a run creates, written before it is created, so that a later run can delete it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

# Names of everything that the suite makes begin with this and the time at which it began
_PREFIX: Final = "HwAccept"
_FILE: Final = "ledger.json"


@dataclass(slots=True)
class Ledger:
    """The stacks that one run has created, or was about to create, in their order.

    The profile is empty for a local cloud, which ends with its run. A ledger that cannot be read says what to do.
    """

    folder: Path
    account: str
    region: str
    profile: str = ""
    stacks: list[str] = field(default_factory=list)
    unreadable: str = ""

    @classmethod
    def begin(cls, build: Path, at: datetime, *, account: str, region: str, profile: str) -> Ledger:
        """Begin a run in a folder of its own below *build*."""
        ledger = cls(build / f"{_PREFIX}{at:%Y%m%d%H%M%S}", account, region, profile)
        ledger.folder.mkdir(parents=True, exist_ok=True)
        return ledger

    @classmethod
    def unfinished(cls, build: Path) -> list[Ledger]:
        """The ledgers below *build* of runs in accounts that may have left something, oldest first."""
        found = [_read(file) for file in sorted(build.glob(f"{_PREFIX}*/{_FILE}"))]
        return [each for each in found if each.profile]

    @property
    def prefix(self) -> str:
        """What the names of everything that this run creates begin with."""
        return self.folder.name

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Keep the ledger for this process during the block; false if another process has it."""
        with (self.folder / "lock").open("a") as lock:
            is_ours = True
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                is_ours = False
            yield is_ours

    def add(self, stack: str) -> None:
        """Note a stack that is about to be deployed."""
        if stack not in self.stacks:
            self.stacks.append(stack)
            self._write()

    def remove(self, stack: str) -> None:
        """Forget a stack that has been deleted; the file stays until nothing is found of the run."""
        self.stacks.remove(stack)
        self._write()

    def finish(self) -> None:
        """Remove the file, as nothing is left of the run."""
        (self.folder / _FILE).unlink(missing_ok=True)

    def _write(self) -> None:
        document = {name: getattr(self, name) for name in ("account", "region", "profile", "stacks")}
        # a run that is killed while it writes leaves the earlier list, and so does a power cut
        draft = self.folder / f"{_FILE}.new"
        with draft.open("w") as file:
            file.write(json.dumps(document, indent=2))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.folder / _FILE)


def _read(file: Path) -> Ledger:
    try:
        document: dict[str, Any] = json.loads(file.read_text())
        return Ledger(file.parent, **document)
    except (OSError, ValueError, TypeError) as error:
        why = (
            f"ledger {file} cannot be read: {error}; delete the stacks whose names begin with {file.parent.name} in "
            "the account yourself, and then this file"
        )
        return Ledger(file.parent, "unknown", "unknown", "unknown", unreadable=why)
