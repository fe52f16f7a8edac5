"""Traffic files: CSV with one row per bin."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from highwater.core import Dimension
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.traffic.errors import TrafficError
from highwater_lab.traffic.series import MINUTE, Stream, Traffic

# A Monday, so that windows of the week have a meaning where a file has no dates
DEFAULT_START: Final = datetime(2026, 11, 2, tzinfo=UTC)
_COLUMN = re.compile(r"(read|write)s(?::([a-zA-Z0-9_.-]{3,255}))?")
_EXPECTED = "'minute_index', 'bin_<N>s' or 'timestamp' first, then 'units', or 'reads', 'writes', 'reads:INDEX', ..."


def read_traffic(
    path: Path,
    *,
    units_are: Dimension = Dimension.WRITE,
    start: datetime | None = None,
    scale: float = 1.0,
) -> Traffic:
    """Read a CSV file of units per bin.

    The first column counts minutes (`minute_index`), bins of N seconds (`bin_<N>s`) or gives each bin's beginning
    (`timestamp`, ISO 8601, UTC unless it says otherwise). The others hold the units asked for in the bin: `reads`,
    `writes`, `reads:INDEX`, `writes:INDEX`, or a single `units`, which are writes unless *units_are* says reads.
    *start* moves the first bin to another time; without it, files that have no times start on Monday 2026-11-02.
    Raises `TrafficError` with the line and what is wrong there.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as unreadable:
        reason = unreadable.strerror if isinstance(unreadable, OSError) else "is no text file"
        raise TrafficError(f"{path}: cannot be read: {reason}; give a CSV file of units per bin") from unreadable
    rows = _rows(path, text)
    header = next(rows, None)
    if header is None:
        raise TrafficError(f"{path}: is empty; expected a header of {_EXPECTED}")
    layout = _layout(path, header.cells, units_are)
    counts: dict[Stream, list[float]] = {stream: [] for stream in layout.streams}
    clock = _Clock(path, layout)
    for row in rows:
        if len(row.cells) != len(header.cells):
            raise TrafficError(
                f"{path}, line {row.line}: has {len(row.cells)} columns, the header has {len(header.cells)}"
            )
        clock.check(row)
        for stream, cell in zip(layout.streams, row.cells[1:], strict=True):
            counts[stream].append(_units(path, row.line, stream, cell))
    if not next(iter(counts.values())):
        raise TrafficError(f"{path}: has a header and no rows")
    return Traffic.from_counts(
        path.stem,
        counts,
        bin_seconds=clock.bin_seconds(),
        start=start or clock.first or DEFAULT_START,
        scale=scale,
    )


def write_traffic(traffic: Traffic, path: Path) -> None:
    """Write traffic so that `read_traffic` reads the same again."""
    streams = list(traffic.rates)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["timestamp", *(stream.label for stream in streams)])
        for number in range(traffic.minutes * MINUTE // traffic.bin_seconds):
            at = traffic.start + timedelta(seconds=number * traffic.bin_seconds)
            units = [traffic.rates[s][number] * traffic.bin_seconds // QUANTA_PER_UNIT for s in streams]
            writer.writerow([at.isoformat().replace("+00:00", "Z"), *units])


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    cells: list[str]


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the header says: the bin's length where it says so, and what each further column holds."""

    bin_seconds: int | None
    streams: list[Stream]


def _rows(path: Path, text: str) -> Iterator[_Row]:
    reader = csv.reader(text.splitlines())
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield _Row(reader.line_num, [cell.strip() for cell in cells])
    except csv.Error as broken:
        raise TrafficError(f"{path}, line {reader.line_num}: is no CSV: {broken}") from broken


def _layout(path: Path, header: list[str], units_are: Dimension) -> _Layout:
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
    if len(set(streams)) < len(streams):
        raise TrafficError(f"{where}: names a column twice")
    return _Layout(seconds, streams)


def _units(path: Path, line: int, stream: Stream, cell: str) -> float:
    try:
        units = float(cell)
    except ValueError:
        units = float("nan")
    if not 0 <= units < float("inf"):
        raise TrafficError(
            f"{path}, line {line}: {stream.label} are {cell!r}; allowed: a number of units from 0, per bin"
        )
    return units


class _Clock:
    """Checks that bins follow one another without gaps."""

    def __init__(self, path: Path, layout: _Layout) -> None:
        self._path = path
        self._layout = layout
        self._count = 0
        self._last: datetime | None = None
        self._step: timedelta | None = None
        self.first: datetime | None = None

    def check(self, row: _Row) -> None:
        where = f"{self._path}, line {row.line}"
        if self._layout.bin_seconds is not None:
            if row.cells[0] != str(self._count):
                raise TrafficError(f"{where}: bin is {row.cells[0]!r}, expected {self._count}: bins count from 0 on")
            self._count += 1
            return
        try:
            at = datetime.fromisoformat(row.cells[0])
        except ValueError:
            raise TrafficError(f"{where}: timestamp is {row.cells[0]!r}; write it as 2026-11-02T05:00:00Z") from None
        at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
        if self._last is None:
            self.first = at
        else:
            step = at - self._last
            self._step = self._step or step
            if step != self._step or step <= timedelta(0):
                raise TrafficError(
                    f"{where}: comes {step.total_seconds():g} s after the line before, the first two are "
                    f"{self._step.total_seconds():g} s apart; fill gaps with 0"
                )
        self._last = at
        self._count += 1

    def bin_seconds(self) -> int:
        if self._layout.bin_seconds is not None:
            return self._layout.bin_seconds
        return int(self._step.total_seconds()) if self._step else MINUTE
