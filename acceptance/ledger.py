"""A file that lists what a run creates, written before it is created, so that a later run can delete it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

# Names of everything that the suite creates begin with this and the time at which it began
_PREFIX: Final = "HwAccept"
_FILE: Final = "ledger.json"


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

    @classmethod
    def begin(cls, build: Path, at: datetime, *, account: str, region: str, profile: str) -> Ledger:
        """Begin a run in a folder of its own below *build*."""
        ledger = cls(build / f"{_PREFIX}{at:%Y%m%d%H%M%S}", account, region, profile)
        ledger.folder.mkdir(parents=True, exist_ok=True)
        return ledger

    @classmethod
    def unfinished(cls, build: Path) -> Iterator[Ledger]:
        """Yield the ledgers below *build* of runs in accounts that have not deleted everything."""
        for file in sorted(build.glob(f"{_PREFIX}*/{_FILE}")):
            document: dict[str, Any] = json.loads(file.read_text())
            if document["profile"]:
                yield cls(file.parent, **document)

    @property
    def prefix(self) -> str:
        """What the names of everything that this run creates begin with."""
        return self.folder.name

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
        """Forget a stack or table that has been deleted; the file goes with the last one."""
        self.stacks = [each for each in self.stacks if each != name]
        self.tables = [each for each in self.tables if each != name]
        if self.stacks or self.tables:
            self._write()
        else:
            (self.folder / _FILE).unlink(missing_ok=True)

    def _write(self) -> None:
        document = {name: getattr(self, name) for name in ("account", "region", "profile", "stacks", "tables")}
        # a run that is killed while it writes leaves the earlier list
        draft = self.folder / f"{_FILE}.new"
        draft.write_text(json.dumps(document, indent=2))
        draft.replace(self.folder / _FILE)
