"""Checkpoints of scans and writes: files that record what is done and where to resume, locked by one process."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import logging
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
except ImportError:  # pragma: no cover - on Windows nothing is locked
    fcntl = None  # type: ignore[assignment]

_LOG: Final = logging.getLogger("highwater.pace")
_LOCK: Final = ".lock"


@contextmanager
def held(path: Path | None) -> Iterator[None]:
    """Lock the checkpoint at *path*, `None` for none, while the block runs; the lock ends with the process.

    Raises `PacedWorkError` if another process has locked it.
    """
    if path is None or fcntl is None:
        yield
        return
    beside = path.with_name(f"{path.name}{_LOCK}")
    file = _lock(path, beside)
    try:
        yield
    finally:
        if file is not None:
            # deleted before it is unlocked, so that no process can lock a file that is about to be deleted
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
            # the file system has no locks
            return None
        with suppress(FileNotFoundError):
            if beside.stat().st_ino == os.fstat(file).st_ino:
                with suppress(OSError):
                    os.ftruncate(file, 0)
                    os.write(file, str(os.getpid()).encode())
                return file
        # the process that had the lock has just deleted the file
        os.close(file)


def warn_of_others(path: Path | None, kind: str, table: str, index: str | None = None) -> None:
    """Log a warning if other processes work on the same table or index now, as each has a budget of its own.

    Only processes on this machine whose checkpoints are in the same folder as *path* can be known; with no *path* none.

    Args:
        path: This work's checkpoint.
        kind: `SCAN_KIND` or `WRITES_KIND`.
        table: The table's region and name.
        index: The index that is read, `None` for the table.
    """
    if path is None or fcntl is None:
        return
    others = sorted(each.name for each in _held_beside(path) if _is_of(each, kind, table, index))
    if others:
        what = table if index is None else f"{table}, index {index}"
        _LOG.warning(
            "checkpoint %s: another process works on %s now (%s): a budget applies to one process, so together they "
            "consume the sum of their budgets; divide yours between them",
            path,
            what,
            ", ".join(others),
        )


def _held_beside(path: Path) -> Iterator[Path]:
    """Yield the checkpoints in the same folder that other living processes have locked."""
    for beside in path.parent.glob(f"*{_LOCK}"):
        other = beside.with_name(beside.name.removesuffix(_LOCK))
        if other.name != path.name and _is_held(beside):
            yield other


def _is_held(beside: Path) -> bool:
    """Whether another living process has this lock."""
    try:
        owner = int(beside.read_text())
        # threads of one process may share a pacer, and with it a budget
        if owner == os.getpid() or owner < 1:
            return False
        os.kill(owner, 0)
    except PermissionError:
        # it lives, and is another user's
        pass
    except (OSError, ValueError, OverflowError):
        return False
    # The lock of a process that was killed is not touched, as its next run may be taking it just now. It is tried only
    # where another process has its number meanwhile.
    try:
        file = os.open(beside, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    finally:
        os.close(file)
    return False


def _is_of(other: Path, kind: str, table: str, index: str | None) -> bool:
    """Whether a checkpoint is of this table or index."""
    try:
        known = read_checkpoint(other, kind)
    except PacedWorkError:
        return False
    if known is None:
        return False
    place = known.get("header", known)
    return (place.get("table"), place.get("index")) == (table, index)


WRITES_KIND: Final = "writes"


class WritePlace:
    """Checkpoint of a paced write: the number of actions done.

    Args:
        path: The file; `None` for writes that need not be resumed.
        table: The table and its region; a file of another table is rejected.

    Raises:
        PacedWorkError: The file is of another table, cannot be read or written, or is no checkpoint.
    """

    def __init__(self, path: Path | None, table: str) -> None:
        self._path = path
        self._table = table
        self.done = 0
        known = None if path is None else read_checkpoint(path, WRITES_KIND)
        if known is not None:
            if known["table"] != table:
                raise PacedWorkError(f"checkpoint {path}: is of writes to {known['table']}, not to {table}")
            self.done = int(known["done"])
        # written once now, so that a path that cannot be written raises before the writes start
        self.move_to(self.done)

    def move_to(self, done: int) -> None:
        """Record that *done* actions are done."""
        self.done = done
        if self._path is not None:
            write_checkpoint(self._path, WRITES_KIND, {"table": self._table, "done": done})

    def end(self) -> None:
        """Delete the file: all actions are done."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


