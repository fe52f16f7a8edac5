"""Checkpoints of scans and writes: files with what is done and where to resume, locked by one process at a time."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from highwater.bulk.budget import PacedWorkError, read_checkpoint, write_checkpoint

try:
    import fcntl
except ImportError:  # pragma: no cover - on Windows nothing is held
    fcntl = None  # type: ignore[assignment]


@contextmanager
def held(path: Path | None) -> Iterator[None]:
    """Hold the checkpoint at *path*, `None` for none, while the block runs; a process that dies holds nothing.

    Raises `PacedWorkError` where another process holds it.
    """
    if path is None or fcntl is None:
        yield
        return
    beside = path.with_name(f"{path.name}.lock")
    file = _lock(path, beside)
    try:
        yield
    finally:
        if file is not None:
            # before it is let go, so that nobody holds a file that is gone
            with suppress(OSError):
                beside.unlink()
            os.close(file)


def _lock(path: Path, beside: Path) -> int | None:
    while True:
        try:
            file = os.open(beside, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise PacedWorkError(f"checkpoint {path}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                message = "another process goes on from it now; wait for it, or give another file"
                raise PacedWorkError(f"checkpoint {path}: {message}") from None
            # a file system without locks
            return None
        with suppress(FileNotFoundError):
            if beside.stat().st_ino == os.fstat(file).st_ino:
                return file
        # whoever held it has just deleted it
        os.close(file)


_WRITES_KIND: Final = "writes"


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
        known = None if path is None else read_checkpoint(path, _WRITES_KIND)
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
            write_checkpoint(self._path, _WRITES_KIND, {"table": self._table, "done": done})

    def end(self) -> None:
        """All are through: the file is deleted."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


_SCAN_KIND: Final = "a scan"
_SAVED_EVERY: Final = 5.0


@dataclass(frozen=True, slots=True)
class ScanHeader:
    """Which scan a checkpoint is of.

    Attributes:
        table: The table's name and region.
        index: The index, `None` for the table.
        segments: Into how many segments it is divided.
        is_consistent: Whether its reads are strongly consistent.
        request: A digest of filter, projection and their values, which the file need not have.
    """

    table: str
    index: str | None
    segments: int
    is_consistent: bool
    request: str

    @classmethod
    def of(cls, region: str, arguments: Mapping[str, Any]) -> ScanHeader:
        """The header of a scan with these arguments of `Scan`."""
        others = {"TableName", "IndexName", "TotalSegments", "ConsistentRead"}
        rest = {name: _encoded(value) for name, value in arguments.items() if name not in others}
        digest = hashlib.sha256(json.dumps(rest, sort_keys=True, default=str).encode()).hexdigest()
        return cls(
            f"{region} {arguments['TableName']}",
            arguments.get("IndexName"),
            int(arguments["TotalSegments"]),
            bool(arguments["ConsistentRead"]),
            digest,
        )

    def differences(self, other: ScanHeader) -> list[str]:
        """Names of the header fields that differ."""
        named = {
            "table": self.table != other.table,
            "index": self.index != other.index,
            "consistency": self.is_consistent != other.is_consistent,
            "filter or projection": self.request != other.request,
        }
        return [name for name, differs in named.items() if differs]


class Checkpoint:
    """Keeps a scan's place in a file, which it writes every five seconds and at the end of a block.

    Args:
        path: The file; `None` for a scan that need not go on.
        header: The scan. A file that is of another one is refused.
        save: Called before the file is written; returns how many bytes of the caller's output are safe.
        clock: Seconds that do not go back.

    Raises:
        PacedWorkError: The file is of another scan, cannot be read, or is no checkpoint.
    """

    def __init__(
        self,
        path: Path | None,
        header: ScanHeader,
        save: Callable[[], int] | None = None,
        clock: Callable[[], float] = lambda: time.monotonic(),
    ) -> None:
        self._path = path
        self._header = header
        self._save = save
        self._clock = clock
        self._saved_at = clock()
        self._keys: dict[int, Mapping[str, Any]] = {}
        self.done: set[int] = set()
        self.scanned = 0
        self.units = 0.0
        known = None if path is None else read_checkpoint(path, _SCAN_KIND)
        if known is not None:
            self._load(known)

    @staticmethod
    def segments_of(path: Path | None) -> int | None:
        """Into how many segments the scan of a file is divided; `None` where there is no file."""
        known = None if path is None else read_checkpoint(path, _SCAN_KIND)
        return None if known is None else int(known["header"]["segments"])

    @staticmethod
    def output_of(path: Path) -> int | None:
        """How many bytes of the caller's output are safe; `None` where there is no file."""
        known = read_checkpoint(path, _SCAN_KIND)
        return None if known is None else int(known["output"])

    def __enter__(self) -> Checkpoint:
        """Begin; the file is written at once, so that a place that cannot be written to is told before the scan."""
        self.write()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the file, or delete it if the scan is done."""
        if len(self.done) == self._header.segments and kind is None:
            if self._save is not None:
                self._save()
            if self._path is not None:
                self._path.unlink(missing_ok=True)
        else:
            self.write()

    def pending(self) -> dict[int, Mapping[str, Any] | None]:
        """Where each segment that is not done goes on."""
        return {each: self._keys.get(each) for each in range(self._header.segments) if each not in self.done}

    def note(self, segment: int, key: Mapping[str, Any] | None, scanned: int, units: float) -> None:
        """A page of a segment is done, and the next one comes after *key*; none comes for `None`."""
        self.scanned += scanned
        self.units += units
        if key is None:
            self.done.add(segment)
            self._keys.pop(segment, None)
        else:
            self._keys[segment] = key
        if self._clock() - self._saved_at >= _SAVED_EVERY:
            self.write()

    def write(self) -> None:
        """Write the file, whole or not at all; raises `PacedWorkError` where that is not possible."""
        output = self._save() if self._save is not None else 0
        self._saved_at = self._clock()
        if self._path is None:
            return
        document = {
            "header": {name: getattr(self._header, name) for name in ScanHeader.__slots__},
            "done": sorted(self.done),
            "keys": {str(segment): _encoded(key) for segment, key in sorted(self._keys.items())},
            "scanned": self.scanned,
            "units": self.units,
            "output": output,
        }
        write_checkpoint(self._path, _SCAN_KIND, document)

    def _load(self, document: Mapping[str, Any]) -> None:
        known = ScanHeader(**document["header"])
        differs = known.differences(self._header)
        if differs:
            message = (
                f"checkpoint {self._path}: is of a scan with another {', '.join(differs)}; give the same arguments, or "
                "another file to begin anew"
            )
            raise PacedWorkError(message)
        self.done = {int(segment) for segment in document["done"]}
        self._keys = {int(segment): _decoded(key) for segment, key in document["keys"].items()}
        self.scanned, self.units = int(document["scanned"]), float(document["units"])


def _encoded(value: Any) -> Any:
    """A key in what JSON has: bytes as base64."""
    if isinstance(value, bytes | bytearray):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {name: _encoded(each) for name, each in value.items()}
    return [_encoded(each) for each in value] if isinstance(value, list) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"base64"}:
            return base64.b64decode(value["base64"])
        return {name: _decoded(each) for name, each in value.items()}
    return [_decoded(each) for each in value] if isinstance(value, list) else value
