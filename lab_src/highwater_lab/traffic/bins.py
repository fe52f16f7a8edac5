"""Lays the rows of a traffic file on bins: in order, each time once, all bins of one length, with known gaps."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Final

from highwater_lab.traffic.series import DEFAULT_START, MINUTE, MOST_BINS, Stream, Traffic, TrafficError
from highwater_lab.traffic.text import SECOND, DataPlace, instant, show_instant


@dataclass(slots=True)
class Rows:
    """The rows of one table in the order of the file.

    Attributes:
        times: When each row's bin begins, in microseconds since 1970, or since bin 0 if bins are counted.
        numbers: The number of each row in the file, for messages.
        units: The units of each row, by stream.
    """

    times: array[int] = field(default_factory=lambda: array("q"))
    numbers: array[int] = field(default_factory=lambda: array("q"))
    units: dict[Stream, array[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Laid:
    """One table's bins: none is missing, and all have one length.

    Attributes:
        start: When the first bin begins; `None` if the file only counts its bins.
        bin_seconds: The length of a bin.
        units: The units of each bin, by stream.
        gaps: The bins that the file does not have and whose units are not known, as in `Traffic`.
        notes: As in `Traffic`.
    """

    start: datetime | None
    bin_seconds: int
    units: Mapping[Stream, array[float]]
    gaps: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = ()

    def with_notes(self, *notes: str) -> Laid:
        """Return the same bins with these notes before the others."""
        return replace(self, notes=(*notes, *self.notes))

    def traffic(self, name: str, *, start: datetime | None = None, scale: float = 1.0) -> Traffic:
        """Return the bins as traffic; raises `TrafficError` as `Traffic.from_counts` does."""
        made = Traffic.from_counts(
            name,
            self.units,
            bin_seconds=self.bin_seconds,
            start=start or self.start or DEFAULT_START,
            scale=scale,
        )
        return replace(made, gaps=self.gaps, notes=self.notes)


# what the note about missing bins says of them
_UNKNOWN: Final = (
    "no rows for {missing} of {bins} bins{table}, the first at {first}: they are unknown, and simulated as 0 units"
)
_ZERO: Final = (
    "no datapoints for {missing} of {bins} periods{table}, the first at {first}: CloudWatch writes none of 0 units"
)


def lay(
    place: DataPlace,
    rows: Rows,
    *,
    table: str | None = None,
    bin_seconds: int | None = None,
    is_counted: bool = False,
    are_gaps_zero: bool = False,
) -> Laid:
    """Lay rows on bins.

    Rows may be in any order. Rows of the same time are one if their units are the same. A bin that is missing between
    the first and the last has 0 units: known ones if *are_gaps_zero*, otherwise a gap.

    Args:
        place: The file, for messages.
        rows: At least one row.
        table: The table, if the file has several.
        bin_seconds: The length of a bin; by default the most common distance between two rows, or a minute for one.
        is_counted: Whether times are counted from bin 0 rather than since 1970.
        are_gaps_zero: Whether missing bins are known to be 0.

    Raises:
        TrafficError: Rows of the same time differ, or a distance is no multiple of the length of a bin.
    """
    notes = []
    rows, repeated = _in_order(place, rows)
    if repeated:
        some = f"1 row{_of(table)} repeats" if repeated == 1 else f"{repeated:,} rows{_of(table)} repeat"
        notes.append(f"{some} the time and the units of another: each time is counted once")
    first, last = rows.times[0], rows.times[-1]
    if is_counted and first:
        number = first // ((bin_seconds or 1) * SECOND)
        raise TrafficError(f"{place.at(rows.numbers[0])}: bin number is '{number}', expected 0; number the bins from 0")
    if not is_counted and first % (MINUTE * SECOND):
        raise TrafficError(
            f"{place.at(rows.numbers[0])}: begins at {show_instant(first)}; the first bin must begin on a whole minute"
        )
    step = _step(place, rows) if bin_seconds is None else bin_seconds * SECOND
    bins = (last - first) // step + 1
    if bins > MOST_BINS:
        raise TrafficError(f"{place.file}: more than {MOST_BINS:,} bins; give a shorter period of time")
    units, gaps = _filled(place, rows, step, bins)
    missing = sum(length for _, length in gaps)
    if missing:
        begin = gaps[0][0] * step
        wording = _ZERO if are_gaps_zero else _UNKNOWN
        shown = f"bin {begin // step}" if is_counted else show_instant(first + begin)
        notes.append(wording.format(missing=f"{missing:,}", bins=f"{bins:,}", table=_of(table), first=shown))
    return Laid(
        start=None if is_counted else instant(first),
        bin_seconds=step // SECOND,
        units=units,
        gaps=() if are_gaps_zero else gaps,
        notes=tuple(f"{place.file}: {note}" for note in notes),
    )


def _of(table: str | None) -> str:
    return "" if table is None else f" of table {table}"


def _in_order(place: DataPlace, rows: Rows) -> tuple[Rows, int]:
    """Return the rows by time, each time once, and how many rows were repeated."""
    times = rows.times
    if all(times[number] < times[number + 1] for number in range(len(times) - 1)):
        return rows, 0
    kept: list[int] = []
    repeated = 0
    for row in sorted(range(len(times)), key=lambda row: (times[row], rows.numbers[row])):
        if not kept or times[kept[-1]] != times[row]:
            kept.append(row)
            continue
        for stream, units in rows.units.items():
            if units[kept[-1]] != units[row]:
                raise TrafficError(
                    f"{place.at(rows.numbers[row])}: {stream.label} are {units[row]:g}, but {place.row} "
                    f"{rows.numbers[kept[-1]]} has the same time and {units[kept[-1]]:g}; give each bin once, and "
                    "times with their offset from UTC"
                )
        repeated += 1
    return (
        Rows(
            array("q", (times[row] for row in kept)),
            array("q", (rows.numbers[row] for row in kept)),
            {stream: array("d", (units[row] for row in kept)) for stream, units in rows.units.items()},
        ),
        repeated,
    )


def common_step(tables: Iterable[Rows]) -> int | None:
    """Return the length of a bin that the tables of a file have in common, in seconds: see `_most_common`.

    `None` if no table has two rows, or if it would be no whole number of seconds.
    """
    step = _most_common(sorted(set(rows.times)) for rows in tables)
    return None if step is None or step % SECOND else step // SECOND


def _most_common(tables: Iterable[Sequence[int]]) -> int | None:
    """Return the most common distance between two rows of a table, the shortest of several; `None` if there is none.

    The shortest of all would be that of one wrong time.
    """
    counts = Counter(later - earlier for times in tables for earlier, later in pairwise(times))
    return min(counts, key=lambda distance: (-counts[distance], distance), default=None)


def _step(place: DataPlace, rows: Rows) -> int:
    """Return the length of a bin of one table, in microseconds: a minute if it has one row."""
    times = rows.times
    step = _most_common([times])
    if step is None:
        return MINUTE * SECOND
    if step % SECOND:
        at = next(row for row in range(1, len(times)) if times[row] - times[row - 1] == step)
        raise TrafficError(
            f"{place.at(rows.numbers[at])}: the time is {step / SECOND:g} s after that of {place.row} "
            f"{rows.numbers[at - 1]}; a bin must be a whole number of seconds long"
        )
    return step


def _filled(
    place: DataPlace, rows: Rows, step: int, bins: int
) -> tuple[dict[Stream, array[float]], tuple[tuple[int, int], ...]]:
    """Return the units of all bins, with 0 in those that are missing, and the missing ones."""
    first, times = rows.times[0], rows.times
    gaps: list[tuple[int, int]] = []
    expected = 0
    for row, time in enumerate(times):
        position, rest = divmod(time - first, step)
        if rest:
            raise TrafficError(
                f"{place.at(rows.numbers[row])}: the time is {(time - times[row - 1]) / SECOND:g} s after that of "
                f"{place.row} {rows.numbers[row - 1]}, but bins are {step // SECOND} s long; give bins of one length"
            )
        if position > expected:
            gaps.append((expected, position - expected))
        expected = position + 1
    if not gaps:
        return rows.units, ()
    filled = {}
    for stream, units in rows.units.items():
        whole = array("d", bytes(8 * bins))
        for row, time in enumerate(times):
            whole[(time - first) // step] = units[row]
        filled[stream] = whole
    return filled, tuple(gaps)
