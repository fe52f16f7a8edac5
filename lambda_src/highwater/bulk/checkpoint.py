"""Checkpoints of scans and writes: files that record what is done and where to resume, locked by one process."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from highwater.bulk.budget import PacedWorkError
from highwater.bulk.items import TOO_DEEP
from highwater.core.documents import DocumentError, read_document
from highwater.core.pacing.segments import MOST_SEGMENTS

try:
    import fcntl
except ImportError:  # pragma: no cover - on Windows nothing is locked
    fcntl = None  # type: ignore[assignment]

_LOG: Final = logging.getLogger("highwater.pace")
_LOCK: Final = ".lock"
_FORMAT: Final = 1


def read_checkpoint(path: Path, kind: str) -> dict[str, Any] | None:
    """Return a checkpoint's document, `None` if there is no file.

    Raises `PacedWorkError` for a file that cannot be read, or is no checkpoint of that kind.
    """
    try:
        document: Any = read_document(path.read_bytes())
    except FileNotFoundError:
        return None
    except DocumentError:
        document = None
    except (OSError, ValueError) as error:
        raise _failure(path, "read", error) from error
    if not isinstance(document, dict) or (document.get("format"), document.get("kind")) != (_FORMAT, kind):
        raise PacedWorkError(f"checkpoint {path}: is no checkpoint of {kind}; give another file")
    return document


@contextmanager
def checkpoint_members(path: Path) -> Iterator[None]:
    """Raise `PacedWorkError` if a checkpoint's document has not the members that the block reads, or other values."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        fix = "delete it to begin anew, or give another file"
        raise PacedWorkError(f"checkpoint {path}: is damaged ({type(error).__name__}: {error}); {fix}") from error


