"""Reads and writes traffic files: CSV with one row per bin, a bin being a fixed length of time."""

from __future__ import annotations

import csv
import io
import math
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from highwater.core import Dimension
from highwater_lab.files import read_file, replace_file
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.traffic.series import MINUTE, MOST_BINS, Stream, Traffic, TrafficError

# A Monday, so that weekly windows apply sensibly to a file without dates
DEFAULT_START: Final = datetime(2026, 11, 2, tzinfo=UTC)
_COLUMN = re.compile(r"(read|write)s(?::([a-zA-Z0-9_.-]{3,255}))?")
# Plain decimals only: float() also accepts texts such as 1_000, which in a CSV file is likely a mistake
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_EXPECTED = (
    "a first column 'minute_index', 'bin_<N>s' or 'timestamp', then 'units', or 'reads', 'writes', 'reads:INDEX', ..."
)


def read_traffic(
    path: Path,
    *,
    units_are: Dimension = Dimension.WRITE,
    start: datetime | None = None,
    scale: float = 1.0,
) -> Traffic:
    """Read a CSV file of units per bin.

    The first column numbers minutes (`minute_index`) or bins of N seconds (`bin_<N>s`) from 0, or gives the time at
    which each bin begins (`timestamp`, ISO 8601, UTC if it has no offset). Every other column has the units requested
    in the bin: `reads`, `writes`, `reads:INDEX`, `writes:INDEX`, or a single column `units`.

    Args:
        path: The file.
        units_are: The dimension of a column `units`.
        start: The time at which the first bin begins; by default the file's, or Monday 2026-11-02 if it has no times.
        scale: All units are multiplied by this.

    Raises:
        TrafficError: The file cannot be read; the message names the line and the problem.
    """
    try:
        text = read_file(path).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a UTF-8 text file"
        raise TrafficError(f"{path}: cannot be read: {reason}; give a CSV file of units per bin") from error
    rows = _rows(path, text)
    header = next(rows, None)
    if header is None:
        raise TrafficError(f"{path}: is empty; expected a header with {_EXPECTED}")
    layout = _parse_header(path, header.cells, units_are)
    counts: dict[Stream, list[float]] = {stream: [] for stream in layout.streams}
    clock = _Clock(path, layout)
    for row in rows:
        if len(row.cells) != len(header.cells):
            raise TrafficError(
                f"{path}, line {row.line}: has {_columns(row)}, but the header has {_columns(header)}; give one value "
                "per column, separated by commas"
            )
        clock.check(row)
        if clock.count > MOST_BINS:
            raise TrafficError(f"{path}, line {row.line}: more than {MOST_BINS:,} bins; give a shorter period of time")
        for stream, cell in zip(layout.streams, row.cells[1:], strict=True):
            counts[stream].append(_parse_units(path, row.line, stream, cell))
    if not next(iter(counts.values())):
        raise TrafficError(f"{path}: has a header but no rows; add one row per bin")
    return Traffic.from_counts(
        path.name.removesuffix(".csv"),
        counts,
        bin_seconds=clock.bin_seconds(),
        start=start or clock.first or DEFAULT_START,
        scale=scale,
    )


