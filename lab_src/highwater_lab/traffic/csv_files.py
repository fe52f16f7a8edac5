"""Reads and writes traffic in columns: CSV with one row per bin, a bin being a fixed length of time.

Other files of columns, such as Parquet, give the same header and cells to `read_columns`.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from highwater.core import Dimension
from highwater.core.errors import did_you_mean
from highwater_lab.files import replace_file
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.traffic.bins import Laid, Rows, common_step, lay
from highwater_lab.traffic.series import MINUTE, MOST_BINS, Stream, Traffic, TrafficError
from highwater_lab.traffic.text import SECOND, SEPARATORS, DataPlace, Numbers, Row, parse_instant, read_rows

TABLE_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{3,255}", re.ASCII)
_COLUMN: Final = re.compile(
    r"(?:(?P<plain>read|write)s|consumed(?P<metric>read|write)capacityunits)(?:\s*:\s*(?P<index>[a-z0-9_.-]{3,255}))?",
    re.ASCII | re.IGNORECASE,
)
_EXPECTED: Final = (
    "a first column 'minute_index', 'bin_<N>s' or 'timestamp', then 'units', or 'reads', 'writes', 'reads:INDEX', ..."
)
_MOST_BIN_NUMBER: Final = re.compile(r"\d{1,9}", re.ASCII)


def read_csv(place: DataPlace, text: str, units_are: Dimension) -> dict[str | None, Laid]:
    """Read a CSV text: the bins by table, `None` if it has no column of tables.

    See `read_columns`. Raises `TrafficError`.
    """
    separator, rows = read_rows(place, text)
    header = next(rows, None)
    if header is None:
        raise TrafficError(f"{place.file}: is empty; expected a header with {_EXPECTED}")
    return read_columns(place, header, rows, units_are, separator)


def read_columns(
    place: DataPlace, header: Row, rows: Iterable[Row], units_are: Dimension, separator: str = ","
) -> dict[str | None, Laid]:
    """Read a header and rows: the bins by table, `None` if there is no column of tables.

    One column numbers minutes (`minute_index`) or bins of N seconds (`bin_<N>s`) from 0, or gives the time at which
    each bin begins (`timestamp`, see `parse_instant`). `reads`, `writes`, `reads:INDEX` and `writes:INDEX`, or a single
    column `units`, have the units requested in the bin. `table` has the table. Capitals, blanks and underscores in
    names do not matter, other than in those of indexes. Other columns are ignored, and the notes name them.

    Raises `TrafficError` for a header or a row that cannot be read.
    """
    layout = _parse_header(place, header, units_are)
    numbers = Numbers(place, separator)
    tables: dict[str | None, Rows] = {}
    for row in rows:
        if len(row.cells) != len(header.cells):
            raise TrafficError(
                f"{place.at(row.number)}: has {_columns(row)}, but the header has {_columns(header)}; give one value "
                f"per column, separated by {SEPARATORS[separator]}"
            )
        table = None if layout.table is None else _parse_table(place, row, row.cells[layout.table])
        into = tables.get(table)
        if into is None:
            into = tables[table] = Rows(units={stream: array("d") for _, stream in layout.streams})
        into.times.append(_parse_time(place, layout, row))
        if len(into.times) > MOST_BINS:
            raise TrafficError(f"{place.at(row.number)}: more than {MOST_BINS:,} bins; give a shorter period of time")
        into.numbers.append(row.number)
        for column, stream in layout.streams:
            into.units[stream].append(numbers.parse(row.cells[column], row.number, stream.label))
    if not tables:
        return {None: Laid.without_bins(f"{place.file}: has a header but no rows; add one row per bin")}
    seconds = layout.bin_seconds or common_step(tables.values())
    laid = {
        table: lay(
            place,
            found,
            table=table,
            bin_seconds=seconds,
            is_counted=layout.bin_seconds is not None,
        )
        for table, found in tables.items()
    }
    if not layout.ignored:
        return laid
    return {table: found.with_notes(_ignored(place, layout)) for table, found in laid.items()}


def write_traffic(traffic: Traffic, path: Path) -> None:
    """Write traffic as a CSV file from which `read_traffic` reads the same traffic again.

    An existing file is replaced; if writing fails, it stays as it was. Gaps have no rows, and traffic without a
    minute has a header alone. Raises `OSError` if writing fails.
    """
    streams = list(traffic.rates) or [Stream(None, dimension) for dimension in Dimension]
    seconds = traffic.source_bin_seconds if traffic.counts else traffic.bin_seconds
    counts = traffic.counts or {
        stream: array("d", (rate * seconds // QUANTA_PER_UNIT for rate in rates))
        for stream, rates in traffic.rates.items()
    }
    # a source's bin has several rows only where noise was drawn within minutes
    rows = traffic.source_bin_seconds // seconds
    missing = {number for first, length in traffic.gaps for number in range(first * rows, (first + length) * rows)}
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["timestamp", *(stream.label for stream in streams)])
    for number in range(len(counts.get(streams[0], ()))):
        if number in missing:
            continue
        at = traffic.start + timedelta(seconds=number * seconds)
        writer.writerow([at.isoformat().replace("+00:00", "Z"), *(_text(counts[s][number]) for s in streams)])
    replace_file(path, text.getvalue().encode())


def _text(units: float) -> str:
    return str(int(units)) if units == int(units) else repr(units)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The header's meaning.

    Attributes:
        time: The number of the column with times or bins.
        bin_seconds: The length of a bin, `None` if there are timestamps.
        streams: The columns with units, and what each is for.
        table: The column with tables, if there is one.
        ignored: The names of all other columns.
    """

    time: int
    bin_seconds: int | None
    streams: list[tuple[int, Stream]]
    table: int | None
    ignored: list[str]


