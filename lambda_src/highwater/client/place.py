"""How far writes are, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from highwater.client.paced_work import PacedWorkError, read_checkpoint, write_checkpoint

_KIND: Final = "writes"


class WritePlace:
    """Keeps how many actions are through.

    Args:
        path: The file; `None` for writes that need not go on.
        table: The table and its region; a file that is of another one is refused.

    Raises:
        PacedWorkError: The file is of another table, cannot be read or written, or is no checkpoint.
    """

    def __init__(self, path: Path | None, table: str) -> None:
        self._path = path
        self._table = table
        self.done = 0
        known = None if path is None else read_checkpoint(path, _KIND)
        if known is not None:
            if known["table"] != table:
                raise PacedWorkError(f"checkpoint {path}: is of writes to {known['table']}, not to {table}")
            self.done = int(known["done"])
        # a place that cannot be written to is told before the writes begin
        self.move_to(self.done)

    def move_to(self, done: int) -> None:
        """So many actions are through."""
        self.done = done
        if self._path is not None:
            write_checkpoint(self._path, _KIND, {"table": self._table, "done": done})

    def end(self) -> None:
        """All are through: the file is deleted."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