def write_traffic(traffic: Traffic, path: Path) -> None:
    """Write traffic as a CSV file from which `read_traffic` reads the same traffic again.

    An existing file is replaced; if writing fails, it stays as it was. Raises `OSError` if writing fails.
    """
    streams = list(traffic.rates)
    seconds = traffic.source_bin_seconds if traffic.counts else traffic.bin_seconds
    counts = traffic.counts or {
        stream: array("d", (rate * seconds // QUANTA_PER_UNIT for rate in rates))
        for stream, rates in traffic.rates.items()
    }
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["timestamp", *(stream.label for stream in streams)])
    for number in range(len(counts[streams[0]])):
        at = traffic.start + timedelta(seconds=number * seconds)
        writer.writerow([at.isoformat().replace("+00:00", "Z"), *(_text(counts[s][number]) for s in streams)])
    replace_file(path, text.getvalue().encode())


def _text(units: float) -> str:
    return str(int(units)) if units == int(units) else repr(units)


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    cells: list[str]


@dataclass(frozen=True, slots=True)
class _Layout:
    """The header's meaning: the length of a bin, `None` if timestamps give it, and each further column's stream."""

    bin_seconds: int | None
    streams: list[Stream]


def _rows(path: Path, text: str) -> Iterator[_Row]:
    reader = csv.reader(text.splitlines())
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield _Row(reader.line_num, [cell.strip() for cell in cells])
    except csv.Error as error:
        raise TrafficError(f"{path}, line {reader.line_num}: is not valid CSV: {error}") from error


def _parse_header(path: Path, header: list[str], units_are: Dimension) -> _Layout:
    where = f"{path}, line 1"
    first, *columns = header
    if first == "minute_index":
        seconds: int | None = MINUTE
    elif match := re.fullmatch(r"bin_(\d{1,6})s", first):
        seconds = int(match[1])
    elif first == "timestamp":
        seconds = None
    else:
        raise TrafficError(f"{where}: first column is {first!r}; expected {_EXPECTED}")
    if not columns:
        raise TrafficError(f"{where}: has no column of units; expected {_EXPECTED}")
    streams = []
    for column in columns:
        if column == "units":
            streams.append(Stream(None, units_are))
        elif match := _COLUMN.fullmatch(column):
            streams.append(Stream(match[2], Dimension(match[1])))
        else:
            raise TrafficError(f"{where}: unknown column {column!r}; expected {_EXPECTED}")
    for number, stream in enumerate(streams):
        if stream in streams[:number]:
            raise TrafficError(
                f"{where}: column {columns[number]!r} gives {stream.label} a second time; remove one of the columns"
            )
    return _Layout(seconds, streams)


def _columns(row: _Row) -> str:
    return f"{len(row.cells)} column{'' if len(row.cells) == 1 else 's'}"


def _parse_units(path: Path, line: int, stream: Stream, cell: str) -> float:
    units = float(cell) if _NUMBER.fullmatch(cell) else math.nan
    if not 0 <= units < float("inf"):
        raise TrafficError(
            f"{path}, line {line}: {stream.label} are {cell!r}; give the units requested in the bin, 0 or more"
        )
    return units


class _Clock:
    """Reads the first column and checks that every bin follows the one before without a gap."""

    def __init__(self, path: Path, layout: _Layout) -> None:
        self._path = path
        self._layout = layout
        self._last: datetime | None = None
        self._step: timedelta | None = None
        self.count = 0
        self.first: datetime | None = None

    def check(self, row: _Row) -> None:
        where = f"{self._path}, line {row.line}"
        if self._layout.bin_seconds is not None:
            if row.cells[0] != str(self.count):
                raise TrafficError(
                    f"{where}: bin number is {row.cells[0]!r}, expected {self.count}; number the bins from 0 without "
                    "gaps"
                )
            self.count += 1
            return
        at = self._parse_instant(where, row.cells[0])
        if self._last is None:
            if at.second or at.microsecond:
                raise TrafficError(f"{where}: begins at {row.cells[0]}; the first bin must begin on a whole minute")
            self.first = at
        else:
            self._check_step(where, at - self._last)
        self._last = at
        self.count += 1

    def _parse_instant(self, where: str, cell: str) -> datetime:
        try:
            at = datetime.fromisoformat(cell)
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            raise TrafficError(f"{where}: timestamp is {cell!r}; write it as 2026-11-02T05:00:00Z") from None

    def _check_step(self, where: str, step: timedelta) -> None:
        seconds = step.total_seconds()
        if seconds <= 0:
            problem = "the same as" if seconds == 0 else f"{-seconds:g} s before"
            raise TrafficError(
                f"{where}: the timestamp is {problem} that of the previous row; sort the rows by time and give "
                "each bin once"
            )
        if seconds != int(seconds):
            raise TrafficError(
                f"{where}: the timestamp is {seconds:g} s after that of the previous row; a bin must be a whole number "
                "of seconds long"
            )
        self._step = self._step or step
        if step != self._step:
            raise TrafficError(
                f"{where}: the timestamp is {seconds:g} s after that of the previous row, but the first two rows are "
                f"{self._step.total_seconds():g} s apart; fill gaps with rows of 0 units"
            )

    def bin_seconds(self) -> int:
        if self._layout.bin_seconds is not None:
            return self._layout.bin_seconds
        return int(self._step.total_seconds()) if self._step else MINUTE
