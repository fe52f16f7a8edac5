"""Lays the rows of a traffic file on bins: in order, each time once, all bins of one length, with known gaps."""

from __future__ import annotations

import math
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
        units: The units of each row, by stream; not a number where they are not known, as where CloudWatch has a
            datapoint of reads alone.
    """

    times: array[int] = field(default_factory=lambda: array("q"))
    numbers: array[int] = field(default_factory=lambda: array("q"))
    units: dict[Stream, array[float]] = field(default_factory=dict)


def joined(
    consumed: Mapping[Stream, Mapping[int, float]],
    throttled: Mapping[Stream, Mapping[int, float]],
    numbers: Mapping[int, int] | None = None,
) -> Rows:
    """Return one row for each time that CloudWatch has a datapoint of, with the units of each stream.

    These are the consumed units, and one for each throttle event, as CloudWatch does not say its size. Of throttle
    events CloudWatch has no zeros; a time without consumption is not known. *numbers* are the rows' numbers by time.
    """
    times = sorted({time for points in (*consumed.values(), *throttled.values()) for time in points})
    rows = Rows(array("q", times), array("q", ((numbers or {}).get(time, 0) for time in times)))
    for stream in dict.fromkeys((*consumed, *throttled)):
        # without the metric of consumption there are throttle events alone
        points, default = consumed.get(stream), 0.0 if stream not in consumed else math.nan
        events = throttled.get(stream, {})
        rows.units[stream] = array("d", ((points or {}).get(time, default) + events.get(time, 0.0) for time in times))
    return rows


@dataclass(frozen=True, slots=True)
class Laid:
    """One table's bins: none is missing, and all have one length.

    Attributes:
        start: When the first bin begins; `None` if the file only counts its bins.
        bin_seconds: The length of a bin.
        units: The units of each bin, by stream.
        gaps: The bins that the file does not have and whose units are not known, as in `Traffic`.
        notes: As in `Traffic`.
        nothing: Why it has no bin at all; empty if it has.
    """

    start: datetime | None
    bin_seconds: int
    units: Mapping[Stream, array[float]]
    gaps: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = ()
    nothing: str = ""

    @classmethod
    def without_bins(cls, why: str) -> Laid:
        """Return the bins of a table of which nothing is known, and *why*, a message."""
        return cls(start=None, bin_seconds=MINUTE, units={}, nothing=why)

    def with_notes(self, *notes: str) -> Laid:
        """Return the same bins with these notes before the others."""
        return replace(self, notes=(*notes, *self.notes))

    def traffic(self, name: str, *, start: datetime | None = None, scale: float = 1.0) -> Traffic:
        """Return the bins as traffic, without a minute if there are none; raises as `Traffic.from_counts` does."""
        if self.nothing:
            return Traffic.unknown(name, self.nothing)
        made = Traffic.from_counts(
            name,
            self.units,
            bin_seconds=self.bin_seconds,
            start=start or self.start or DEFAULT_START,
            scale=scale,
        )
        return replace(made, gaps=self.gaps, notes=self.notes)


# CloudWatch publishes zeros, and now and then misses one or a few: a minute without a datapoint is unknown, never zero
# (recorded on AWS, 2026-09: one of ten idle minutes had none 18 minutes later, and several came 310 s late)
_LONGEST_FILLED: Final = 5
_HOUR: Final = 3_600
# of so many bins one may be missing without a word, unless it is in the busiest hour
_SILENT: Final = 100
_MISSING: Final = (
    "no {row}s for {missing} of {bins} bins{table}, the first at {first}{busiest}: they are unknown, and "
    "simulated {how}"
)
_BETWEEN: Final = "as between their neighbours"
_NOTHING: Final = "as 0 units where more than 5 are missing in a row"


def lay(
    place: DataPlace,
    rows: Rows,
    *,
    table: str | None = None,
    bin_seconds: int | None = None,
    is_counted: bool = False,
) -> Laid:
    """Lay rows on bins.

    Rows may be in any order. Rows of the same time are one if their units are the same. The units of a bin that is
    missing are not known. Up to five in a row are on the line between their neighbours, and longer gaps have 0 units.
    A note says how many are missing if it is more than one of a hundred, one of the busiest hour, or a longer gap.
    Before the first and after the last known bin a stream has 0 units: an index may be younger than its table.

    Args:
        place: The file, for messages.
        rows: At least one row.
        table: The table, if the file has several.
        bin_seconds: The length of a bin; by default the most common distance between two rows, or a minute for one.
        is_counted: Whether times are counted from bin 0 rather than since 1970.

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
    units = _placed(place, rows, step, bins)
    gaps = _stretches(set(range(bins)) - {(time - first) // step for time in rows.times})
    missing: set[int] = set()
    is_long = False
    for values in units.values():
        holes, has_long = _fill(values)
        # of a stream that asks for nothing, nobody misses a bin
        if any(values):
            missing |= holes
            is_long = is_long or has_long
    missing |= {number for begin, length in gaps for number in range(begin, begin + length)}
    busiest = missing & _busiest_hour(units, step // SECOND) if missing else set()
    if missing and (is_long or busiest or len(missing) * _SILENT > bins):
        at = min(missing)
        notes.append(
            _MISSING.format(
                row=place.row if place.row == "datapoint" else "row",
                missing=f"{len(missing):,}",
                bins=f"{bins:,}",
                table=_of(table),
                first=f"bin {at}" if is_counted else show_instant(first + at * step),
                busiest=_in_busiest(len(busiest)) if bins * step > _HOUR * SECOND else "",
                how=f"{_BETWEEN}, {_NOTHING}" if is_long else _BETWEEN,
            )
        )
    return Laid(
        start=None if is_counted else instant(first),
        bin_seconds=step // SECOND,
        units=units,
        gaps=gaps,
        notes=tuple(f"{place.file}: {note}" for note in notes),
    )


def _in_busiest(missing: int) -> str:
    return f", {missing:,} of them in the busiest hour" if missing else ""


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


def _placed(place: DataPlace, rows: Rows, step: int, bins: int) -> dict[Stream, array[float]]:
    """Return the units of all bins, not a number in those that are missing."""
    first, times = rows.times[0], rows.times
    for row, time in enumerate(times):
        if (time - first) % step:
            raise TrafficError(
                f"{place.at(rows.numbers[row])}: the time is {(time - times[row - 1]) / SECOND:g} s after that of "
                f"{place.row} {rows.numbers[row - 1]}, but bins are {step // SECOND} s long; give bins of one length"
            )
    if len(times) == bins:
        return rows.units
    placed = {}
    for stream, units in rows.units.items():
        whole = array("d", [math.nan]) * bins
        for row, time in enumerate(times):
            whole[(time - first) // step] = units[row]
        placed[stream] = whole
    return placed


def _fill(values: array[float]) -> tuple[set[int], bool]:
    """Fill in what is not a number; return the bins between known ones that were, and whether a gap is a long one."""
    # a sum with one number that is none is none itself
    unknown = [number for number, units in enumerate(values) if math.isnan(units)] if math.isnan(sum(values)) else []
    filled: set[int] = set()
    is_long = False
    for begin, length in _stretches(unknown):
        end = begin + length
        is_inside = begin > 0 and end < len(values)
        is_short = is_inside and length <= _LONGEST_FILLED
        low, high = (values[begin - 1], values[end]) if is_short else (0.0, 0.0)
        for number in range(length):
            values[begin + number] = low + (high - low) * (number + 1) / (length + 1)
        if is_inside:
            filled.update(range(begin, end))
            is_long = is_long or not is_short
    return filled, is_long


def _stretches(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return the first number and the length of each stretch of consecutive numbers, in order."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and sum(found[-1]) == number:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((number, 1))
    return tuple(found)


def _busiest_hour(units: Mapping[Stream, array[float]], bin_seconds: int) -> set[int]:
    """Return the bins of the hour, or of the bin if it is longer, in which most units are requested by all streams."""
    totals = [math.fsum(each) for each in zip(*units.values(), strict=True)]
    length = min(len(totals), max(1, _HOUR // bin_seconds))
    total = most = math.fsum(totals[:length])
    at = 0
    for number in range(length, len(totals)):
        total += totals[number] - totals[number - length]
        if total > most:
            most, at = total, number - length + 1
    return set(range(at, at + length)) if most else set()