def write_checkpoint(path: Path, kind: str, document: Mapping[str, Any]) -> None:
    """Write a checkpoint atomically; raises `PacedWorkError` if it cannot be written."""
    beside = path.with_name(f"{path.name}.new")
    try:
        # anew, as a link of that name would lead to another file
        beside.unlink(missing_ok=True)
        with beside.open("x") as file:
            json.dump({"format": _FORMAT, "kind": kind, **document}, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise _failure(path, "written", error) from error


def _failure(path: Path, what: str, error: OSError | ValueError) -> PacedWorkError:
    # Python itself rejects some paths by a ValueError, such as one with a NUL
    why = getattr(error, "strerror", None) or error
    return PacedWorkError(f"checkpoint {path}: cannot be {what}: {why}")


@contextmanager
def held(path: Path | None) -> Iterator[None]:
    """Lock the checkpoint at *path*, `None` for none, while the block runs; the lock ends with the process.

    Raises `PacedWorkError` if another process has locked it.
    """
    if path is None or fcntl is None:
        yield
        return
    # an empty path has no name: the read reports that it is a folder
    beside = path.parent / f"{path.name}{_LOCK}"
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
        except (OSError, ValueError) as error:
            raise _failure(path, "written", error) from error
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
    return isinstance(place, dict) and (place.get("table"), place.get("index")) == (table, index)


WRITES_KIND: Final = "writes"


class WritePlace:
    """Checkpoint of a paced write: the number of actions done, and a digest that tells whether they were the same.

    Args:
        path: The file; `None` for writes that need not be resumed.
        table: The table and its region; a file of another table is rejected.
        table_id: DynamoDB's id of the table, another one if it was deleted and made anew; `None` if it is not known.

    Raises:
        PacedWorkError: The file is of another table, cannot be read or written, or is no checkpoint.
    """

    def __init__(self, path: Path | None, table: str, table_id: str | None = None) -> None:
        self._path = path
        self._table, self._table_id = table, table_id
        self._digest = hashlib.sha256()
        self.done, self._known = 0, self._digest.hexdigest()
        known = None if path is None else read_checkpoint(path, WRITES_KIND)
        if path is not None and known is not None:
            with checkpoint_members(path):
                if known["table"] != table:
                    raise PacedWorkError(f"checkpoint {path}: is of writes to {known['table']}, not to {table}")
                if known["table_id"] != table_id:
                    why = f"is of writes to another {table}, which was deleted since"
                    raise PacedWorkError(f"checkpoint {path}: {why}; delete it to begin anew")
                self.done, self._known = _whole(known["done"]), str(known["actions"])

    def skip(self, done: Iterable[object]) -> None:
        """Pass the actions that are done, by what each is recognized by.

        Raises `PacedWorkError` if they are not those that were done.
        """
        passed = 0
        for action in done:
            self._add(action)
            passed += 1
        if passed < self.done:
            message = f"is of {self.done:,} actions that are through, but {passed:,} were given"
        elif self._digest.hexdigest() != self._known:
            message = f"is of other actions: the first {self.done:,} are not those that are through"
        else:
            # once now, so that a path that cannot be written raises before the writes start
            self._write()
            return
        raise PacedWorkError(f"checkpoint {self._path}: {message}; give the same ones, or another file")

    def move_by(self, actions: Sequence[object]) -> None:
        """Record that more actions are done, by what each is recognized by."""
        for action in actions:
            self._add(action)
        self.done += len(actions)
        self._write()

    def _add(self, action: object) -> None:
        if self._path is not None:
            try:
                text = _recognized_by(action)
            except RecursionError:
                # no item is nested so deeply; it is rejected
                text = TOO_DEEP
            self._digest.update(text.encode(errors="surrogatepass"))

    def _write(self) -> None:
        if self._path is not None:
            actions = self._digest.hexdigest()
            where = {"table": self._table, "table_id": self._table_id}
            write_checkpoint(self._path, WRITES_KIND, {**where, "done": self.done, "actions": actions})

    def end(self) -> None:
        """Delete the file: all actions are done."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _recognized_by(value: object) -> str:
    """Return a text that is the same for equal values in every process; sets have no order there."""
    match value:
        case Mapping():
            members = sorted(f"{name!r}:{_recognized_by(each)}" for name, each in value.items())
            return f"{{{','.join(members)}}}"
        case set() | frozenset():
            return f"<{','.join(sorted(map(_recognized_by, value)))}>"
        case list() | tuple():
            return f"[{','.join(map(_recognized_by, value))}]"
    return f"{value!r};"


def _whole(value: object, most: int = 10**18) -> int:
    """Return a whole number from 0 on; raises `ValueError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        message = f"{str(value)[:40]!r} is no whole number from 0 to {most:,}"
        raise ValueError(message)
    return value


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
        table_id: DynamoDB's id of the table, another one if it was deleted and made anew; `None` if it is not known.
    """

    table: str
    index: str | None
    segments: int
    is_consistent: bool
    request: str
    table_id: str | None = None

    @classmethod
    def of(cls, region: str, arguments: Mapping[str, Any], table_id: str | None) -> ScanHeader:
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
            table_id,
        )

    def differences(self, other: ScanHeader) -> list[str]:
        """Names of the header fields that differ."""
        named = {
            "table": self.table != other.table,
            "index": self.index != other.index,
            "consistency": self.is_consistent != other.is_consistent,
            "filter or projection": self.request != other.request,
            "table of that name": self.table == other.table and self.table_id != other.table_id,
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
        if path is not None and known is not None:
            with checkpoint_members(path):
                self._load(known)

    @staticmethod
    def segments_of(path: Path | None) -> int | None:
        """Return the number of segments of a file's scan; `None` if there is no file."""
        known = None if path is None else read_checkpoint(path, SCAN_KIND)
        if path is None or known is None:
            return None
        with checkpoint_members(path):
            return max(_whole(known["header"]["segments"], MOST_SEGMENTS), 1)

    @staticmethod
    def output_of(path: Path) -> int | None:
        """Return how many bytes of the caller's output were on disk; `None` if there is no file."""
        known = read_checkpoint(path, SCAN_KIND)
        if known is None:
            return None
        with checkpoint_members(path):
            return _whole(known["output"])

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
        last = self._header.segments - 1
        self.done = {_whole(segment, last) for segment in document["done"]}
        self._keys = {_whole(int(segment), last): _key(key) for segment, key in document["keys"].items()}
        self.scanned, self.units = _whole(document["scanned"]), float(document["units"])


def _key(value: Any) -> Mapping[str, Any]:
    """Return a key of DynamoDB's as it was before `encoded`; raises `ValueError` for what is none."""
    key = decoded(value)
    if (
        not isinstance(key, dict)
        or not key
        or not all(isinstance(each, dict) and len(each) == 1 for each in key.values())
    ):
        message = f"{str(value)[:40]!r} is no key"
        raise ValueError(message)
    return dict(key)


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
