"""Files of items: the input of a load (lines of JSON, CSV, exports of DynamoDB), and the output of a scan."""

from __future__ import annotations

import base64
import contextlib
import csv
import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, Final

from highwater import Put
from highwater.bulk.items import MOST_LINE_BYTES, Unreadable, put_of_line
from highwater.core.errors import HighwaterError

# CSV files of spreadsheets begin with a byte order mark, which is not part of the first column's name
_ENCODING: Final = "utf-8-sig"
# larger than any item may be
_MOST_CELL_CHARACTERS: Final = 2**20
# A compressed byte of Zstandard may become 32 kilobytes, so these become 8 MB at most.
_CHUNK: Final = 2**8
_KEPT_CHARACTERS: Final = 1_000


class InputError(HighwaterError):
    """A file that cannot be read."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the input.

    Attributes:
        place: The file and the line's number in it, from 1 on.
        text: The line.
        action: The put of its item; for an invalid line, sending it raises `ValueError`.
    """

    place: str
    text: str
    action: Put


def read_lines(path: Path | None, numbers: frozenset[str]) -> Iterator[Line]:
    """Yield the items of a file, of all files of a folder, or of standard input for `None`.

    A folder is an export of DynamoDB: its files `data/*.json.gz` are read in the order of their names. A file with
    `.csv` in its name is CSV with a header; its columns in *numbers* are numbers and all others strings; empty cells
    are left out. Any other file is lines of JSON: `{"Item": {...}}` with DynamoDB's types, or plain objects.

    Raises `InputError` for a file that cannot be read.
    """
    for each in _files(path):
        with _opened(each) as file:
            name = "standard input" if each is None else each.name
            if each is not None and ".csv" in each.suffixes:
                yield from _rows(name, file, numbers)
            else:
                yield from _objects(name, file)


def _files(path: Path | None) -> list[Path | None]:
    if path is None or not path.is_dir():
        return [path]
    found: list[Path | None] = [*sorted(path.glob("data/*.json.gz")), *sorted(path.glob("*.json.gz"))]
    if not found:
        raise InputError(f"{path}: has no data/*.json.gz, as an export of DynamoDB has; give a file, or such a folder")
    return found


@contextmanager
def _opened(path: Path | None) -> Iterator[IO[str]]:
    if path is None:
        yield io.TextIOWrapper(sys.stdin.buffer, encoding=_ENCODING, newline="")
        return
    try:
        with path.open("rb") as file:
            yield io.TextIOWrapper(_decompressed(path, file), encoding=_ENCODING, newline="")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        if isinstance(error, UnicodeDecodeError):
            raise InputError(f"{path}: is no text in UTF-8") from error
        why = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise InputError(f"{path}: cannot be read: {why}") from error


def _decompressed(path: Path, file: IO[bytes]) -> IO[bytes]:
    if path.suffix == ".gz":
        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value] # reads as any binary file
    if path.suffix == ".zst":
        return io.BufferedReader(_Frames(file))
    return file


class _Frames(io.RawIOBase):
    """What the frames of a Zstandard file have; raises `EOFError` if the file ends within one.

    The library's own reader does not tell such a file from a whole one.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._left = file, memoryview(b"")
        self._frame: Any = None

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def readinto(self, into: Any) -> int:
        """Read up to as many bytes as *into* has, and return how many; 0 at the end of the file."""
        import zstandard

        while not self._left:
            is_between = self._frame is None or self._frame.eof
            behind = self._frame.unused_data if self._frame is not None and is_between else b""
            chunk = behind or self._file.read(_CHUNK)
            if not chunk:
                if not is_between:
                    raise EOFError("it ends within a compressed frame; copy it again")
                return 0
            if is_between:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            try:
                self._left = memoryview(self._frame.decompress(chunk))
            except zstandard.ZstdError as error:
                raise OSError(f"is no Zstandard file: {error}") from error
        size = min(len(into), len(self._left))
        into[:size], self._left = self._left[:size], self._left[size:]
        return size


def _objects(name: str, file: IO[str]) -> Iterator[Line]:
    for number, (text, is_whole) in enumerate(_lines(file), 1):
        line = text.strip()
        if not is_whole:
            why = f"the line is too long; allowed: {MOST_LINE_BYTES:,} characters"
            yield Line(f"{name}, line {number:,}", line[:_KEPT_CHARACTERS], Unreadable({}, why=why))
        elif line:
            yield Line(f"{name}, line {number:,}", line, put_of_line(line))


def _lines(file: IO[str]) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a file, and whether each is whole: of one that no item can need only the first part."""
    while text := file.readline(MOST_LINE_BYTES):
        rest = text
        while not rest.endswith("\n") and (rest := file.readline(MOST_LINE_BYTES)):
            pass
        # the last line may have no end
        yield text, text.endswith("\n") or rest == ""