def is_header(cells: Sequence[str]) -> bool:
    """Whether a row has the name of a column of times or bins."""
    return any(_parse_clock(cell) is not None for cell in cells)


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()


def _parse_clock(name: str) -> int | None:
    """The seconds of a bin of a column's name, 0 for timestamps; `None` if it is another column."""
    plain = _plain(name)
    if plain in ("timestamp", "minuteindex"):
        return 0 if plain == "timestamp" else MINUTE
    match = re.fullmatch(r"bin(\d{1,6})s", plain, re.ASCII)
    return int(match[1]) if match and int(match[1]) else None


def _parse_header(place: DataPlace, header: Row, units_are: Dimension) -> _Layout:
    where = place.at(header.number)
    clocks = [column for column, name in enumerate(header.cells) if _parse_clock(name) is not None]
    if not clocks:
        raise TrafficError(f"{where}: first column is {header.cells[0]!r}; expected {_EXPECTED}")
    streams: list[tuple[int, Stream]] = []
    table, ignored = None, []
    for column, name in enumerate(header.cells):
        if column == clocks[0]:
            continue
        match = _COLUMN.fullmatch(name)
        if _plain(name) == "units":
            stream = Stream(None, units_are)
        elif match:
            stream = Stream(match["index"], Dimension((match["plain"] or match["metric"]).lower()))
        elif _plain(name) in ("table", "tablename") and table is None:
            table = column
            continue
        else:
            ignored.append(name)
            continue
        if any(stream == other for _, other in streams):
            raise TrafficError(
                f"{where}: column {name!r} gives {stream.label} a second time; remove one of the columns"
            )
        streams.append((column, stream))
    if not streams and ignored:
        raise TrafficError(f"{where}: unknown column {ignored[0]!r}; expected {_EXPECTED}")
    if not streams:
        raise TrafficError(f"{where}: has no column of units; expected {_EXPECTED}")
    return _Layout(clocks[0], _parse_clock(header.cells[clocks[0]]) or None, streams, table, ignored)


def _ignored(place: DataPlace, layout: _Layout) -> str:
    names = ", ".join(repr(name) for name in layout.ignored)
    known = ("reads", "writes", "units", "table")
    likely = next((clause for name in layout.ignored if (clause := did_you_mean(name.lower(), known))), "")
    return f"{place.file}: ignored columns: {names}{likely}"


def _columns(row: Row) -> str:
    return f"{len(row.cells)} column{'' if len(row.cells) == 1 else 's'}"


def _parse_table(place: DataPlace, row: Row, cell: str) -> str:
    if not TABLE_NAME.fullmatch(cell):
        raise TrafficError(
            f"{place.at(row.number)}: table is {cell!r}; give a table's name: 3 to 255 letters, digits, '_', '.' or '-'"
        )
    return cell


def _parse_time(place: DataPlace, layout: _Layout, row: Row) -> int:
    cell = row.cells[layout.time]
    if layout.bin_seconds is not None:
        if not _MOST_BIN_NUMBER.fullmatch(cell):
            raise TrafficError(f"{place.at(row.number)}: bin number is {cell!r}; number the bins from 0")
        return int(cell) * layout.bin_seconds * SECOND
    at = parse_instant(cell)
    if at is None:
        raise TrafficError(
            f"{place.at(row.number)}: timestamp is {cell!r}; write it as 2026-11-02T05:00:00Z, or as the seconds or "
            "milliseconds since 1970"
        )
    return at
