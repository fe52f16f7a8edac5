"""The text of a traffic file: its bytes, its encoding, its separator, and how times and numbers are written in it."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Final

from highwater_lab.files import MOST_BYTES, decode_text, read_file
from highwater_lab.traffic.series import TrafficError

STANDARD_INPUT: Final = Path("-")
SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs"}
SECOND: Final = 1_000_000  # microseconds, in which times are counted
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# Seconds since 1970 have ten digits from 2001 to 2286, milliseconds thirteen. Eight digits are a date
_SINCE_1970: Final = re.compile(r"\d{9,14}(?:\.\d{1,9})?", re.ASCII)
_FIRST_MILLISECONDS: Final = 10**11
# As CloudWatch's console writes it
_SLASHES: Final = re.compile(r"(\d{4})/(\d{2})/(\d{2})(?=[ T]|$)", re.ASCII)
# Plain decimals only: float() also accepts texts such as 1_000, which in a file is likely a mistake
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_DECIMAL_COMMA: Final = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class DataPlace:
    """Where a file's data are, for messages: the file, and what its rows are called in it."""

    file: str
    row: str = "line"

    def at(self, number: int) -> str:
        """Return the place of one row."""
        return f"{self.file}, {self.row} {number}"


@dataclass(frozen=True, slots=True)
class Row:
    """A row with something in it: its number in the file, from 1, and its cells without blanks around them."""

    number: int
    cells: list[str]


def place_of(path: Path) -> DataPlace:
    """Return the place of a file; `-` is standard input."""
    return DataPlace("standard input" if path == STANDARD_INPUT else str(path))


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file, or of standard input for `-`, unpacked if they are gzip.

    Raises `TrafficError` if they cannot be read, or are more than 512 MiB.
    """
    place = place_of(path)
    try:
        content = _standard_input() if path == STANDARD_INPUT else read_file(path)
        if content.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
                content = packed.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise OSError(27, f"it is larger than {MOST_BYTES // 2**20} MiB")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TrafficError(f"{place.file}: cannot be read: its gzip is broken; pack or copy it again") from error
    except (OSError, ValueError) as error:
        # a path with a null character is a ValueError
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise TrafficError(f"{place.file}: cannot be read: {reason}; give a CSV, JSON or Parquet file") from error
    return content


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise OSError(9, "it is closed")
    return sys.stdin.buffer.read(MOST_BYTES + 1)


def decode(place: DataPlace, content: bytes) -> str:
    """Return the text of bytes in UTF-8 or UTF-16, with or without a byte order mark; raises `TrafficError`."""
    try:
        return decode_text(content)
    except UnicodeDecodeError as error:
        raise TrafficError(
            f"{place.file}: cannot be read: it is neither UTF-8 nor UTF-16 text; give a CSV, JSON or Parquet file"
        ) from error


def read_rows(place: DataPlace, text: str) -> tuple[str, Iterator[Row]]:
    """Return the separator of a CSV text and its rows that are not blank.

    The separator is the one of comma, semicolon and tab that the first line has most of, or that a first line such as
    `sep=;` names, as Excel writes it. Reading a row raises `TrafficError` if it is not CSV.
    """
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    named = re.fullmatch(r"(?i:sep)=([,;\t])", lines[first].rstrip(" \r")) if lines else None
    if named:
        lines[first] = ""
        return named[1], _rows(place, lines, named[1])
    counts = {separator: lines[first].count(separator) if lines else 0 for separator in SEPARATORS}
    separator = max(counts, key=lambda each: counts[each])
    return separator, _rows(place, lines, separator)


def _rows(place: DataPlace, lines: list[str], separator: str) -> Iterator[Row]:
    reader = csv.reader(lines, delimiter=separator)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield Row(reader.line_num, [cell.strip() for cell in cells])
    except csv.Error as error:
        raise TrafficError(f"{place.at(reader.line_num)}: is not valid CSV: {error}") from error


def parse_instant(text: str, zone: tzinfo = UTC) -> int | None:
    """Return a time as microseconds since 1970, or `None` if the text is no time.

    A time is in ISO 8601, with any offset, and in *zone* if it has none; or it is the seconds or milliseconds since
    1970. `2026/11/02` stands for `2026-11-02`.
    """
    if _SINCE_1970.fullmatch(text):
        number = float(text) if "." in text else int(text)
        return round(number * (SECOND if number < _FIRST_MILLISECONDS else 1_000))
    try:
        at = datetime.fromisoformat(_SLASHES.sub(r"\1-\2-\3", text))
        return ((at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC) - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        return None


def instant(microseconds: int) -> datetime:
    """Return the time that is so long after 1970, in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)


def show_instant(microseconds: int) -> str:
    """Return a time as messages and files have it, such as `2026-11-02T05:00:00Z`."""
    return instant(microseconds).isoformat().replace("+00:00", "Z")


class Numbers:
    """Reads the numbers of one file; where cells are separated by semicolons, they may have a decimal comma.

    A file must not have both decimal commas and points, as a point may then separate thousands.
    """

    def __init__(self, place: DataPlace, separator: str = ",") -> None:
        self._place = place
        self._may_have_commas = separator == ";"
        self._first: tuple[str, int] | None = None

    def parse(self, text: str, row: int, what: str) -> float:
        """Return the units in a cell; *what* they are is for the message. Raises `TrafficError` if it has none."""
        number = math.nan
        if _NUMBER.fullmatch(text):
            number = float(text)
        elif self._may_have_commas and _DECIMAL_COMMA.fullmatch(text):
            number = float(text.replace(",", "."))
        if not 0 <= number < math.inf:
            raise TrafficError(
                f"{self._place.at(row)}: {what} are {text!r}; give the units requested in the bin, 0 or more"
            )
        if self._may_have_commas and ("," in text or "." in text):
            self._check_sign("," if "," in text else ".", text, row, what)
        return number

    def _check_sign(self, sign: str, text: str, row: int, what: str) -> None:
        self._first = self._first or (sign, row)
        if self._first[0] != sign:
            raise TrafficError(
                f"{self._place.at(row)}: {what} are {text!r}, but {self._place.row} {self._first[1]} has a decimal "
                f"{self._first[0]!r}; write all numbers in one way, without separators of thousands"
            )
