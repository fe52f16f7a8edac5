"""A list of what a local cloud holds, kept beside it for the day that it is killed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

_INTERVAL: Final = timedelta(seconds=1)
_MOST_NAMES: Final = 5


@dataclass(frozen=True, slots=True)
class Contents:
    """The names of tables and of stacks, sorted."""

    tables: Sequence[str] = field(default=())
    stacks: Sequence[str] = field(default=())

    def told(self) -> str:
        """Them in words, the first five names of each; empty where there are none."""
        kinds = (("table", self.tables), ("stack", self.stacks))
        return " and ".join(_counted(kind, names) for kind, names in kinds if names)


class Journal:
    """Writes to *file* what *contents* tells, whenever that has changed."""

    def __init__(self, file: Path, contents: Callable[[], Contents]) -> None:
        self._file = file
        self._contents = contents
        self._written: Contents | None = None

    async def keep(self) -> None:
        """Look once a second, until cancelled."""
        while True:
            now = self._contents()
            if now != self._written:
                self._write(now)
            await asyncio.sleep(_INTERVAL.total_seconds())

    def _write(self, now: Contents) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps({"tables": list(now.tables), "stacks": list(now.stacks)}))
        fresh.replace(self._file)
        self._written = now


def read_journal(file: Path) -> Contents | None:
    """What stands in *file*; `None` where it cannot be read."""
    try:
        document = json.loads(file.read_text())
        return Contents(tuple(map(str, document["tables"])), tuple(map(str, document["stacks"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _counted(kind: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{len(names)} {kind}{'' if len(names) == 1 else 's'} ({shown}{more})"
