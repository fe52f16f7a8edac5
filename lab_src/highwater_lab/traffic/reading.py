"""Reads traffic from a file of any form, or a folder of them: one table's, or that of every table in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from highwater.core import Dimension
from highwater.core.errors import did_you_mean
from highwater_lab.traffic.bins import Laid
from highwater_lab.traffic.csv_files import read_csv
from highwater_lab.traffic.exports import is_console_export, read_console_export, read_json, without_zone
from highwater_lab.traffic.parquet import SIGNATURE, read_parquet
from highwater_lab.traffic.series import Traffic, TrafficError
from highwater_lab.traffic.text import STANDARD_INPUT, decode, place_of, read_bytes, read_rows

_SUFFIXES: Final = re.compile(r"\.(csv|tsv|txt|json|parquet)(\.gz)?$", re.IGNORECASE)
_MOST_NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class FileTraffic:
    """The traffic of one table in a file.

    Attributes:
        traffic: The traffic; without a minute if the file has no datapoint of the table.
        file: The file, as messages name it.
        is_named: Whether the file's content names the table. Otherwise the table has the name of the file.
    """

    traffic: Traffic
    file: str
    is_named: bool


def read_traffic(
    path: Path,
    *,
    table: str | None = None,
    likely_table: str | None = None,
    units_are: Dimension = Dimension.WRITE,
    start: datetime | None = None,
    scale: float = 1.0,
) -> Traffic:
    """Read the traffic of one table from a file: CSV, CloudWatch's exports, or Parquet; docs/traffic.md has the forms.

    Args:
        path: The file, or a folder of files; `-` is standard input. It may be packed with gzip.
        table: The table to read, if there are several; also the only one has to have this name.
        likely_table: The table to read if there are several and one has this name, or the last part of it between
            slashes, in capitals or not.
        units_are: The dimension of a column `units`.
        start: The time at which the first bin begins; by default the file's, or Monday 2026-11-02 if it has no times.
        scale: All units are multiplied by this.

    Raises:
        TrafficError: The file cannot be read, or has no such table; the message names the line and the problem.
    """
    found = _read(path, units_are)
    name = _chosen(place_of(path).file, list(found), table, likely_table)
    if found[name].laid.nothing:
        raise TrafficError(found[name].laid.nothing)
    return found[name].laid.traffic(name, start=start, scale=scale)


def read_traffic_by_table(
    path: Path, *, units_are: Dimension = Dimension.WRITE, scale: float = 1.0
) -> dict[str, Traffic]:
    """Read the traffic of every table in a file or in the files of a folder, by the tables' names, sorted.

    A table's name is in the file: in a column `table`, or in CloudWatch's labels or dimensions. Otherwise it is the
    name of the file. A table of which the files have no datapoint has traffic without a minute.
    Arguments are those of `read_traffic`.

    Raises:
        TrafficError: A file cannot be read, two files have the same table, or a folder has no file of traffic.
    """
    found = _read(path, units_are)
    return {name: found[name].laid.traffic(name, scale=scale) for name in sorted(found)}


def read_files(path: Path, *, units_are: Dimension = Dimension.WRITE) -> dict[str, FileTraffic]:
    """Read the traffic of every table, as `read_traffic_by_table`, with the files that have it."""
    return {
        name: FileTraffic(each.laid.traffic(name), place_of(each.file).file, each.is_named)
        for name, each in sorted(_read(path, units_are).items())
    }


@dataclass(frozen=True, slots=True)
class _Read:
    """One table's bins, the file that has them, and whether its content names the table."""

    laid: Laid
    file: Path
    is_named: bool


def _read(path: Path, units_are: Dimension) -> dict[str, _Read]:
    if path == STANDARD_INPUT or not os.path.isdir(path):  # noqa: PTH112 - it raises for no path
        return _read_file(path, units_are)
    try:
        # the Finder's files of attributes begin with ._
        inside = sorted(file for file in path.iterdir() if not file.name.startswith("._"))
    except OSError as error:
        raise TrafficError(f"{path}: cannot be read: {error.strerror}; give a folder of files of traffic") from error
    files = [file for file in inside if _SUFFIXES.search(file.name) and file.is_file()]
    if not files:
        raise TrafficError(
            f"{path}: has no file of traffic; give a folder with a .csv, .json or .parquet file per table"
        )
    tables: dict[str, _Read] = {}
    for file in files:
        for name, read in _read_file(file, units_are).items():
            if name in tables:
                raise TrafficError(f"{file}: has table {name!r}, which {tables[name].file} has too; keep one of them")
            tables[name] = read
    return tables


def _read_file(path: Path, units_are: Dimension) -> dict[str, _Read]:
    """Return the tables of one file; the table that the file does not name is named after it."""
    place, content = place_of(path), read_bytes(path)
    name = "stdin" if path == STANDARD_INPUT else _SUFFIXES.sub("", path.name) or path.name
    if content.startswith(SIGNATURE):
        return _named(path, name, read_parquet(place, content, units_are))
    text = decode(place, content)
    if text.lstrip()[:1] in ("{", "["):
        return _named(path, name, read_json(place, text))
    _, rows = read_rows(place, text)
    first = next(rows, None)
    if first is not None and is_console_export(first.cells):
        return _named(path, without_zone(name) or name, read_console_export(place, text))
    return _named(path, name, read_csv(place, text, units_are))


def _named(path: Path, name: str, tables: Mapping[str | None, Laid]) -> dict[str, _Read]:
    if None in tables and name in tables:
        raise TrafficError(f"{path}: some of its metrics name table {name!r} and some no table; name the table in all")
    return {name if table is None else table: _Read(laid, path, table is not None) for table, laid in tables.items()}


def _chosen(file: str, names: list[str], table: str | None, likely: str | None) -> str:
    if table is not None:
        if table in names:
            return table
        raise TrafficError(
            f"{file}: has no traffic of table {table!r}; it has {_list(names)}{did_you_mean(table, names)}"
        )
    if len(names) == 1:
        return names[0]
    if likely is not None:
        wanted = likely.rpartition("/")[2].lower()
        similar = [name for name in names if name.lower() == wanted]
        if likely in names or len(similar) == 1:
            return likely if likely in names else similar[0]
    raise which_table(file, names)


def is_traffic_file(name: str) -> bool:
    """Return whether a file ends as files of traffic do."""
    return _SUFFIXES.search(name) is not None


def which_table(file: str, names: Iterable[str]) -> TrafficError:
    """Return the error of a file with these tables, of which the one to read is not known."""
    every = list(names)
    if len(every) == 1:
        return TrafficError(
            f"{file}: has traffic of table {every[0]} alone, which is another; if it is meant, give --traffic-table "
            f"{every[0]}"
        )
    return TrafficError(
        f"{file}: has traffic of {len(every)} tables, {_list(every)}; choose one with --traffic-table NAME"
    )


def _list(names: Iterable[str]) -> str:
    every = sorted(names)
    return ", ".join(every[:_MOST_NAMED]) + (", ..." if len(every) > _MOST_NAMED else "")