SCAN_KIND: Final = "a scan"
_SAVED_EVERY: Final = 5.0


@dataclass(frozen=True, slots=True)
class ScanHeader:
    """The scan that a checkpoint belongs to.

    Attributes:
        table: The table's name and region.
        index: The index, `None` for the table.
        segments: The number of segments.
        is_consistent: Whether its reads are strongly consistent.
        request: A digest of filter, projection and their values, so that the values themselves are not in the file.
    """

    table: str
    index: str | None
    segments: int
    is_consistent: bool
    request: str

    @classmethod
    def of(cls, region: str, arguments: Mapping[str, Any]) -> ScanHeader:
        """Return the header of a scan with these arguments of `Scan`."""
        others = {"TableName", "IndexName", "TotalSegments", "ConsistentRead"}
        rest = {name: encoded(value) for name, value in arguments.items() if name not in others}
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
    """Checkpoint of a scan: a file with each segment's next key, written every five seconds and at the block's end.

    Args:
        path: The file; `None` for a scan that need not be resumed.
        header: The scan. A file of another scan is rejected.
        save: Called before the file is written; returns how many bytes of the caller's output are on disk.
        clock: Monotonic clock, in seconds.

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
        known = None if path is None else read_checkpoint(path, SCAN_KIND)
        if known is not None:
            self._load(known)

    @staticmethod
    def segments_of(path: Path | None) -> int | None:
        """Return the number of segments of a file's scan; `None` if there is no file."""
        known = None if path is None else read_checkpoint(path, SCAN_KIND)
        return None if known is None else int(known["header"]["segments"])

    @staticmethod
    def output_of(path: Path) -> int | None:
        """Return how many bytes of the caller's output were on disk; `None` if there is no file."""
        known = read_checkpoint(path, SCAN_KIND)
        return None if known is None else int(known["output"])

    def __enter__(self) -> Checkpoint:
        """Write the file once, so that a path that cannot be written raises before the scan starts."""
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
        """Return the key after which each unfinished segment continues; `None` for its start."""
        return {each: self._keys.get(each) for each in range(self._header.segments) if each not in self.done}

    def note(self, segment: int, key: Mapping[str, Any] | None, scanned: int, units: float) -> None:
        """Record that a page of a segment is done. The next page starts after *key*; `None` if it was the last."""
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
        """Write the file atomically; raises `PacedWorkError` if it cannot be written."""
        output = self._save() if self._save is not None else 0
        self._saved_at = self._clock()
        if self._path is None:
            return
        document = {
            "header": {name: getattr(self._header, name) for name in ScanHeader.__slots__},
            "done": sorted(self.done),
            "keys": {str(segment): encoded(key) for segment, key in sorted(self._keys.items())},
            "scanned": self.scanned,
            "units": self.units,
            "output": output,
        }
        write_checkpoint(self._path, SCAN_KIND, document)

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
        self._keys = {int(segment): decoded(key) for segment, key in document["keys"].items()}
        self.scanned, self.units = int(document["scanned"]), float(document["units"])


def encoded(value: Any) -> Any:
    """Return a key as JSON can have it: bytes become base64."""
    if isinstance(value, bytes | bytearray):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {name: encoded(each) for name, each in value.items()}
    return [encoded(each) for each in value] if isinstance(value, list) else value


def decoded(value: Any) -> Any:
    """Return what `encoded` was given."""
    if isinstance(value, dict):
        if value.keys() == {"base64"}:
            return base64.b64decode(value["base64"])
        return {name: decoded(each) for name, each in value.items()}
    return [decoded(each) for each in value] if isinstance(value, list) else value