class _RowLines:
    """The lines of a CSV file; raises `InputError` where a row has more characters than a row may have."""

    def __init__(self, name: str, file: IO[str]) -> None:
        self._name, self._file, self._left = name, file, MOST_LINE_BYTES

    def begin_row(self) -> None:
        """The next line begins a row."""
        self._left = MOST_LINE_BYTES

    def __iter__(self) -> Iterator[str]:
        while text := self._file.readline(self._left + 1):
            self._left -= len(text)
            if self._left < 0:
                raise InputError(f"{self._name}: has a row of more than {MOST_LINE_BYTES:,} characters; is it CSV?")
            yield text


def _rows(name: str, file: IO[str], numbers: frozenset[str]) -> Iterator[Line]:
    csv.field_size_limit(_MOST_CELL_CHARACTERS)
    lines = _RowLines(name, file)
    reader = csv.DictReader(lines, strict=True)
    try:
        columns = list(reader.fieldnames or ())
    except csv.Error as error:
        raise InputError(f"{name}, line 1: is no CSV: {error}") from error
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise InputError(f"{name}: has column {', '.join(twice)} more than once; give each column its own name")
    missing = numbers - set(columns)
    if missing:
        raise InputError(f"{name}: has no column {', '.join(sorted(missing))}; its columns: {', '.join(columns)}")
    while True:
        lines.begin_row()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{name}, line {reader.line_num:,}: is no CSV: {error}") from error
        place, text = f"{name}, line {reader.line_num:,}", json.dumps(row)
        yield Line(place, text, _row(row, numbers))


def _row(row: dict[str, Any], numbers: frozenset[str]) -> Put:
    if None in row or None in row.values():
        return Unreadable({}, why="the row has another number of cells than the head")
    item: dict[str, Any] = {}
    for column, cell in row.items():
        if cell == "":
            continue
        if column not in numbers:
            item[column] = cell
            continue
        try:
            item[column] = Decimal(cell)
        except ArithmeticError:
            return Unreadable({}, why=f"column {column}: got {cell!r}, allowed: a number")
    return Put(item)


class OutputError(HighwaterError):
    """A file that cannot be written."""


class ItemOutput:
    """Writes items as lines `{"Item": {...}}`, with DynamoDB's types, in the format of DynamoDB's exports.

    A file whose name ends in `.gz` or `.zst` is compressed. At each `save` the output is complete, compressed frames
    included, so that a scan that was killed can truncate the file there and resume.

    Args:
        path: The file; `None` for standard output.
        kept_bytes: The bytes of an earlier scan to keep; the rest of the file is cut off. `None` for a new file.

    Raises:
        OutputError: The file is there already, is shorter than *kept_bytes*, or cannot be written.
    """

    def __init__(self, path: Path | None, kept_bytes: int | None) -> None:
        self._path = path
        # writes to the file, compressed or as it is; `None` between two compressed frames
        self._writer: Any = None
        # after a failed write, the last line may be incomplete
        self._failure: OutputError | None = None
        try:
            self._file: IO[bytes] = sys.stdout.buffer if path is None else _open(path, kept_bytes)
        except (OSError, ValueError) as error:
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
        """Flush everything written to disk; return the size of the file in bytes. Raises `OutputError`."""
        if self._failure is not None:
            raise self._failure
        try:
            if self._writer not in (None, self._file):
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
            # any write error was already raised by save()
            with contextlib.suppress(OSError):
                self._file.close()

    def _begin(self) -> Any:
        suffix = "" if self._path is None else self._path.suffix
        if suffix == ".gz":
            return gzip.GzipFile(fileobj=self._file, mode="wb", mtime=0)
        if suffix == ".zst":
            import zstandard

            return zstandard.ZstdCompressor().stream_writer(self._file, closefd=False)
        return self._file

    def _failed(self, error: OSError | ValueError) -> OutputError:
        # a name with a null character is a ValueError
        why = getattr(error, "strerror", None) or error
        self._failure = OutputError(f"{self._path or 'standard output'}: cannot be written: {why}")
        return self._failure


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
    """Return a value as JSON can have it: bytes become base64, as DynamoDB sends them."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple | set) else value
