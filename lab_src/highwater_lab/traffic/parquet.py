"""Reads Parquet files of traffic, which have the columns of CSV files; needs pyarrow, the extra `parquet`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any, Final

from highwater.core import Dimension
from highwater_lab.traffic.bins import Laid
from highwater_lab.traffic.csv_files import read_columns
from highwater_lab.traffic.series import TrafficError
from highwater_lab.traffic.text import DataPlace, Row

SIGNATURE: Final = b"PAR1"
_ROWS_AT_ONCE: Final = 65_536


def read_parquet(place: DataPlace, content: bytes, units_are: Dimension) -> dict[str | None, Laid]:
    """Read the bytes of a Parquet file: the bins by table, `None` if it has no column of tables.

    Columns are those of `read_columns`. Times may be timestamps, in UTC if they have no zone, or whatever CSV has.
    Raises `TrafficError`, also if pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as missing:
        raise TrafficError(
            f"{place.file}: is Parquet, which needs pyarrow; install it with: pip install pyarrow"
        ) from missing
    place = DataPlace(place.file, "row")
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(content))
        header = Row(1, [str(name) for name in file.schema_arrow.names])
        if not header.cells:
            raise TrafficError(f"{place.file}: has no columns; give a Parquet file with the columns of a CSV file")
        return read_columns(place, header, _rows(pyarrow, file), units_are)
    except (pyarrow.ArrowException, OSError, OverflowError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise TrafficError(f"{place.file}: cannot be read as Parquet: {reason}; write the file again") from error


def _rows(pyarrow: Any, file: Any) -> Iterator[Row]:
    number = 0
    for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE):
        columns = []
        for column in batch.columns:
            if pyarrow.types.is_timestamp(column.type):
                # nanoseconds would become values of pandas
                column = column.cast(pyarrow.timestamp("us", tz=column.type.tz), safe=False)
            columns.append([_text(value) for value in column.to_pylist()])
        for cells in zip(*columns, strict=True):
            number += 1
            yield Row(number, list(cells))


def _text(value: object) -> str:
    """Return a value as the text that a CSV file would have."""
    if value is None:
        return ""
    if isinstance(value, date):
        # a datetime is a date
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value)) if abs(value) < 1e15 else repr(value)
    return str(value).strip()
