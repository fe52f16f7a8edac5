"""Where a scan writes its items: lines of JSON in a file that can be cut off and gone on with."""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Protocol

from highwater.core.errors import HighwaterError


class OutputError(HighwaterError):
    """A file that cannot be written."""


class _Writer(Protocol):
    def write(self, data: bytes, /) -> Any: ...

    def close(self) -> None: ...


class ItemOutput:
    """Writes items as lines `{"Item": {...}}`, with DynamoDB's types, as its own exports have them.

    A name that ends in `.gz` or `.zst` is compressed. What was written until `save` stands on its own, so that a scan
    that is killed is cut off there and goes on.

    Args:
        path: The file; `None` for standard output.
        kept_bytes: How much of the file an earlier scan has left; the rest is cut off. `None` for a new file.

    Raises:
        OutputError: The file is there already, is shorter than *kept_bytes*, or cannot be written.
    """

    def __init__(self, path: Path | None, kept_bytes: int | None) -> None:
        self._path = path
        self._writer: _Writer | None = None
        # what a write that failed has left is no whole line
        self._failure: OutputError | None = None
        try:
            self._file: IO[bytes] = sys.stdout.buffer if path is None else _open(path, kept_bytes)
        except OSError as error:
            raise self._failed(error) from error

    def write(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Write items; raises `OutputError`."""
        lines = "".join(f"{json.dumps({'Item': _plain(item)}, ensure_ascii=False)}\n" for item in items)
        if not lines:
            return
        try:
            if self._writer is None:
                self._writer = self._begin()
            self._writer.write(lines.encode())
        except OSError as error:
            raise self._failed(error) from error

    def save(self) -> int:
        """Make what was written safe; return how many bytes the file has. Raises `OutputError`."""
        if self._failure is not None:
            raise self._failure
        try:
            if self._writer is not None and self._path is not None:
                self._writer.close()
                self._writer = None
            self._file.flush()
            if self._path is None:
                return 0
            os.fsync(self._file.fileno())
            return self._file.tell()
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Close the file as it is."""
        if self._path is not None:
            # what cannot be written now was told before
            with contextlib.suppress(OSError):
                self._file.close()

    def _begin(self) -> _Writer:
        suffix = "" if self._path is None else self._path.suffix
        if suffix == ".gz":
            return gzip.GzipFile(fileobj=self._file, mode="wb", mtime=0)
        if suffix == ".zst":
            import zstandard

            return zstandard.ZstdCompressor().stream_writer(self._file, closefd=False)
        return _Plain(self._file)

    def _failed(self, error: OSError) -> OutputError:
        self._failure = OutputError(f"{self._path or 'standard output'}: cannot be written: {error.strerror or error}")
        return self._failure


class _Plain:
    """A writer that compresses nothing and leaves its file open."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def close(self) -> None:
        self._file.flush()


def _open(path: Path, kept_bytes: int | None) -> IO[bytes]:
    if kept_bytes is None:
        try:
            return path.open("xb")
        except FileExistsError:
            raise OutputError(f"{path}: is there already; give another file, or delete it") from None
    file = path.open("r+b")
    if file.seek(0, io.SEEK_END) < kept_bytes:
        file.close()
        raise OutputError(f"{path}: is shorter than its checkpoint says; delete both to begin anew")
    file.seek(kept_bytes)
    file.truncate()
    return file


def _plain(value: Any) -> Any:
    """A value in what JSON has: bytes as base64, as DynamoDB sends them."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple | set) else value
