"""A file that lists what a run creates, written before it is created, so that a later run can delete it."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final

from highwater.core import HighwaterError

# Names of everything that the suite makes begin with this and the time at which it began
_PREFIX: Final = "HwAccept"
_FILE: Final = "ledger.json"
_LOCK: Final = "lock"


class LedgerError(HighwaterError):
    """A ledger that cannot be read; the message says which, and how to find what it listed."""


@dataclass(slots=True)
class Ledger:
    """What one run has created, or was about to create.

    Attributes:
        folder: The run's folder.
        account: The number of the account where the run is.
        region: The region.
        profile: The profile of the credentials; empty for a local cloud, which ends with its run.
        stacks: Names of CloudFormation stacks, in the order in which they were deployed.
        tables: Names of tables that belong to no stack.
    """

    folder: Path
    account: str
    region: str
    profile: str = ""
    stacks: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    _lock: IO[str] | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def begin(cls, build: Path, at: datetime, *, account: str, region: str, profile: str) -> Ledger:
        """Begin a run in a folder of its own below *build*."""
        ledger = cls(build / f"{_PREFIX}{at:%Y%m%d%H%M%S}", account, region, profile)
        ledger.folder.mkdir(parents=True, exist_ok=True)
        return ledger

    @classmethod
    def unfinished(cls, build: Path) -> list[Ledger | LedgerError]:
        """The ledgers below *build* of runs in accounts that may have left something, oldest first.

        One that cannot be read is an error in the list, so that the others are still found.
        """
        found = [_read(file) for file in sorted(build.glob(f"{_PREFIX}*/{_FILE}"))]
        return [each for each in found if isinstance(each, LedgerError) or each.profile]

    @property
    def prefix(self) -> str:
        """What the names of everything that this run creates begin with."""
        return self.folder.name

    @property
    def entries(self) -> list[str]:
        """Kind and name of everything that is listed."""
        return [f"stack {name}" for name in self.stacks] + [f"table {name}" for name in self.tables]

    def lock(self) -> bool:
        """Keep the ledger for this process until it ends or unlocks it; false if another process has it."""
        lock = (self.folder / _LOCK).open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        self._lock = lock
        return True

    def unlock(self) -> None:
        """Let other processes have it."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def add_stack(self, name: str) -> None:
        """Note a stack that is about to be deployed."""
        if name not in self.stacks:
            self.stacks.append(name)
            self._write()

    def add_table(self, name: str) -> None:
        """Note a table that is about to be created."""
        self.tables.append(name)
        self._write()

    def remove(self, name: str) -> None:
        """Forget a stack or table that has been deleted; the file stays until nothing is found of the run."""
        self.stacks = [each for each in self.stacks if each != name]
        self.tables = [each for each in self.tables if each != name]
        self._write()

    def finish(self) -> None:
        """Remove the file, as nothing is left of the run."""
        (self.folder / _FILE).unlink(missing_ok=True)

    def _write(self) -> None:
        document = {name: getattr(self, name) for name in ("account", "region", "profile", "stacks", "tables")}
        # a run that is killed while it writes leaves the earlier list, and so does a power cut
        draft = self.folder / f"{_FILE}.new"
        with draft.open("w") as file:
            file.write(json.dumps(document, indent=2))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.folder / _FILE)


def _read(file: Path) -> Ledger | LedgerError:
    text, why = "", "it is empty"
    try:
        text = file.read_text()
        document: dict[str, Any] = json.loads(text)
        return Ledger(file.parent, **document)
    except (OSError, ValueError) as error:
        why = why if not text and isinstance(error, ValueError) else str(error)
    except TypeError:
        why = "not a list of what a run made"
    return LedgerError(
        f"ledger {file} cannot be read: {why}; delete the stacks and tables whose names begin with "
        f"{file.parent.name} in the account yourself, and then this file"
    )
